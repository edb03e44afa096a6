"""Rounds that are not complete: what was said in them is told, and a stop below the quorum replaces no decision."""

import asyncio
from pathlib import Path

import pytest

from muster.councils.phase import PhaseRecord, require_quorum
from muster.councils.reports.html import council_html
from muster.councils.reports.json_report import council_view
from muster.councils.reports.markdown import council_markdown
from muster.councils.rules.stopping import StopReason
from muster.councils.rules.values import AbstentionCause, CouncilAbstention, CouncilPhase
from muster.councils.spec import CouncilSpec
from muster.domain.errors import CouncilFailed
from muster.domain.run import Run, RunState
from tests.councils.cases import proposals
from tests.councils.home import CouncilHome, council_home, declared, program, spec_of

ADA, BOB = program(answer="42 for sure"), program(answer="42, I think")
PEOPLE = "\n".join(f'[agents.{name}]\nkind = "human"\n' for name in ("eve", "ned"))
MIXED = ("ada", "bob", "eve", "ned")


async def test_proposals_of_a_phase_without_a_quorum_are_told(tmp_path: Path) -> None:
    agents = {"ada": ADA, "bob": program("fails"), "cyd": program("garbage")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents))
        assert run.state is RunState.FAILED
        report = await home.muster.councils.trace(run.id)
        (phase,) = council_view(report).builtins()["open_round"]
        assert (phase["round"], phase["phase"], phase["counts"], phase["over"]) == (1, "propose", False, False)
        assert [(one["agent"], one["text"]) for one in phase["proposals"]] == [("ada", "42 for sure")]
        assert [(one["agent"], one["cause"]) for one in phase["abstentions"]] == [
            ("bob", "failed"),
            ("cyd", "unreadable"),
        ]
        for text in (council_markdown(report), council_html(report)):
            assert "Round 1, propose: the round is not complete and does not count" in text
            assert "42 for sure" in text
            assert "out of order" in text


async def test_evaluations_of_a_phase_without_a_quorum_are_told(tmp_path: Path) -> None:
    agents = {"ada": ADA, **dict.fromkeys(("bob", "cyd", "dan"), program("proposes"))}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents))
        report = await home.muster.councils.trace(run.id)
        proposed, evaluated = council_view(report).builtins()["open_round"]
        assert (proposed["over"], len(proposed["proposals"])) == (True, 4)
        assert {(one["evaluator"], one["target"], one["weight"]) for one in evaluated["critiques"]} == {
            ("ada", name, 100) for name in ("bob", "cyd", "dan")
        }
        assert {one["agent"] for one in evaluated["abstentions"]} == {"bob", "cyd", "dan"}
        assert "| `ada` | `bob` | +100 | `right` |" in council_markdown(report)
        assert "<td>ada</td><td>bob</td><td>+100</td>" in council_html(report)


async def test_what_was_said_in_a_later_round_that_had_no_quorum_is_told(tmp_path: Path) -> None:
    agents = {"ada": ADA, "bob": program("leaves")}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=2, min_rounds=2))
        assert run.state is RunState.COMPLETED
        report = await home.muster.councils.trace(run.id)
        assert [one.number for one in report.rounds] == [1]
        (phase,) = report.open_round
        assert (phase.round_number, phase.is_over) == (2, False)
        assert [one.agent for one in phase.record.proposals] == ["ada"]
        assert [one.agent for one in phase.record.abstentions] == ["bob"]
        assert run.result["result"]["open_round"] == 2
        await home.require_retold(run)


async def test_a_round_that_is_being_held_is_told_as_far_as_it_is(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared({"ada": ADA, "bob": BOB}, PEOPLE)) as home:
        handle = await home.muster.councils.start(spec_of(*MIXED))
        async for event in handle.events():
            if event.kind == "council.proposed" and event.data["agent"] == "ada":
                break
        (phase,) = (await home.muster.councils.trace(handle.id)).open_round
        assert phase.title == "Round 1, propose: the round is not complete yet"
        assert "ada" in {one.agent for one in phase.record.proposals}
        await asyncio.wait_for(handle.cancel(), 60)
        (phase,) = (await home.muster.councils.trace(handle.id)).open_round
        assert "does not count, and the phase is not complete" in phase.title
        assert "ada" in {one.agent for one in phase.record.proposals}


