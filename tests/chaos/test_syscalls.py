"""Killed at any system call, a run comes to its end: every reply, paid once or told as uncertain.

Where to kill is taken from a trace of an undisturbed process; strace sends SIGKILL at that very call. It joins a
process that is ready and waits, so that its counts begin with the work and not with the start of the interpreter. The
law is checked by a program that shares no code with Muster.
"""

import asyncio
import random
import re
import shutil
import sqlite3
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.chaos import law
from tests.chaos.fleet import Order
from tests.chaos.stage import PATIENCE, Ended, Stage, declare_prices
from tests.rehearsal import ForkedRehearsal

SEEDS = {"live": 50, "batch": 50, "mixed": 50}  # the first of them go through all kinds of calls, about thirty
MAX_KILLS = 3  # of one run
TRIES = 6  # to kill the first process of a seed: threads differ from run to run, and a counted call may not come
LINE = re.compile(rb"^(\d+) +(\w+)\(")

# These concern a process's own memory, signals and name: a kill there is one at the calls before and after it. The last
# is what a call looks like that strace interrupted when it joined.
MEMORY = frozenset(("brk", "mmap", "munmap", "mprotect", "madvise", "rseq", "set_robust_list"))
PRIVATE = MEMORY | {"getpid", "gettid", "getrandom", "rt_sigprocmask", "rt_sigaction", "restart_syscall"}

