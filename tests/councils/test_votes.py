"""The quorum of a council is one of votes: who abstains from evaluating, or weighs nothing, decides nothing."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from muster.councils.reports.json_report import council_view
from muster.councils.reports.markdown import council_markdown
from muster.councils.rules.scoring import TieBreak, score_round
from muster.domain.rules import CURRENT_RULES, counted_anew, rules_of
from muster.domain.run import Run, RunState
from tests.councils.cases import evaluation, proposals
from tests.councils.home import CouncilHome, council_home, declared, program, spec_of

ADA = program(answer="42 for sure")


def council(behaviour: str) -> dict[str, list[str]]:
    """Return three members of which only the first gives weights."""
    return {"ada": ADA, "bob": program(behaviour, answer="42 too"), "cyd": program(behaviour, answer="41")}


@pytest.mark.parametrize("behaviour", ["shy", "neutral"])
async def test_one_vote_of_three_decides_nothing(tmp_path: Path, behaviour: str) -> None:
    agents = council(behaviour)
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=2))
        report = await home.muster.councils.trace(run.id)
        assert (run.state, report.ok, report.winner) == (RunState.COMPLETED, False, None)
        assert "no proposal won (1 evaluation counts, and 2 are needed) after 2 rounds" in report.verdict
        assert [(one["counted"], one["needed"]) for one in council_view(report).builtins()["rounds"]] == [
            (1, 2),
            (1, 2),
        ]


async def test_a_decision_names_how_few_votes_it_has(tmp_path: Path) -> None:
    agents = {"ada": ADA, "bob": program(answer="42 too"), "cyd": program("shy", answer="41")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=1))
        report = await home.muster.councils.trace(run.id)
        assert report.ok
        assert "won (decided by 2 of 3 evaluations) after 1 round" in report.verdict
        assert "decided by 2 of 3 evaluations" in council_markdown(report)


@pytest.mark.parametrize(
    ("weights", "counts"),
    [
        ({"bob": 1}, True),  # and nothing for cyd
        ({"bob": 0, "cyd": -5}, True),
        ({"bob": 60, "cyd": 50}, True),
        ({"bob": 50, "cyd": None}, True),
        ({"bob": 0}, False),
        ({"bob": None}, False),
        ({"ada": 9}, False),
        ({"bob": 10, "cyd": 10}, False),
        ({"bob": -10, "cyd": -10}, False),
        ({"bob": 1e-300, "cyd": 1e-300}, False),
    ],
)
def test_an_evaluation_counts_when_it_prefers_a_proposal_of_another(
    weights: dict[str, float | None], counts: bool
) -> None:
    three = proposals("ada", "bob", "cyd")
    found = score_round(three, [evaluation("ada", **weights)], seed=1, orders=True)
    assert found.counted == int(counts)


def test_who_has_one_other_to_weigh_counts_with_any_weight() -> None:
    found = score_round(proposals("ada", "bob"), [evaluation("ada", bob=10)], seed=1, orders=True)
    assert (found.counted, found.alike) == (1, ())


async def of_an_older_version(home: CouncilHome, *members: str) -> Run:
    """Hold a council as a version of Muster did that counted abstentions for the quorum."""
    handle = await home.muster.councils.submit(spec_of(*members))
    with closing(sqlite3.connect(home.folder / ".muster" / "muster.db")) as store, store:
        store.execute("UPDATE runs SET rules = 2")
    return await home.muster.runs.drive(await home.muster.runs.get(handle.id)).wait()


async def test_a_council_of_an_older_version_is_replayed_as_it_was_held(tmp_path: Path) -> None:
    agents = council("shy")
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await of_an_older_version(home, *agents)
        report = await home.muster.councils.trace(run.id)
        assert report.winner is not None
        assert (report.winner.agent, len(report.rounds)) == ("bob", 1)
    async with council_home(tmp_path, toml=declared(dict.fromkeys(agents, program("fails")))) as home:
        again = await home.muster.runs.drive(await home.muster.runs.replay(run.id)).wait()
        assert again.state is RunState.COMPLETED, again.error
        assert again.result["result"] == run.result["result"]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6])
def test_a_run_that_decides_anew_has_the_limits_of_the_older_one_and_counts_as_today(version: int) -> None:
    before, now = rules_of(version), rules_of(counted_anew(version))
    assert now == replace(before, strict_councils=True, orders_councils=True, whole_councils=True)
    assert counted_anew(CURRENT_RULES) == CURRENT_RULES


async def test_who_weighs_all_others_alike_leaves_a_tie_that_one_vote_does_not_break(tmp_path: Path) -> None:
    agents = council("generous")
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=1))
        report = await home.muster.councils.trace(run.id)
        (score,) = (one.score for one in report.rounds)
        assert (score.tied, score.tie_break, score.alike) == (("ada", "bob", "cyd"), TieBreak.SUPPORT, ("bob", "cyd"))
        assert [(past.counted, past.alike) for past in council_view(report).rounds] == [(1, ("bob", "cyd"))]
