"""What a dead driver left behind is ended, exactly that, and nothing of a stranger's."""

# ruff: noqa: ASYNC220 - these processes are to be nobody's: the event loop must not look after them

import asyncio
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from muster.agents.processes import system
from muster.agents.processes.registry import Reaper
from muster.agents.processes.system import is_gone, start_of, this_process
from muster.domain.run import Driver, OwnedProcess
from muster.store.sqlite.store import open_sqlite
from muster.testing.agents import RememberedProcesses

# A driver that starts two processes, one of which leaves its group, says so, and waits to be killed.
DRIVER = """
import asyncio, os, sys
from pathlib import Path
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.agents.processes.process import ProcessCommand
from muster.store.sqlite.store import open_sqlite

async def main():
    store = open_sqlite(Path(sys.argv[1]))
    processes = ProcessRegistry(store.processes, this_process())
    environment = {"PATH": os.environ["PATH"]}
    script = "sleep 600 & setsid sleep 600 & echo ready; trap '' TERM; wait"
    first = ProcessCommand(agent="a", command=("bash", "-c", script), environment=environment)
    async with processes.process(first) as process:
        await process.news(asyncio.get_running_loop().time() + 30)
        async with processes.process(ProcessCommand(agent="b", command=("sleep", "600"), environment=environment)):
            await store.processes.forget("nothing")  # written after everything before it
            print(processes._token, flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""
BIRTH = start_of(this_process().started)
DEAD = replace(this_process(), started=f"{BIRTH.boot}/1/{BIRTH.namespace}")
# Tests run side by side, and must not take each other's processes for their own.
OURS = f"muster-{secrets.token_hex(6)}"
gone = partial(is_gone, us=this_process())


def alive(house: str) -> list[int]:
    return [pid for pid, _ in system.with_token(house + ".") if system.started(pid) is not None]


def until_named(pids: Callable[[], Iterable[int]], *names: str) -> list[int]:
    """Wait until processes have these names: one that is about to execute its program shows no environment."""
    while True:
        found = [pid for pid in pids() if system.started(pid) is not None]
        if sorted(Path(f"/proc/{pid}/comm").read_text().strip() for pid in found) == sorted(names):
            return found
        time.sleep(0.005)


@pytest.fixture
def decoy() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of somebody else, with the same command line as one of ours."""
    process = subprocess.Popen(["sleep", "600"])
    yield process
    process.kill()
    process.wait()


async def test_the_processes_of_a_killed_driver_are_ended_and_a_stranger_is_not(
    tmp_path: Path, decoy: "subprocess.Popen[bytes]"
) -> None:
    database = tmp_path / "muster.db"
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(database)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    house = driver.stdout.readline().strip()
    until_named(lambda: alive(house), "bash", "sleep", "sleep", "sleep")
    store = open_sqlite(database)
    reaper = Reaper(store.processes, this_process().host, gone)
    assert await reaper.reap() == []  # its driver is alive
    assert len(alive(house)) == 4
    driver.kill()
    driver.wait()
    driver.stdout.close()
    reaped = await reaper.reap()
    assert {process.agent for process in reaped} == {"a", "b"}
    assert len(reaped) == 4
    assert alive(house) == []
    assert decoy.poll() is None
    assert await store.processes.all(this_process().host) == []
    assert await reaper.reap() == []
    await store.maintenance.close()


async def test_one_that_was_started_but_not_yet_written_down_is_found_by_its_token() -> None:
    remembered = RememberedProcesses()
    await remembered.note(OwnedProcess(token=f"{OURS}feed", driver=DEAD, at=0.0))
    orphan = subprocess.Popen(["sleep", "600"], env={**os.environ, system.TOKEN_VARIABLE: f"{OURS}feed.1"})
    until_named(lambda: alive(f"{OURS}feed"), "sleep")
    reaped = await Reaper(remembered, DEAD.host, gone).reap()
    assert [process.pid for process in reaped] == [orphan.pid]
    assert orphan.wait() == -signal.SIGKILL


async def test_one_inside_a_process_of_ours_is_found_by_the_outer_token() -> None:
    remembered = RememberedProcesses()
    await remembered.note(OwnedProcess(token=f"{OURS}beef", driver=DEAD, at=0.0))
    tokens = f"{OURS}beef.4,muster-inner.1"
    orphan = subprocess.Popen(["sleep", "600"], env={**os.environ, system.TOKEN_VARIABLE: tokens})
    until_named(lambda: alive(f"{OURS}beef"), "sleep")
    await Reaper(remembered, DEAD.host, gone).reap()
    assert orphan.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {system.TOKEN_VARIABLE: f"{OURS}feedback.1"},  # begins alike
        {system.TOKEN_VARIABLE: f"{OURS}feed"},  # a house is no process
        {"OTHER": f"{OURS}feed.1"},
    ],
)
async def test_who_does_not_carry_the_token_is_left_alone(
    environment: dict[str, str], decoy: "subprocess.Popen[bytes]"
) -> None:
    remembered = RememberedProcesses()
    await remembered.note(OwnedProcess(token=f"{OURS}feed", driver=DEAD, at=0.0))
    stranger = subprocess.Popen(
        [sys.executable, "-c", "print('ready', flush=True); import time; time.sleep(600)", f"{OURS}feed.1"],
        env={"PATH": os.environ["PATH"], **environment},
        stdout=subprocess.PIPE,
    )
    assert stranger.stdout is not None
    stranger.stdout.readline()
    assert await Reaper(remembered, DEAD.host, gone).reap() == []
    assert stranger.poll() is None
    assert decoy.poll() is None
    stranger.kill()
    stranger.wait()
    stranger.stdout.close()


