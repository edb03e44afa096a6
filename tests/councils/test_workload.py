"""Councils as runs: rounds between programs, members that misbehave, signals, time, money, and what is remembered."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from muster.councils.rules.stopping import StopReason
from muster.councils.rules.values import AbstentionCause, CouncilMember, CouncilPhase
from muster.councils.spec import stored
from muster.domain.run import RunState
from tests.councils.home import council_home, declared, program, spec_of

THREE = {"ada": program(), "bob": program(answer="42 as well"), "cyd": program(answer="41")}


async def test_three_programs_are_convinced_after_one_round(tmp_path: Path) -> None:
    agents = THREE | {"bob": program(answer="40")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, effort=0.3))
        found = (await home.outcome(spec_of(*agents, effort=0.3))).result
        assert run.state is RunState.COMPLETED
        assert found.winner is not None
        assert found.winner.text.startswith("42")
        assert found.stop.reason is StopReason.CONVINCED
        keys = sorted(entry.key for entry in await home.calls(run))
        assert keys == [f"round/01/{phase}/{name}" for phase in ("evaluate", "propose") for name in agents]
        assert [event.data["round"] for event in await home.events(run, "council.scored")] == [1]
        contested = {claim.claim for claim in found.contested}
        assert contested == {"40 is right", "41 is right"}


async def test_a_tie_convinces_nobody(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared(THREE)) as home:
        found = (await home.outcome(spec_of(*THREE, effort=0.3, rounds=2))).result
        assert [one.score.tied for one in found.rounds] == [("ada", "bob")] * 2
        assert (found.stop.reason, found.stop.evidence) == (StopReason.ROUNDS, 0)
        assert found.winner is not None


async def test_a_council_in_which_nobody_supports_a_proposal_decides_nothing_and_says_why(tmp_path: Path) -> None:
    agents = {name: program(answer=name) for name in ("ada", "bob", "cyd")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=1))
        report = await home.muster.councils.trace(run.id)
        assert (run.state, report.winner, report.ok, report.word) == (RunState.COMPLETED, None, False, "Not decided")
        assert "no proposal won (no proposal is supported: the best has -1.414)" in report.verdict


@pytest.mark.parametrize(
    ("behaviour", "cause", "phases"),
    [
        ("silent", AbstentionCause.SKIPPED, 2),
        ("fails", AbstentionCause.FAILED, 2),
        ("garbage", AbstentionCause.UNREADABLE, 2),
    ],
)
async def test_a_member_that_does_not_answer_is_named(
    tmp_path: Path, behaviour: str, cause: AbstentionCause, phases: int
) -> None:
    agents = {**THREE, "dan": program(behaviour)}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        found = (await home.outcome(spec_of(*agents))).result
        missing = found.rounds[0].abstentions
        assert [(one.agent, one.cause) for one in missing] == [("dan", cause)] * phases
        assert all(one.reason for one in missing)
        assert found.winner is not None
        assert found.winner.text.startswith("42")


async def test_an_answer_that_cannot_be_read_is_repaired_once(tmp_path: Path) -> None:
    agents = {**THREE, "dan": program("once", answer="42, repaired")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents))
        keys = {entry.key for entry in await home.calls(run)}
        assert {"round/01/propose/dan/repair", "round/01/evaluate/dan/repair"} <= keys
        assert not await home.events(run, "council.benched")


async def test_a_late_member_is_benched_and_the_others_decide(tmp_path: Path) -> None:
    agents = {**THREE, "dan": program("late")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        found = (await home.outcome(spec_of(*agents, rounds=1, timeout_secs=8))).result
        causes = {(one.agent, one.cause) for one in found.rounds[0].abstentions}
        assert causes == {("dan", AbstentionCause.LATE)}
        assert found.winner is not None


async def test_fewer_than_two_proposals_fail_the_run_and_say_why(tmp_path: Path) -> None:
    agents = {"ada": program(), "bob": program("fails"), "cyd": program("garbage")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents))
        assert (run.state, run.ended_reason) == (RunState.FAILED, "council_failed")
        message = str((run.error or {})["message"])
        assert "1 of 3 members answered, and 2 are needed" in message
        assert "bob: failed" in message
        assert "cyd: unreadable" in message


async def test_who_failed_is_asked_again_when_the_run_is_resumed(tmp_path: Path) -> None:
    agents = {"ada": program(), "bob": program("fails")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        failed = await home.hold(spec_of(*agents))
    async with council_home(tmp_path, toml=declared({**agents, "bob": program()})) as home:
        run = await (await home.muster.resume(failed.id)).wait()
        assert run.state is RunState.COMPLETED, run.error
        assert run.calls.reused == 1  # what ada had said


async def test_a_person_tells_all_members_something(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared(THREE)) as home:
        handle = await home.muster.submit("deliberation", _stored(*THREE))
        await home.muster.runs.send(handle.id, "inject", "in base 13")
        run = await home.muster.runs.drive(await handle.run()).wait()
        assert run.state is RunState.COMPLETED
        texts = {one["text"] for one in run.result["result"]["rounds"][0]["proposals"]}
        assert all(text.endswith("in base 13") for text in texts)
        assert [event.data["text"] for event in await home.events(run, "council.injected")] == ["in base 13"]


async def test_a_stop_signal_ends_the_council_before_its_next_phase(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared(THREE)) as home:
        handle = await home.muster.submit("deliberation", _stored(*THREE))
        await home.muster.runs.send(handle.id, "stop", True)
        run = await home.muster.runs.drive(await handle.run()).wait()
        assert run.state is RunState.COMPLETED
        assert run.result["result"]["stop"]["reason"] == "stopped"
        assert not await home.calls(run)


async def test_a_stop_signal_in_a_phase_waits_only_for_those_who_are_at_work(tmp_path: Path) -> None:
    # With one place, one member is at work and takes its time; the others wait for the place.
    agents = {name: program("slow") for name in ("ada", "bob", "cyd")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        handle = await home.muster.start("deliberation", _stored(*agents), concurrency=1)
        async for event in handle.events():
            if event.kind == "council.round.started":
                break
        await home.muster.runs.send(handle.id, "stop", True)
        run = await asyncio.wait_for(handle.wait(), 60)
        assert run.result["result"]["stop"]["reason"] == "stopped"
        benched = await home.events(run, "council.benched")
        assert run.calls.done <= 1
        assert not benched  # they were not asked, and nothing went wrong with them


async def test_a_member_with_a_budget_of_its_own_is_not_asked_beyond_it(tmp_path: Path) -> None:
    priced = '[agents.dan]\nkind = "scripted"\nscript = "dan.yaml"\nprice = { input = 1000, output = 5000 }\n'
    (tmp_path / "dan.yaml").write_text('otherwise: \'{"text": "42"}\'\n', encoding="utf-8")
    async with council_home(tmp_path, toml=declared(THREE, priced)) as home:
        poor = CouncilMember(name="dan", budget_usd=0.01)
        found = (await home.outcome(spec_of(*THREE, poor))).result
        missing = found.rounds[0].abstentions
        assert [(one.agent, one.phase, one.cause) for one in missing] == [
            ("dan", phase, AbstentionCause.NOT_STARTED) for phase in CouncilPhase
        ]
        assert "budget of dan" in missing[0].reason


def _stored(*members: str) -> Any:
    return stored(spec_of(*members))


async def test_a_member_may_have_any_name(tmp_path: Path) -> None:
    agents = {name: program() for name in ("record", "stop", "began")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        found = (await home.outcome(spec_of(*agents, rounds=1))).result
        assert len(found.rounds[0].evaluations) == 3
