"""Killed at any system call, a run comes to its end: every reply, paid once or told as uncertain.

Where to kill is taken from a trace of an undisturbed process; strace sends SIGKILL at that very call. The law is
checked by a program that shares no code with Muster.
"""

import asyncio
import random
import re
import shutil
import signal
import sqlite3
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import pytest

from muster.testing.sim import RehearsalProcess
from tests.chaos import law
from tests.chaos.fleet import Order
from tests.chaos.stage import PATIENCE, ROOT, Stage

SEEDS = {"live": 34, "batch": 33, "mixed": 33}
MOST_KILLS = 3  # of one run
CALLS = "write,pwrite64,fsync,fdatasync,ftruncate,sendto,recvfrom,connect,openat,unlink,rename,mkdir,read,close,fcntl"
LINE = re.compile(rb"^(\d+) +(\w+)\(")
READY = b'{\\"ready\\":'


@pytest.fixture
def quick() -> Iterator[RehearsalProcess]:
    """A rehearsal server whose answers and batches take a moment."""
    with RehearsalProcess(latency_ms=10, batch_ms=60) as running:
        yield running


@dataclass(frozen=True)
class Place:
    """A system call to be killed at, and which one of its thread it is."""

    call: str
    nth: int

    def inject(self) -> tuple[str, ...]:
        return ("-e", f"inject={self.call}:signal=SIGKILL:when={self.nth}")


def order_of(stage: Stage, kind: str, name: str) -> Order:
    order = stage.order(20, concurrency=5, name=name)
    if kind == "live":
        return order
    if kind == "mixed":
        return replace(order, workload="both")
    return replace(order, workload="judged", dispatch="batch", calls=10)


async def trace(stage: Stage, order: Order, *options: str) -> tuple[int, bytes]:
    """Run a driving process under strace; gives its exit code, and what went wrong."""
    command = (sys.executable, "-m", "tests.chaos.fleet", msgspec.json.encode(order).decode())
    process = await asyncio.create_subprocess_exec(
        *("strace", "-f", "-qq", "-e", f"trace={CALLS}", *options, *command),
        cwd=ROOT,
        env=stage.environment,
        stdin=PIPE,  # which stays open: the process ends with it
        stdout=DEVNULL,
        stderr=PIPE,
    )
    assert process.stderr is not None
    err, code = await asyncio.wait_for(asyncio.gather(process.stderr.read(), process.wait()), PATIENCE)
    return code, err


async def places_of(stage: Stage, order: Order) -> list[Place]:
    """Trace an undisturbed process, and give every system call that it made after it was ready."""
    log = stage.folder / "trace.log"
    code, err = await trace(stage, order, "-o", str(log))
    assert code == 0, f"strace cannot trace here, which these proofs need: {err.decode()}"
    counts: Counter[tuple[bytes, bytes]] = Counter()
    places, ready = [], False
    for line in log.read_bytes().splitlines():
        if (found := LINE.match(line)) is not None:
            counts[found[1], found[2]] += 1
            ready = ready or READY in line
            if ready:
                places.append(Place(found[2].decode(), counts[found[1], found[2]]))
    return places


async def kill_and_finish(stage: Stage, order: Order, places: list[Place], dice: random.Random) -> list[str]:
    """Kill one process after the other, then let the last one finish; gives where they died."""
    killed = []
    for _ in range(dice.randint(1, MOST_KILLS)):
        # As likely for each kind of call: most calls are reads, and few of them are of interest.
        call = dice.choice(sorted({place.call for place in places}))
        place = dice.choice([place for place in places if place.call == call])
        code, err = await trace(stage, order, "-o", "/dev/null", *place.inject())
        assert b"Traceback" not in err, err.decode()
        if code != -signal.SIGKILL:  # strace ends as what it traced
            break  # it was done before, or waits for what nobody can decide for it
        killed.append(f"{place.call}:{place.nth}")
    ended = await stage.drive(replace(order, resubmit=True))
    assert ended.code == 0, ended
    return killed


async def check_law(stage: Stage) -> None:
    """Let the other program look, which is not able to import this one."""
    database = stage.folder / ".muster" / "muster.db"
    checker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", law.__file__, str(database), stage.sim.audit_url), stdout=PIPE
    )
    found, _ = await checker.communicate()
    assert (checker.returncode, found.decode()) == (0, "")


@pytest.mark.chaos
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", SEEDS)
async def test_a_run_killed_at_any_system_call_is_finished_and_paid_once(
    tmp_path: Path, quick: RehearsalProcess, kind: str
) -> None:
    if shutil.which("strace") is None:
        pytest.fail("strace is not installed; these proofs need it: scripts/prepare strace")
    whole = Stage(tmp_path / "whole", quick)
    places = await places_of(whole, order_of(whole, kind, "whole"))
    await check_law(whole)
    died: Counter[str] = Counter()
    for seed in range(SEEDS[kind]):
        quick.reset()
        stage = Stage(tmp_path / f"{seed}", quick)
        killed = await kill_and_finish(stage, order_of(stage, kind, "fleet"), places, random.Random(f"{kind} {seed}"))
        print(f"{kind} {seed}: killed at {', '.join(killed) or 'nothing'}")
        await check_law(stage)
        died.update(place.partition(":")[0] for place in killed)
    print(f"{kind}: {died.total()} kills at {dict(died)}")
    assert died.total() >= SEEDS[kind] // 2


async def test_the_law_finds_what_is_wrong_with_a_store(stage: Stage) -> None:
    """The checker is no rubber stamp: each change to the store is one line of it."""
    ended = await stage.drive(stage.order(6))
    assert ended.run["state"] == "completed", ended
    await check_law(stage)
    audit = law.read_audit(stage.sim.audit_url)
    changes = {
        "UPDATE runs SET state = 'interrupted'": "is interrupted",
        "DELETE FROM events WHERE seq = 2": "have gaps",
        "UPDATE attempts SET state = 'started' WHERE key = 'item/00001'": "is started",
        "UPDATE attempts SET cost = -1 WHERE key = 'item/00001'": "below zero",
        "UPDATE budgets SET reserved = 5": "are still reserved",
        "UPDATE budgets SET billed = billed + 1": "its attempts",
        'UPDATE outcomes SET outcome = \'{"text": "no"}\'': "reply to something else",
        "UPDATE attempts SET state = 'uncertain' WHERE key = 'item/00001'": "has 0 replies",
    }
    for change, told in changes.items():
        database = sqlite3.connect(stage.folder / ".muster" / "muster.db")
        database.execute(change)
        assert any(told in line for line in law.violations(database, audit)), change
        database.rollback()
        database.close()
    database = sqlite3.connect(stage.folder / ".muster" / "muster.db")
    twice = {**audit, "by_digest": {name: count + 1 for name, count in audit["by_digest"].items()}}
    assert sum("2 paid" in line for line in law.violations(database, twice)) == 6
    assert any("nobody's request" in line for line in law.violations(database, {"by_digest": {"strange": 1}}))
    database.close()
