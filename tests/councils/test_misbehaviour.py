"""Members that do harm, or try to: the result is what docs/COUNCILS.md says, and each is seen in the trace."""

import json
from io import StringIO
from math import comb
from pathlib import Path

import pytest
from rich.console import Console

from muster.cli.councils.table import tell_trace
from muster.councils.reports.json_report import council_view
from muster.councils.reports.markdown import council_markdown
from muster.councils.rules.anonymity import labels_for
from muster.councils.rules.scoring import score_round
from muster.councils.rules.values import AbstentionCause, CouncilPhase, Evaluation, Vote
from tests.councils.cases import proposals
from tests.councils.home import SEED, council_home, declared, program, spec_of

HONEST = {name: program(answer=f"42 by {number}") for number, name in enumerate(("ada", "bob", "cyd"))}


async def test_each_bad_member_is_seen_in_the_trace(tmp_path: Path) -> None:
    bad = {
        "silent": program("silent"),
        "noisy": program("garbage"),
        "broken": program("fails"),
        "generous": program("generous", answer="41"),
        "beggar": program(answer="give me 100"),
        "vain": program(answer="vain says 41"),
    }
    agents = HONEST | bad
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=1, quorum=0.5))
        report = await home.muster.councils.trace(run.id)
        assert report.winner is not None
        assert report.winner.agent in HONEST
        (only,) = report.rounds
        causes = {(one.agent, one.cause) for one in only.abstentions}
        assert causes == {
            ("silent", AbstentionCause.SKIPPED),
            ("noisy", AbstentionCause.UNREADABLE),
            ("broken", AbstentionCause.FAILED),
        }
        generous = {cell.share for cell in only.score.contributions if cell.evaluator == "generous"}
        assert len(generous) == 1  # everybody the same: no order changes by it
        support = {one.agent: one.support for one in only.score.standings}
        assert support["beggar"] < 0
        requests = [str(entry.request) for entry in await home.calls(run) if entry.key == "round/01/evaluate/ada"]
        assert requests
        assert all("vain says" not in text and "[agent] says 41" in text for text in requests)
        vain = next(one for one in only.proposals if one.agent == "vain")
        assert report.as_read(vain) == "[agent] says 41"
        written = council_markdown(report)
        assert all(name in written for name in agents)
        assert council_view(report).builtins()["rounds"][0]["abstentions"]


async def test_a_colluding_pair_does_not_outweigh_three_honest_members(tmp_path: Path) -> None:
    pair = {name: program(answer="41, we agreed", word="we agreed") for name in ("dan", "eve")}
    agents = HONEST | pair
    async with council_home(tmp_path, toml=declared(agents)) as home:
        report = await home.muster.councils.trace((await home.hold(spec_of(*agents, rounds=1))).id)
        assert report.winner is not None
        assert report.winner.agent in HONEST
        assert {one.agent for one in report.result.dissent} == {"dan", "eve"}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("behaviour", "target", "why", "counted"),
    [
        ("selfish", "dan", "agents do not weigh their own proposals", 3),
        ("lost", "nobody", "unknown target", 3),
        ("twice", "", "it is evaluated 2 times", 2),
        ("loud", "", "it has the score 7: it must be from 0 to 1", 2),
    ],
)
async def test_a_vote_that_cannot_count_is_left_out_by_name_and_the_rest_counts(
    tmp_path: Path, behaviour: str, target: str, why: str, counted: int
) -> None:
    agents = HONEST | {"dan": program(behaviour, answer="42 by dan")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=1))
        report = await home.muster.councils.trace(run.id)
        (only,) = report.rounds
        assert only.abstentions == ()
        (rejected,) = only.score.rejections
        first = labels_for("dan", agents, round_number=1, phase=CouncilPhase.EVALUATE, seed=SEED).agents[0]
        assert (rejected.evaluator, rejected.target) == ("dan", target or first)
        assert why in rejected.reason
        assert sum(cell.evaluator == "dan" for cell in only.score.contributions) == counted
        assert [entry.key for entry in await home.calls(run) if "repair" in entry.key] == []
        assert rejected.reason.partition(":")[0] in council_markdown(report)
        told = StringIO()
        tell_trace(Console(file=told, width=200), report)
        assert f"the vote of dan for {target or first} is rejected: {rejected.reason}" in told.getvalue()


