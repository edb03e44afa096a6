"""Every mood of the scripted CLI agent, as a caller sees it."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.agent import Timeouts
from muster.domain.call import Quality, Stop, ToolCall, Usage, ask
from muster.domain.errors import AgentFailed, BadExit, Paid, PermissionAsked, Stalled, TimedOut
from muster.domain.money import Lane
from muster.sim.cli_agent.behaviors import BEHAVIORS

from .stage import PATIENT, Stage, call, until

IMPATIENT = Timeouts(call=120.0, idle=8.0)  # longer than a start takes on a busy machine


async def test_ok_says_the_prompt_and_what_it_cost(stage: Stage) -> None:
    deltas: list[str] = []
    reply = await stage.rehearsal().call(ask("one two\n three"), PATIENT, deltas.append)
    assert (reply.text, "".join(deltas), len(deltas)) == ("one two\n three", "one two\n three", 3)
    assert (reply.cost, reply.lane, reply.usage) == (10_000, Lane.BILLED, Usage(input=4, output=4))
    assert (reply.stop, reply.quality, reply.model) == (Stop.END, Quality.GOOD, "scripted")
    assert reply.trace is not None
    assert (reply.trace.turns, reply.trace.note, reply.trace.log) == (1, "", "")
    assert reply.trace.session == reply.id != ""
    assert reply.timings.first_token is not None


async def test_tools_are_told_in_order_with_their_results(stage: Stage) -> None:
    reply = await call(stage.rehearsal(), "MOOD:tools")
    assert reply.tool_calls == (
        ToolCall(id="toolu_01", name="Bash", arguments={"command": "ls"}, result="README.md\n"),
        ToolCall(id="toolu_02", name="Grep", arguments={"pattern": "TODO"}, result="no such file", failed=True),
    )
    assert reply.text == "There is one file."


async def test_edit_really_writes_the_file_where_it_works(stage: Stage) -> None:
    (stage.folder / "work").mkdir()
    agent = stage.rehearsal(working_dir="work")
    reply = await call(agent, "MOOD:edit")
    assert (stage.folder / "work" / "greeting.txt").read_text() == "hello, world\n"
    assert [(tool.name, tool.result, tool.failed) for tool in reply.tool_calls] == [
        ("Write", "wrote greeting.txt", False),
        ("Edit", "wrote greeting.txt", False),
        ("Read", "hello, world\n", False),
    ]


async def test_a_request_can_name_the_folder(stage: Stage) -> None:
    (stage.folder / "other").mkdir()
    await call(stage.rehearsal(), "MOOD:edit", volatile={"cwd": "other"})
    assert (stage.folder / "other" / "greeting.txt").exists()


async def test_permission_ends_the_call_at_once_and_names_the_tool(stage: Stage) -> None:
    began = time.monotonic()
    with pytest.raises(PermissionAsked, match="permission to use Bash") as caught:
        await call(stage.rehearsal(), "MOOD:permission")
    assert time.monotonic() - began < PATIENT.idle / 2
    assert (caught.value.tool, caught.value.paid) == ("Bash", Paid.UNKNOWN)


async def test_hang_is_stalled(stage: Stage) -> None:
    with pytest.raises(Stalled, match=r"wrote nothing for 0\.5s") as caught:
        await call(stage.rehearsal(), "MOOD:hang", replace(PATIENT, idle=0.5))
    assert (caught.value.tool, caught.value.paid) == (None, Paid.UNKNOWN)


async def test_a_stall_in_a_tool_names_the_tool(stage: Stage) -> None:
    with pytest.raises(Stalled, match="at the tool Bash") as caught:
        await call(stage.rehearsal(), "MOOD:stall-in-tool", IMPATIENT)
    assert caught.value.tool == "Bash"


async def test_a_call_whose_time_is_over_names_the_tool(stage: Stage) -> None:
    with pytest.raises(TimedOut, match="timed out after 8s at the tool Bash") as caught:
        await call(stage.rehearsal(), "MOOD:stall-in-tool", replace(PATIENT, call=8.0))
    assert (caught.value.tool, caught.value.paid) == ("Bash", Paid.UNKNOWN)


async def test_a_crash_shows_the_code_and_the_log(stage: Stage) -> None:
    with pytest.raises(BadExit, match="exited with code 3 without an answer: cannot reach the model") as caught:
        await call(stage.rehearsal(), "MOOD:crash")
    assert (caught.value.log, caught.value.paid) == ("cannot reach the model\n", Paid.UNKNOWN)


async def test_a_crash_in_the_last_line_is_no_answer(stage: Stage) -> None:
    with pytest.raises(BadExit, match="was killed by SIGKILL without an answer: out of memory"):
        await call(stage.rehearsal(), "MOOD:crash-late")


async def test_children_that_hold_its_output_are_ended_with_it(stage: Stage) -> None:
    reply = await call(stage.rehearsal(), "MOOD:children")
    assert (reply.text, reply.cost) == ("They work on.", 10_000)
    assert stage.alive() == []


async def test_children_that_left_its_group_are_found_by_what_they_carry(stage: Stage) -> None:
    reply = await call(stage.rehearsal(), "MOOD:escape")
    assert reply.text == "They are gone."
    await until(lambda: len(stage.alive()) == 3)
    await until(lambda: not stage.alive())


async def test_one_that_ignores_the_request_to_end_is_ended(stage: Stage) -> None:
    with pytest.raises(Stalled):
        await call(stage.rehearsal(), "MOOD:ignore-term", IMPATIENT)
    assert stage.alive() == []


async def test_noise_is_passed_over(stage: Stage) -> None:
    reply = await call(stage.rehearsal(), "MOOD:noise")
    assert (reply.text, reply.cost) == ("Heard through the noise.", 10_000)
    assert reply.trace is not None
    assert reply.trace.log == "deprecated\n\\xff\\xfe\\xc3bytes\n"


async def test_one_that_does_not_exit_after_its_answer_is_ended(stage: Stage) -> None:
    began = time.monotonic()
    reply = await call(stage.rehearsal(), "MOOD:no-exit")
    assert time.monotonic() - began < PATIENT.idle / 2
    assert (reply.text, reply.cost) == ("Done.", 10_000)
    assert reply.trace is not None
    assert reply.trace.note == "it did not exit after its answer"
    assert stage.alive() == []


async def test_one_that_costs_more_than_it_was_told_to_fails_with_its_cost(stage: Stage) -> None:
    with pytest.raises(AgentFailed, match=r"spent \$5 of at most \$0\.4") as caught:
        await call(stage.rehearsal(), "MOOD:expensive")
    assert (caught.value.paid, caught.value.cost) == (Paid.YES, 5_000_000)


async def test_a_cost_above_the_reservation_is_returned_as_it_is(stage: Stage) -> None:
    agent = stage.rehearsal("--max-budget-usd", "100")
    reply = await call(agent, "MOOD:expensive")
    assert agent.quote(ask("hello")).most == 500_000
    assert (reply.cost, reply.lane) == (5_000_000, Lane.BILLED)
    assert reply.trace is not None
    assert reply.trace.turns == 40


async def test_an_error_is_told_in_its_own_words_and_what_it_says_of_its_cost_is_not_believed(stage: Stage) -> None:
    with pytest.raises(AgentFailed, match="'one': reports that it failed: the model gave up") as caught:
        await call(stage.rehearsal(), "MOOD:error")
    assert (caught.value.paid, caught.value.cost, caught.value.imputed) == (Paid.UNKNOWN, 0, False)


async def test_slow_hands_over_its_words_one_by_one(stage: Stage) -> None:
    deltas: list[str] = []
    reply = await stage.rehearsal().call(ask("MOOD:slow"), PATIENT, deltas.append)
    assert deltas == ["Wait ", "a ", "moment."]
    assert reply.text == "a moment."


async def test_a_mood_that_there_is_not_is_told(stage: Stage) -> None:
    with pytest.raises(BadExit, match="unknown mood 'sulky'"):
        await call(stage.rehearsal(), "MOOD:sulky")


async def test_a_resumed_session_knows_how_many_turns_it_had(stage: Stage) -> None:
    kept = {"SCRIPTED_CLI_STATE": str(stage.folder / "sessions")}
    agent = stage.rehearsal(env=kept, turns="$.session_turns")
    first = await call(agent, "MOOD:tools")
    assert first.trace is not None
    assert first.trace.turns == 3
    second = await call(agent, "and then?", volatile={"session": first.trace.session})
    assert second.trace is not None
    assert (second.trace.turns, second.trace.session) == (4, first.trace.session)
    with pytest.raises(BadExit, match="No conversation found with session ID: nobody"):
        await call(agent, volatile={"session": "nobody"})


async def test_the_same_prompt_in_the_same_folder_is_the_same_session(stage: Stage) -> None:
    agent = stage.rehearsal()
    first, again, other = [await call(agent, text) for text in ("a", "a", "b")]
    assert first.id == again.id != other.id


def test_no_mood_is_left_out() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [mood for mood in BEHAVIORS if mood != "ok" and f"MOOD:{mood}" not in text] == []


async def test_what_it_is_asked_is_no_part_of_what_it_may_do(stage: Stage) -> None:
    request = replace(ask("{budget} {model} {{prompt}}"), system="{session}")
    reply = await stage.rehearsal().call(request, PATIENT)
    assert reply.text == "{session}\n\n{budget} {model} {{prompt}}"