async def test_a_council_whose_rounds_are_complete_has_no_other(tmp_path: Path) -> None:
    agents = {"ada": ADA, "bob": BOB}
    async with council_home(tmp_path, toml=declared(agents)) as home:
        run = await home.hold(spec_of(*agents, rounds=2, effort=0.1))
        assert (await home.muster.councils.trace(run.id)).open_round == ()


async def test_a_stop_below_the_quorum_replaces_no_earlier_decision(tmp_path: Path) -> None:
    agents = {"ada": ADA, "bob": BOB, "cyd": program("leaves")}  # three of four evaluate in round 1, two in round 2
    async with council_home(tmp_path, toml=declared(agents, PEOPLE)) as home:
        run = await _stopped(home, spec_of(*agents, "eve", rounds=2, min_rounds=2), 2, CouncilPhase.EVALUATE)
        result = (await home.muster.councils.result(run.id)).result
        assert [one.number for one in result.rounds] == [1]
        assert result.stop.reason is StopReason.STOPPED
        assert result.stop.detail == "a stop signal came in round 2, before it was complete"
        proposed, evaluated = (await home.muster.councils.trace(run.id)).open_round
        assert len(proposed.record.proposals) == 2
        assert [one.agent for one in evaluated.record.evaluations] == ["ada", "bob"]
        assert result.open_round == 2
        await home.require_retold(run)


async def test_a_stop_below_the_quorum_of_the_first_round_decides_and_says_so(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared({"ada": ADA, "bob": BOB}, PEOPLE)) as home:
        run = await _stopped(home, spec_of(*MIXED), 1, CouncilPhase.EVALUATE)
        report = await home.muster.councils.trace(run.id)
        assert report.ok
        words = "decided by 2 of 4 evaluations; the council was stopped"
        assert council_view(report).builtins()["stop"]["detail"] == words
        assert words in report.verdict
        assert words in council_markdown(report)
        assert report.open_round == ()
        assert run.result["result"]["open_round"] is None
        await home.require_retold(run)


async def test_proposals_of_a_phase_that_was_stopped_are_told(tmp_path: Path) -> None:
    async with council_home(tmp_path, toml=declared({"ada": ADA, "bob": BOB}, PEOPLE)) as home:
        run = await _stopped(home, spec_of(*MIXED), 1, CouncilPhase.PROPOSE)
        report = await home.muster.councils.trace(run.id)
        assert (report.rounds, report.ok) == ((), False)
        (phase,) = report.open_round
        assert phase.is_over
        assert [one.agent for one in phase.record.proposals] == ["ada", "bob"]
        assert [(one.agent, one.cause) for one in phase.record.abstentions] == [
            (name, AbstentionCause.NOT_STARTED) for name in ("eve", "ned")
        ]
        await home.require_retold(run)


async def _stopped(home: CouncilHome, spec: CouncilSpec, number: int, phase: CouncilPhase) -> Run:
    """Hold a council whose people skip every phase but one, in which it is stopped when the programs have answered."""
    handle = await home.muster.councils.start(spec)
    last, done = f"round/{number:02}/{phase}/", set[str]()
    said = {"council.proposed" if phase is CouncilPhase.PROPOSE else "council.evaluated", "council.benched"}
    async for event in handle.events():
        key = str(event.data.get("key"))
        if event.kind == "call.asked" and key.startswith(last):
            done.add(key)
        elif event.kind == "call.asked":
            await home.muster.runs.answer(handle.id, "skip: I only watch", key=key)
        elif event.kind in said and (event.data["round"], event.data["phase"]) == (number, phase):
            done.add(str(event.data["agent"]))
        if len(done) == len(spec.members):
            await home.muster.councils.stop(handle.id)
            break
    return await asyncio.wait_for(handle.wait(), 60)


@pytest.mark.parametrize(
    ("answered", "members", "is_told"),
    [(1, 2, False), (1, 5, False), (2, 5, True), (3, 5, True)],
)
def test_a_lower_quorum_is_suggested_only_where_it_would_help(answered: int, members: int, is_told: bool) -> None:
    names = [f"m{number}" for number in range(members)]
    missing = tuple(
        CouncilAbstention(agent=name, phase=CouncilPhase.PROPOSE, cause=AbstentionCause.FAILED)
        for name in names[answered:]
    )
    said = tuple(proposals(*names[:answered]))
    record = PhaseRecord(phase=CouncilPhase.PROPOSE, proposals=said, abstentions=missing)
    with pytest.raises(CouncilFailed) as failed:
        require_quorum(record, 1, members, 1.0)
    assert ("or set a lower quorum in the policy" in failed.value.suggestions) is is_told
