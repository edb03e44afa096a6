"""Councils of all kinds of agents: models, live and in batches, programs, a CLI agent and a person."""

import asyncio
from pathlib import Path

import pytest

from muster.councils.members.answers import UnreadableAnswer, read_evaluation, read_proposal
from muster.councils.order import ScoreScale
from muster.councils.rules.anonymity import labels_for
from muster.councils.rules.values import (
    AbstentionCause,
    CouncilAbstention,
    CouncilPhase,
    Evaluation,
    Proposal,
)
from muster.domain.call import Reply
from muster.domain.run import RunState
from tests.councils.cases import proposals
from tests.councils.home import SEED, council_home, declared, program, rules, spec_of
from tests.councils.mixed import MEMBERS, MODELS, PERSON, votes_of_the_person, write_mixed_council

HAIKU, SONNET, GPT = "anthropic/claude-haiku-5-5", "anthropic/claude-sonnet-5-5", "openai/gpt-5-mini"


async def test_agents_of_every_kind_reach_a_verdict(tmp_path: Path) -> None:
    toml = write_mixed_council(tmp_path)
    async with council_home(tmp_path, *rules(MEMBERS, MODELS), toml=toml) as home:
        handle = await home.muster.councils.start(home.muster.councils.spec("q", MEMBERS, rounds=1, seed=SEED))
        async for event in handle.events():
            if event.kind == "call.asked":
                assert event.data["key"] in (await home.muster.councils.trace(handle.id)).open_calls
                text = "42 by hand" if "/propose/" in event.data["key"] else votes_of_the_person()
                await home.muster.runs.answer(handle.id, text, key=event.data["key"])
        found = (await home.muster.councils.result(handle.id)).result
        assert sorted(one.agent for one in found.rounds[0].proposals) == sorted(MEMBERS)
        assert sorted(one.agent for one in found.rounds[0].counted) == sorted(MEMBERS)
        assert found.rounds[0].abstentions == ()
        assert found.winner is not None
        assert found.winner.agent == MODELS[0]
        assert PERSON in {one.agent for one in found.dissent}


async def test_ten_councils_at_once_need_two_batches_for_each_round_and_provider(tmp_path: Path) -> None:
    members = [HAIKU, SONNET, GPT]
    spec = spec_of(*members, rounds=2, min_rounds=2)
    async with council_home(tmp_path, *rules(members, members, rounds=2)) as home:
        options = home.muster.runs.options(dispatch="batch")
        handles = [await home.muster.councils.start(spec, options) for _ in range(10)]
        runs = await asyncio.gather(*(handle.wait() for handle in handles))
        assert {run.state for run in runs} == {RunState.COMPLETED}, [run.error for run in runs]
        batches = await home.muster.batches.list()
        by_provider = {kind: sum(batch.endpoint.kind == kind for batch in batches) for kind in ("anthropic", "openai")}
        assert by_provider == {"anthropic": 4, "openai": 4}
        assert home.server.audit.calls == 10 * 2 * 2 * 3


def test_a_person_proposes_in_plain_text_and_weighs_in_lines() -> None:
    said = read_proposal(Reply(text="I would say 42.\n"), "me", person=True)
    assert said == Proposal(agent="me", text="I would say 42.")
    labels = labels_for("me", ["a", "b"], round_number=1, phase=CouncilPhase.EVALUATE, seed=1)
    first, second = labels.labels
    text = f"{first} 80 well argued\n\n{second}: -20.5\n"
    found = read_evaluation(Reply(text=text), labels, proposals("a", "b"), ScoreScale.UNIT, person=True)
    assert isinstance(found, Evaluation)
    assert [(vote.weight, vote.critique) for vote in found.votes] == [(80, "well argued"), (-20.5, "")]


@pytest.mark.parametrize("text", ["skip", "Skip: I am away", "skip : I am away"])
def test_a_person_abstains_with_one_word(text: str) -> None:
    said = read_proposal(Reply(text=text), "me", person=True)
    assert isinstance(said, CouncilAbstention)
    assert said.reason == text.partition(": ")[2]


def test_a_person_may_propose_to_skip_something() -> None:
    said = read_proposal(Reply(text="Skip the cache."), "me", person=True)
    assert said == Proposal(agent="me", text="Skip the cache.")


@pytest.mark.parametrize("text", ['{"evaluations": [{"x": 1}]}', '{"evaluations": 5}', '{"evaluations": [null]}'])
def test_json_of_a_person_in_another_shape_is_named(text: str) -> None:
    labels = labels_for("me", ["a", "b"], round_number=1, phase=CouncilPhase.EVALUATE, seed=1)
    found = read_evaluation(Reply(text=text), labels, proposals("a", "b"), ScoreScale.UNIT, person=True)
    assert isinstance(found, UnreadableAnswer)
    assert "the JSON does not fit" in found.reason


async def test_a_person_who_is_late_is_benched_and_the_others_go_on(tmp_path: Path) -> None:
    person = '[agents.hasty]\nkind = "human"\ntimeout_secs = 0.2\n'
    agents = {"ada": program(), "bob": program(answer="42 too")}
    async with council_home(tmp_path, toml=declared(agents, person)) as home:
        run = await (await home.muster.councils.start(spec_of(*agents, "hasty", rounds=1))).wait()
        assert [member["name"] for member in run.spec["members"] if member.get("person")] == ["hasty"]
        (only,) = (await home.muster.councils.result(run.id)).result.rounds
        assert [(one.agent, one.cause) for one in only.abstentions] == [("hasty", AbstentionCause.LATE)] * 2


def test_a_line_of_a_person_that_is_no_evaluation_is_named() -> None:
    labels = labels_for("me", ["a", "b"], round_number=1, phase=CouncilPhase.EVALUATE, seed=1)
    found = read_evaluation(Reply(text="both are fine"), labels, proposals("a", "b"), ScoreScale.UNIT, person=True)
    assert isinstance(found, UnreadableAnswer)
    assert "'both are fine' is not an evaluation" in found.reason