# What is on the disk or at the provider after these differs from what was before.
LASTING = frozenset(("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "unlink", "sendto", "recvfrom"))


@pytest.fixture
def quick() -> Iterator[ForkedRehearsal]:
    """A rehearsal server whose answers and batches take a moment."""
    with ForkedRehearsal(latency_ms=10, batch_ms=60) as running:
        yield running


@dataclass(frozen=True)
class Place:
    """A system call to be killed at, and which one of its thread it is."""

    call: str
    nth: int

    def inject(self) -> tuple[str, ...]:
        return ("-e", f"trace={self.call}", "-e", f"inject={self.call}:signal=SIGKILL:when={self.nth}")

    def __str__(self) -> str:
        return f"{self.call}:{self.nth}"


@dataclass
class Killings:
    """Where the processes of one run were killed, and where that was tried in vain."""

    killed: list[Place] = field(default_factory=list)
    missed: list[Place] = field(default_factory=list)

    def __str__(self) -> str:
        found = f"killed at {', '.join(map(str, self.killed)) or 'nothing'}"
        return f"{found}, not reached {', '.join(map(str, self.missed))}" if self.missed else found


def priced_stage(folder: Path, sim: ForkedRehearsal) -> Stage:
    """Make a stage in which the models cost what the provider charges."""
    stage = Stage(folder, sim)
    declare_prices(folder)
    return stage


def order_of(stage: Stage, kind: str, name: str) -> Order:
    order = stage.order(20, concurrency=5, name=name, waits=True)
    if kind == "live":
        return order
    if kind == "mixed":
        return replace(order, workload="both")
    return replace(order, workload="judged", dispatch="batch", calls=10)


async def trace(stage: Stage, order: Order, *options: str) -> Ended:
    """Let strace join a driving process that waits, let it go, and wait for its end."""
    driver = await stage.start(order)
    await driver.ready()
    tracer = await asyncio.create_subprocess_exec(
        *("strace", "-f", "-p", str(driver.pid), *options), stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    )
    assert tracer.stderr is not None
    said = await asyncio.wait_for(tracer.stderr.readline(), PATIENCE)
    if b"attached" not in said:
        await driver.kill()
        pytest.fail(f"strace cannot trace here, which these proofs need: {said.decode()}")
    driver.go()
    ended, _ = await asyncio.gather(driver.end(), asyncio.wait_for(tracer.communicate(), PATIENCE))
    return ended


async def places_of(stage: Stage, order: Order) -> list[Place]:
    """Trace an undisturbed process, and give every system call that it made from the moment it was ready."""
    log = stage.folder / "trace.log"
    ended = await trace(stage, order, "-o", str(log))
    assert ended.code == 0, ended
    counts: Counter[tuple[bytes, bytes]] = Counter()
    places = []
    for line in log.read_bytes().splitlines():
        if (found := LINE.match(line)) is not None:
            counts[found[1], found[2]] += 1
            places.append(Place(found[2].decode(), counts[found[1], found[2]]))
    return [place for place in places if place.call not in PRIVATE]


async def kill_and_finish(
    stage: Stage, order: Order, places: Sequence[Place], first: str, dice: random.Random
) -> Killings:
    """Kill one process after the other, the first at a certain call, then let the last one finish."""
    killings = Killings()
    call = first
    for _ in range(dice.randint(1, MAX_KILLS)):
        place = dice.choice([place for place in places if place.call == call])
        ended = await trace(stage, order, "-o", "/dev/null", *place.inject())
        if not ended.killed:  # it was done before, or waits for what nobody can decide for it
            killings.missed.append(place)
            break
        killings.killed.append(place)
        # As likely for each kind of call: most calls are reads, and few of them are of interest.
        call = dice.choice(kinds_of(places))
    ended = await stage.drive(replace(order, resubmit=True, waits=False))
    assert ended.code == 0, ended
    return killings


def kinds_of(places: Sequence[Place]) -> list[str]:
    return sorted({place.call for place in places})


async def play(folder: Path, sim: ForkedRehearsal, kind: str, places: Sequence[Place], seed: int) -> list[Killings]:
    """Begin runs until one of them was killed; what was not killed must hold the law as well."""
    dice, tried = random.Random(f"{kind} {seed}"), list[Killings]()
    calls = kinds_of(places)
    while len(tried) < TRIES and not any(one.killed for one in tried):
        sim.reset()
        stage = priced_stage(folder / f"{seed}-{len(tried)}", sim)
        first = calls[seed] if seed < len(calls) and not tried else dice.choice(sorted(LASTING.intersection(calls)))
        tried.append(await kill_and_finish(stage, order_of(stage, kind, "fleet"), places, first, dice))
        await check_law(stage)
    print(f"{kind} {seed}: {'; '.join(map(str, tried))}")
    return tried


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
    tmp_path: Path, quick: ForkedRehearsal, kind: str
) -> None:
    if shutil.which("strace") is None:
        pytest.fail("strace is not installed; these proofs need it: scripts/prepare strace")
    whole = priced_stage(tmp_path / "whole", quick)
    places = await places_of(whole, order_of(whole, kind, "whole"))
    await check_law(whole)
    played = [await play(tmp_path, quick, kind, places, seed) for seed in range(SEEDS[kind])]
    died = Counter(place.call for tried in played for one in tried for place in one.killed)
    missed = Counter(place.call for tried in played for one in tried for place in one.missed)
    print(f"{kind}: {died.total()} kills at {dict(died)}; not reached: {dict(missed)}")
    print(f"{kind}: nothing was killed at {sorted(set(kinds_of(places)) - set(died))}")
    untouched = [seed for seed, tried in enumerate(played) if not any(one.killed for one in tried)]
    assert not untouched, f"with these seeds no process was killed: {untouched}"


async def test_the_law_finds_what_is_wrong_with_a_store(stage: Stage) -> None:
    """The checker is no rubber stamp: each change to the store is one line of it."""
    declare_prices(stage.folder)
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
        "UPDATE attempts SET cost = cost + 1 WHERE key = 'item/00001'": "item/00001: 19 booked, 0 uncertain, but 18",
        "UPDATE attempts SET cost = cost - 1 WHERE key = 'item/00001'": "item/00001: 17 booked, 0 uncertain, but 18",
        "UPDATE attempts SET cost = 5, lane = 'uncertain' WHERE key = 'item/00001'": "0 booked, 5 uncertain, but 18",
        "UPDATE attempts SET cost = cost + 1": "in all",
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
    strange = {**audit, "by_digest": {"strange": 1}, "cost_usd_by_digest": {"strange": 0.000007}}
    nobodys = [line for line in law.violations(database, strange) if "nobody's request" in line]
    assert nobodys == [
        "nobody's request: 0 replies, 0 uncertain, but 1 paid",
        "nobody's request: 0 booked, 0 uncertain, but 7 charged",
    ]
    dearer = {**audit, "cost_usd": audit["cost_usd"] + 0.000001}
    assert [line.partition(" ")[0] for line in law.violations(database, dearer)] == ["in"]
    database.close()
