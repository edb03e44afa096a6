"""One owned process: moved, bounded, ended with its whole group, and seen dead. All of them are real."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.agents.processes import system
from muster.agents.processes.conversation import MAX_OUTPUT, Finished, communicate
from muster.agents.processes.process import Process, ProcessCommand, environment_of
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.domain.agent import Timeouts
from muster.domain.errors import BadOutput, NotStarted, Stalled, StoreFailed, TimedOut
from muster.domain.run import OwnedProcess
from muster.testing.agents import RememberedProcesses

PATIENT = Timeouts(call=120.0, idle=120.0)
PATH = {"PATH": os.environ["PATH"]}


def bash(script: str, data: bytes | None = b"", **rest: object) -> ProcessCommand:
    return ProcessCommand(agent="a", command=("bash", "-c", script), environment=PATH, input=data, **rest)  # type: ignore[arg-type]


def python(script: str, data: bytes | None = b"") -> ProcessCommand:
    return ProcessCommand(agent="a", command=(sys.executable, "-c", script), environment=PATH, input=data)


async def run(processes: ProcessRegistry, order: ProcessCommand, timeouts: Timeouts = PATIENT) -> Finished:
    async with processes.process(order) as process:
        return await communicate(process, timeouts)


def with_token(remembered: RememberedProcesses) -> list[int]:
    """Find everything alive that carries a token of this registry."""
    house = remembered.seen[0].token
    return [pid for pid, _ in system.with_token(house + ".") if system.started(pid) is not None]


def names(remembered: RememberedProcesses) -> list[str]:
    """Say what they are called."""
    return [Path(f"/proc/{pid}/comm").read_text().strip() for pid in with_token(remembered)]


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110 - what is waited for happens in another process
        await asyncio.sleep(0.005)


async def test_what_goes_in_comes_out(processes: ProcessRegistry) -> None:
    finished = await run(processes, bash("cat; echo there >&2; exit 3", b"hello"))
    assert finished == Finished(status=3, output=b"hello", log="there\n", broken=False)


async def test_ten_megabytes_go_through_in_both_directions_at_the_same_time(processes: ProcessRegistry) -> None:
    data = os.urandom(10_000_000)
    finished = await run(processes, bash("cat", data))
    assert finished.output == data


async def test_input_that_nobody_reads_does_not_keep_a_call(processes: ProcessRegistry) -> None:
    finished = await run(processes, bash("exec 0<&-; echo done", b"x" * 10_000_000))
    assert (finished.status, finished.output, finished.broken) == (0, b"done\n", True)


@pytest.mark.parametrize("attempt", range(5))
async def test_a_small_input_is_taken_even_by_one_that_exits_at_once(processes: ProcessRegistry, attempt: int) -> None:
    finished = await run(processes, bash("echo done", b"x" * 60_000))
    assert (finished.output, finished.broken) == (b"done\n", False)


async def test_without_input_a_process_reads_the_end_at_once(processes: ProcessRegistry) -> None:
    assert (await run(processes, bash("cat; echo over", None))).output == b"over\n"


async def test_a_long_log_keeps_its_beginning_and_its_end(processes: ProcessRegistry) -> None:
    finished = await run(processes, bash("echo first >&2; head -c 10000000 /dev/zero >&2; echo last >&2; echo ok"))
    assert finished.output == b"ok\n"
    assert finished.log.startswith("first\n")
    assert finished.log.endswith("last\n")
    assert "bytes …]" in finished.log
    assert len(finished.log) < 100_000


async def test_bytes_that_are_no_text_survive_in_the_log(processes: ProcessRegistry) -> None:
    finished = await run(processes, bash(r"printf 'a\xff\xfeb' >&2"))
    assert finished.log == r"a\xff\xfeb"


async def test_too_much_output_is_a_named_error(processes: ProcessRegistry) -> None:
    with pytest.raises(BadOutput, match=r"wrote more than 32 MB"):
        await run(processes, bash(f"head -c {MAX_OUTPUT + 1} /dev/zero; sleep 60"))


async def test_time_that_is_over_ends_the_process(processes: ProcessRegistry, remembered: RememberedProcesses) -> None:
    async with processes.process(bash("echo so far >&2; echo ready; sleep 60")) as process:
        await process.news(asyncio.get_running_loop().time() + 30)
        with pytest.raises(TimedOut, match=r"timed out after 0\.2s") as caught:
            await communicate(process, Timeouts(call=0.2, idle=30.0))
    assert caught.value.log == "so far\n"
    assert with_token(remembered) == []


async def test_the_deadline_holds_for_one_that_never_stops_talking(processes: ProcessRegistry) -> None:
    with pytest.raises(TimedOut):
        await run(processes, bash("while :; do echo more; done"), Timeouts(call=0.3, idle=30.0))


async def test_silence_is_told_apart_from_a_long_call(processes: ProcessRegistry) -> None:
    with pytest.raises(Stalled, match=r"wrote nothing for 0\.2s"):
        await run(processes, bash("sleep 60"), Timeouts(call=30.0, idle=0.2))


async def test_a_sign_of_life_on_either_stream_breaks_the_silence(processes: ProcessRegistry) -> None:
    script = "for i in 1 2 3; do sleep 1.1; echo $i >&2; sleep 1.1; echo $i; done"
    finished = await run(processes, bash(script), Timeouts(call=120.0, idle=6.0))
    assert finished.output == b"1\n2\n3\n"


async def test_one_that_ignores_the_request_to_end_is_killed(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    order = bash("trap '' TERM; echo ready; while :; do sleep 60; done")
    async with processes.process(order) as process:
        await process.news(asyncio.get_running_loop().time() + 30)
        assert await process.end(grace=0.1)
    assert process.status == -signal.SIGKILL
    assert with_token(remembered) == []


async def test_one_that_ends_when_asked_is_not_killed(processes: ProcessRegistry) -> None:
    async with processes.process(bash("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done")) as process:
        await process.news(asyncio.get_running_loop().time() + 30)
        await process.end(grace=60.0)
    assert process.status == 7


async def test_a_grandchild_that_holds_the_output_does_not_keep_a_call(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    finished = await run(processes, bash("sleep 60 & echo mine"))
    assert finished.output == b"mine\n"
    assert with_token(remembered) == []


async def test_fifty_grandchildren_go_with_the_one_that_started_them(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    finished = await run(processes, bash("for i in $(seq 50); do sleep 60 & done; echo started"))
    assert finished.output == b"started\n"
    assert with_token(remembered) == []


async def test_one_that_left_its_group_is_found_by_its_token(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    # It says when it has left, and holds no pipe of the one that started it.
    leaves = "setsid bash -c 'echo left; exec sleep 600 >/dev/null 2>&1'"
    await run(processes, bash(f"read line < <({leaves}); echo $line"))
    await until(lambda: with_token(remembered) == [])


async def test_one_that_left_its_group_is_left_alone_while_its_process_works(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    script = "setsid sleep 60 >/dev/null 2>&1 & echo ready; read line"
    async with processes.process(bash(script, b"", stays_open=True)) as process:
        await process.news(asyncio.get_running_loop().time() + 30)
        await until(lambda: "sleep" in names(remembered))
        await run(processes, bash("true"))  # its end makes the registry look around
        processes._sweep()
        assert "sleep" in names(remembered)


async def test_a_canceled_call_leaves_nothing_alive(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    ready = asyncio.Event()

    async def work() -> None:
        async with processes.process(bash("sleep 60 & echo ready; sleep 60")) as process:
            await process.news(asyncio.get_running_loop().time() + 30)
            ready.set()
            await communicate(process, PATIENT)

    task = asyncio.create_task(work())
    await ready.wait()
    await until(lambda: len(with_token(remembered)) >= 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert with_token(remembered) == []


async def test_canceled_twice_it_is_still_ended(processes: ProcessRegistry, remembered: RememberedProcesses) -> None:
    ready = asyncio.Event()

    async def work() -> None:
        async with processes.process(bash("trap '' TERM; echo ready; while :; do sleep 60; done")) as process:
            await process.news(asyncio.get_running_loop().time() + 30)
            ready.set()
            await communicate(process, PATIENT)

    task = asyncio.create_task(work())
    await ready.wait()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert with_token(remembered) == []


async def test_it_is_a_leader_of_its_own_session(processes: ProcessRegistry) -> None:
    script = "import os; print(os.getsid(0) == os.getpgid(0) == os.getpid())"
    assert (await run(processes, python(script))).output == b"True\n"


async def test_no_other_descriptor_is_passed_on(processes: ProcessRegistry) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        finished = await run(processes, python("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:3])"))
        assert finished.output == b"[0, 1, 2]\n"
        finished = await run(processes, python(f"import os; print(os.path.exists('/proc/self/fd/{writer}'))"))
        assert finished.output == b"False\n"
    finally:
        os.close(reader)
        os.close(writer)


async def test_the_environment_is_what_was_named_and_nothing_else(processes: ProcessRegistry) -> None:
    ours = {**PATH, "LANG": "C", "SECRET": "s", "TOKEN": "t", "HOME": "/nowhere"}
    environment = environment_of(ours, named=("TOKEN",), own={"MODE": "strict"})
    order = ProcessCommand(agent="a", command=("env",), environment=environment, input=None)
    names = {line.split("=")[0] for line in (await run(processes, order)).output.decode().splitlines()}
    assert names == {"PATH", "LANG", "TOKEN", "MODE", system.TOKEN_VARIABLE}


async def test_the_token_of_a_process_around_us_stays(processes: ProcessRegistry) -> None:
    order = ProcessCommand(
        agent="a",
        command=("bash", "-c", f"echo ${system.TOKEN_VARIABLE}"),
        environment={**PATH, system.TOKEN_VARIABLE: "muster-outer.1"},
    )
    output = (await run(processes, order)).output.decode()
    assert output.startswith("muster-outer.1,muster-")


async def test_an_empty_command_is_refused(processes: ProcessRegistry) -> None:
    with pytest.raises(NotStarted, match="command is empty"):
        await run(processes, ProcessCommand(agent="a", command=()))


@pytest.mark.parametrize("command", ["/nonexistent/binary", "no-such-program-anywhere", "/", "a\0b"])
async def test_a_program_that_is_not_there_is_told(processes: ProcessRegistry, command: str) -> None:
    with pytest.raises(NotStarted, match="failed to spawn") as caught:
        await run(processes, ProcessCommand(agent="critic", command=(command,), environment=PATH, input=b"x"))
    assert "critic" in caught.value.message


async def test_a_folder_that_is_not_there_is_told(processes: ProcessRegistry, tmp_path: Path) -> None:
    with pytest.raises(NotStarted, match=r"failed to spawn.*absent"):
        await run(processes, bash("true", folder=tmp_path / "absent"))


async def test_a_process_that_could_not_start_costs_no_descriptor(processes: ProcessRegistry) -> None:
    await run(processes, bash("true"))  # the first one takes the name of the registry's token
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(NotStarted):
            await run(processes, ProcessCommand(agent="a", command=("/nonexistent",), input=b"x"))
    await run(processes, bash("true"))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


async def test_processes_are_remembered_with_number_and_start_until_they_are_dead(
    processes: ProcessRegistry, remembered: RememberedProcesses
) -> None:
    async with processes.process(bash("echo ready; sleep 60")) as process:
        await process.news(asyncio.get_running_loop().time() + 30)
        house, ours = remembered.noted.values()
        assert ours.token.startswith(house.token + ".")
        assert (ours.pid, ours.started) == (process.pid, system.started(process.pid))
        assert (house.pid, ours.driver, ours.agent) == (None, this_process(), "a")
    await asyncio.sleep(0)
    assert list(remembered.noted) == [house.token]


async def test_a_reader_that_is_slow_makes_the_process_wait(processes: ProcessRegistry) -> None:
    async with processes.process(bash("head -c 20000000 /dev/zero")) as process:
        await _full(process)
        size = 0
        while not process.silent:
            await process.news(asyncio.get_running_loop().time() + 30)
            size += len(process.take())
        assert size == 20_000_000


async def _full(process: Process) -> None:
    while process._unread < 4 * 1_048_576:  # noqa: ASYNC110 - the same
        await asyncio.sleep(0.005)


class Full(RememberedProcesses):
    """A store on a disk that is full, until it is not."""

    full = True

    async def note(self, process: OwnedProcess) -> None:
        if self.full:
            raise StoreFailed("no space left")
        await super().note(process)


async def test_nothing_is_started_that_nobody_could_find_again(tmp_path: Path) -> None:
    remembered = Full()
    processes = ProcessRegistry(remembered, this_process())
    order = bash("echo ran > ran", folder=tmp_path)
    for _ in range(2):
        with pytest.raises(NotStarted, match="no space left"):
            await run(processes, order)
    assert not (tmp_path / "ran").exists()
    remembered.full = False
    assert (await run(processes, order)).status == 0
    await processes.close()
    assert remembered.noted == {}


UNDER_SIGNALS = """
import asyncio, os, signal, subprocess, sys
from muster.agents.processes.conversation import communicate
from muster.agents.processes.process import ProcessCommand
from muster.agents.processes.process import start
from muster.domain.agent import Timeouts