async def test_a_later_process_with_the_same_number_is_left_alone(decoy: "subprocess.Popen[bytes]") -> None:
    remembered = RememberedProcesses()
    start = system.started(decoy.pid)
    assert start is not None
    earlier = start.rpartition("/")[0] + "/1"
    await remembered.note(OwnedProcess(token=f"{OURS}a.1", driver=DEAD, at=0.0, pid=decoy.pid, started=earlier))
    assert await Reaper(remembered, DEAD.host, gone).reap() == []
    assert decoy.poll() is None
    assert not system.kill(decoy.pid, earlier)
    assert decoy.poll() is None
    assert remembered.noted == {}


async def test_one_that_changed_its_environment_is_found_by_number_and_start() -> None:
    orphan = subprocess.Popen(["sleep", "600"])
    remembered = RememberedProcesses()
    started = system.started(orphan.pid)
    await remembered.note(OwnedProcess(token=f"{OURS}a.1", driver=DEAD, at=0.0, pid=orphan.pid, started=started))
    await Reaper(remembered, DEAD.host, gone).reap()
    assert orphan.wait() == -signal.SIGKILL


@pytest.mark.parametrize("leader_lives", [True, False])
async def test_one_of_its_session_that_carries_nothing_is_ended_with_it(
    leader_lives: bool, decoy: "subprocess.Popen[bytes]"
) -> None:
    # It clears its environment; beside it there is one that does not, by which its session is known to be ours.
    script = "env -i sleep 600 & sleep 600 & echo $!; " + ("wait" if leader_lives else "exit")
    leader = subprocess.Popen(
        ["bash", "-c", script],
        env={"PATH": os.environ["PATH"], system.TOKEN_VARIABLE: f"{OURS}cafe{leader_lives}.1"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert leader.stdout is not None
    leader.stdout.readline()
    started = system.started(leader.pid) or "gone/1"
    if not leader_lives:
        leader.wait()
    members = until_named(lambda: system.members({leader.pid}), *["bash"] * leader_lives, "sleep", "sleep")
    remembered = RememberedProcesses()
    await remembered.note(OwnedProcess(token=f"{OURS}cafe{leader_lives}", driver=DEAD, at=0.0))
    record = OwnedProcess(
        token=f"{OURS}cafe{leader_lives}.1", driver=DEAD, at=0.0, pid=leader.pid, started=started, agent="a"
    )
    await remembered.note(record)
    reaped = await Reaper(remembered, DEAD.host, gone).reap()
    assert {process.pid for process in reaped} == set(members)
    assert [pid for pid in system.members({leader.pid}) if system.started(pid)] == []
    assert decoy.poll() is None
    leader.wait()
    leader.stdout.close()


async def test_a_session_of_a_later_process_with_the_same_number_is_left_alone() -> None:
    stranger = subprocess.Popen(
        ["bash", "-c", "sleep 600 & echo ready; wait"], stdout=subprocess.PIPE, start_new_session=True
    )
    assert stranger.stdout is not None
    stranger.stdout.readline()
    remembered = RememberedProcesses()
    await remembered.note(OwnedProcess(token=f"{OURS}a.1", driver=DEAD, at=0.0, pid=stranger.pid, started="boot/1"))
    assert await Reaper(remembered, DEAD.host, gone).reap() == []
    assert len([pid for pid in system.members({stranger.pid}) if system.started(pid)]) == 2
    os.killpg(stranger.pid, signal.SIGKILL)
    stranger.wait()
    stranger.stdout.close()


async def test_what_belongs_to_a_living_driver_or_another_machine_is_left_alone(
    decoy: "subprocess.Popen[bytes]",
) -> None:
    remembered = RememberedProcesses()
    started = system.started(decoy.pid)
    elsewhere = Driver(host="elsewhere", pid=1, started="x")
    for token, driver in ((f"{OURS}a.1", this_process()), (f"{OURS}b.1", elsewhere)):
        await remembered.note(OwnedProcess(token=token, driver=driver, at=0.0, pid=decoy.pid, started=started))
    assert await Reaper(remembered, DEAD.host, gone).reap() == []
    assert decoy.poll() is None
    assert len(remembered.noted) == 2


# A driver that is copied, as for the start of a process, and whose copy executes its program only when it is let.
COPIED = """
import os, signal, sys
from muster.agents.processes import system
name, go = system.hold(sys.argv[1]), os.open("go", os.O_RDWR)
if os.fork() == 0:
    print("copied", flush=True)
    os.read(go, 1)
    os.execvpe("sleep", ["sleep", "600"], {**os.environ, system.TOKEN_VARIABLE: f"{sys.argv[1]}.1"})
signal.pause()
"""


async def test_a_copy_of_a_driver_that_was_killed_before_the_copy_executed_its_program_is_waited_for_and_ended(
    tmp_path: Path,
) -> None:
    token = f"muster-{secrets.token_hex(8)}"
    os.mkfifo(tmp_path / "go")
    go = os.open(tmp_path / "go", os.O_RDWR)
    command = [sys.executable, "-c", COPIED, token]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout is not None
        assert driver.stdout.readline() == "copied\n"
        driver.kill()
    remembered = RememberedProcesses()
    await remembered.note(OwnedProcess(token=token, driver=DEAD, at=0.0))
    reaping = asyncio.ensure_future(Reaper(remembered, DEAD.host, gone).reap())
    for _ in range(20):
        await asyncio.sleep(0)  # which lets it look for the first time
    assert (alive(token), reaping.done()) == ([], False)
    os.write(go, b"x")
    os.close(go)
    assert [process.token for process in await reaping] == [f"{token}.1"]
    assert alive(token) == []
