"""Programs that misbehave as processes: none keeps a call, and none is left when the call is over."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from muster.agents.processes.registry import ProcessRegistry
from muster.domain.agent import Timeouts
from muster.domain.call import ask
from muster.domain.errors import BadOutput, Stalled, TimedOut
from muster.testing.agents import RememberedProcesses
from tests.agents.program.stage import PATIENT, PROPOSAL, PROPOSE, alive, bash, says, spelled, until

LARGE = ask("x" * 10_000_000)
ANSWER = f"printf %s '{spelled(PROPOSAL)}'"
BRIEF = Timeouts(call=0.3, idle=5.0)


@pytest.mark.parametrize("mode", ["exec", "plain", "chat"])
async def test_a_program_that_exits_without_reading_its_input_has_not_answered(
    processes: ProcessRegistry, mode: str
) -> None:
    with pytest.raises(BadOutput, match="exited without reading its input"):
        await bash(processes, ANSWER, mode=mode).call(LARGE, PATIENT)


async def test_a_program_that_never_reads_and_stays_is_stopped(processes: ProcessRegistry) -> None:
    with pytest.raises(TimedOut, match=r"timed out after 0.3s"):
        await bash(processes, "sleep 999").call(LARGE, BRIEF)


async def test_ten_megabytes_go_in_and_come_back(processes: ProcessRegistry) -> None:
    reply = await bash(processes, "cat", mode="plain").call(LARGE, PATIENT)
    assert reply.text == LARGE.prompt


async def test_ten_megabytes_in_the_log_do_not_stop_an_answer(processes: ProcessRegistry) -> None:
    script = f"head -c 10000000 /dev/zero | tr '\\0' x >&2; {says(spelled(PROPOSAL))}"
    reply = await bash(processes, script).call(PROPOSE, PATIENT)
    assert reply.data == PROPOSAL
    assert reply.trace is not None
    assert len(reply.trace.log) < 100_000


async def test_ten_megabytes_of_noise_do_not_hide_an_answer(processes: ProcessRegistry) -> None:
    line = '{"level": "info", "text": "still {working}"}'
    reply = await bash(processes, f"yes '{line}' | head -c 10000000; echo; {says(spelled(PROPOSAL))}").call(
        PROPOSE, PATIENT
    )
    assert reply.data == PROPOSAL


async def test_bytes_that_are_no_text_do_not_hide_an_answer(processes: ProcessRegistry) -> None:
    script = """cat >/dev/null; printf '\\xff\\xfe bad \\xc3'; printf '\\xe9' >&2
printf '{"thought_process":"\\xe9","content":"caf\\xc3\\xa9"}'"""
    reply = await bash(processes, script).call(PROPOSE, PATIENT)
    assert reply.data == {"thought_process": "\\xe9", "content": "café"}
    assert reply.trace is not None
    assert reply.trace.log == "\\xe9"


async def test_a_grandchild_that_holds_the_output_does_not_keep_a_call(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    reply = await bash(processes, f"sleep 999 & {ANSWER}").call(PROPOSE, PATIENT)
    assert reply.data == PROPOSAL
    assert alive(remembered) == []


async def test_fifty_grandchildren_are_gone_after_the_call(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    reply = await bash(processes, f"for i in $(seq 50); do sleep 999 & done; {ANSWER}").call(PROPOSE, PATIENT)
    assert reply.data == PROPOSAL
    assert alive(remembered) == []


async def test_a_program_that_ignores_being_asked_to_end_is_killed(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    with pytest.raises(TimedOut):
        await bash(processes, "trap '' TERM; while :; do sleep 999; done").call(PROPOSE, BRIEF)
    assert alive(remembered) == []


async def test_a_program_that_says_nothing_for_too_long_is_stopped(processes: ProcessRegistry) -> None:
    with pytest.raises(Stalled, match="wrote nothing") as caught:
        await bash(processes, "echo begun >&2; sleep 999").call(PROPOSE, replace(PATIENT, idle=4.0))
    assert caught.value.log == "begun\n"


async def test_a_canceled_call_leaves_no_process(
    processes: ProcessRegistry, remembered: RememberedProcesses, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    call = asyncio.ensure_future(bash(processes, f"sleep 999 & touch {there}; wait").call(PROPOSE, PATIENT))
    await until(there.exists)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert alive(remembered) == []


async def test_a_program_that_writes_without_end_is_stopped(processes: ProcessRegistry) -> None:
    with pytest.raises(BadOutput, match="wrote more than 32 MB"):
        await bash(processes, "yes").call(PROPOSE, PATIENT)


async def test_other_work_goes_on_while_a_large_output_is_looked_through(processes: ProcessRegistry) -> None:
    line = '{"a line that was cut off somewhere in the middle of it'
    script = f"cat >/dev/null; yes '{line}' | head -n 80000; {ANSWER}"
    here, everywhere = time.thread_time(), time.process_time()
    assert (await bash(processes, script).call(PROPOSE, PATIENT)).data == PROPOSAL
    # In seconds of the processor, of which a machine that is busy or pauses takes none away.
    assert time.thread_time() - here < (time.process_time() - everywhere) / 2


async def test_the_whole_text_is_handed_over_at_the_end(processes: ProcessRegistry) -> None:
    deltas: list[str] = []
    await bash(processes, says(spelled(PROPOSAL))).call(PROPOSE, PATIENT, deltas.append)
    assert deltas == ["solution"]


async def test_an_answer_without_text_hands_over_nothing(processes: ProcessRegistry) -> None:
    deltas: list[str] = []
    request = replace(PROPOSE, context=None)
    await bash(processes, says(spelled({**PROPOSAL, "content": ""}))).call(request, PATIENT, deltas.append)
    assert deltas == []