async def main():
    order = ProcessCommand(agent="a", command=("echo", "here"), environment={"PATH": os.environ["PATH"]})
    killed = 0
    for number in range(60):
        process = start(order, f"token.{number}")
        finished = await communicate(process, Timeouts())
        await process.end()
        if finished.status == -signal.SIGINT:
            killed += 1
        else:
            assert (finished.status, finished.output) == (0, b"here\\n"), finished
    # A signal that arrives in the very system call by which a process leaves our group cannot be told from its own:
    # a few of those that are shot at without a pause may die of it, and most would if they were not protected.
    assert killed <= 6, killed

received = []
signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
shooter = subprocess.Popen(
    [sys.executable, "-c", "import os, signal\\nwhile True: os.killpg(int(os.environ['TARGET']), signal.SIGINT)"],
    env={"TARGET": str(os.getpgrp())}, start_new_session=True,
)
try:
    asyncio.run(main())
finally:
    shooter.kill()
    shooter.wait()
assert received
"""


async def test_a_process_that_starts_while_its_starter_gets_ctrl_c_from_a_terminal_runs_all_the_same() -> None:
    """The terminal signals the whole group, to which a process belongs for the moment before it has its own."""
    starter = await asyncio.create_subprocess_exec(
        sys.executable, "-c", UNDER_SIGNALS, stderr=asyncio.subprocess.PIPE, start_new_session=True
    )
    _, told = await starter.communicate()
    assert starter.returncode == 0, told.decode()