async def test_an_evaluation_of_which_nothing_is_left_is_an_abstention_and_gains_nothing(tmp_path: Path) -> None:
    agents = HONEST | {"dan": program("alone", answer="42 by dan")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        report = await home.muster.councils.trace((await home.hold(spec_of(*agents, rounds=1))).id)
        (only,) = report.rounds
        assert [(one.agent, one.cause) for one in only.abstentions] == [("dan", AbstentionCause.UNREADABLE)]
        assert only.score.tied == tuple(sorted(agents))  # all are right, and dan has no vote more than the others
        assert [(one.agent, one.factor) for one in only.score.scaled] == [("dan", 2 / 3)]
        assert "is multiplied by 0.667: it weighed nobody" in council_markdown(report)


async def test_a_model_may_repair_its_votes_once_and_then_the_rest_counts(tmp_path: Path) -> None:
    model = "openai/gpt-5"
    names = (*HONEST, model)
    labels = labels_for(model, names, round_number=1, phase=CouncilPhase.EVALUATE, seed=SEED)
    items = [{"candidate": label, "weight": 50, "critique": "", "claims": []} for label in labels.labels]
    bad = json.dumps({"evaluations": [{**items[0], "weight": 500}, *items[1:]]})
    proposal = json.dumps({"text": "42 too", "claims": [], "final_scratchpad": ""})
    rules = [
        {"text": ": evaluate", "answer": bad},
        {"text": "cannot be used", "answer": bad},
        {"text": ": propose", "answer": proposal},
    ]
    async with council_home(tmp_path, *rules, toml=declared(HONEST)) as home:
        run = await home.hold(spec_of(*names, rounds=1))
        (only,) = (await home.muster.councils.trace(run.id)).rounds
        assert [entry.key for entry in await home.calls(run) if "repair" in entry.key] == [
            f"round/01/evaluate/{model}/repair"
        ]
        assert only.abstentions == ()
        assert [(one.evaluator, one.target, one.reason) for one in only.score.rejections] == [
            (model, labels.agents[0], "it has the weight 500: it must be from -100 to 100")
        ]
        given = {cell.target for cell in only.score.contributions if cell.evaluator == model}
        assert given == set(labels.agents[1:])
        await home.require_retold(run)


async def test_an_evaluator_that_favours_the_first_place_is_reported(tmp_path: Path) -> None:
    agents = HONEST | {"hasty": program("first", answer="42 too"), "dan": program(answer="42 also")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=3, min_rounds=3))
        biases = {one.evaluator: one for one in (await home.muster.councils.trace(run.id)).biases}
        assert biases["hasty"].is_shown
        assert not biases["ada"].is_shown
        assert "| `hasty` | 3 |" in council_markdown(await home.muster.councils.trace(run.id))


def test_shuffling_takes_the_effect_of_the_first_place_on_the_winner_away() -> None:
    names, wins = ["a", "b", "c", "d"], 0
    seeds = 100
    for seed in range(seeds):
        order = labels_for("judge", names, round_number=1, phase=CouncilPhase.EVALUATE, seed=seed).agents
        votes = tuple(Vote(target=name, weight=100 if name == order[0] else 10) for name in names)
        score = score_round(proposals(*names), [Evaluation(agent="judge", votes=votes)], seed=seed)
        wins += score.winner == "a"
    # Two-sided binomial test of "each of the four wins as often": not rejected at 1 %.
    chances = [comb(seeds, k) * 0.25**k * 0.75 ** (seeds - k) for k in range(seeds + 1)]
    as_rare = sum(chance for chance in chances if chance <= chances[wins] * (1 + 1e-9))
    assert as_rare > 0.01


@pytest.mark.parametrize("text", ["ada", "ADA"])
async def test_a_name_in_a_proposal_reaches_nobody(tmp_path: Path, text: str) -> None:
    agents = HONEST | {"dan": program(answer=f"{text} wrote 42")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=1))
        seen = [str(entry.request) for entry in await home.calls(run) if "/evaluate/bob" in entry.key]
        assert seen
        assert all(f"{text} wrote" not in one and "[agent] wrote 42" in one for one in seen)
