"""Values for the checks of stores: runs, attempts and outcomes to put into one."""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

from collections.abc import Awaitable, Callable

from muster.domain.budget import Level
from muster.domain.call import Reply, Stop, Usage
from muster.domain.entry import (
    AttemptId,
    Opening,
    Outcome,
    Replied,
    Settlement,
)
from muster.domain.errors import MusterError
from muster.domain.ids import RunId
from muster.domain.money import Microdollars
from muster.domain.run import Driver, NewRun, Run
from muster.store.base import Claim, Store

DRIVER = Driver(host="here", pid=1, started="boot/1")
OTHER = Driver(host="there", pid=2, started="boot/2")
DAY = Level(id="day:2027-01-15", cap=None)
NOW = 1_800_000_000.0
SECRET = "sk-check-0123456789"  # noqa: S105 - a store under check is opened with it

Check = Callable[[Store], Awaitable[None]]


def new_run(run_id: str, *, cap: int | None = None, **rest: object) -> NewRun:
    """Make a run to be stored."""
    cap_ = None if cap is None else Microdollars(cap)
    return NewRun(id=RunId(run_id), workload="w", spec={"n": 1}, created_at=NOW, cap=cap_, **rest)  # type: ignore[arg-type]


async def driven(store: Store, name: str = "run1", *, cap: int | None = None) -> tuple[RunId, Claim]:
    """Store a run and claim it."""
    run = await store.runs.create(new_run(name, cap=cap))
    return run.id, await store.leases.claim(run.id, DRIVER, run.lease.epoch, NOW, NOW + 15)


def opening(run: RunId, epoch: int, key: str, *, most: int = 100, cap: int | None = None, n: int = 1) -> Opening:
    """Make an attempt about to start."""
    cap_ = None if cap is None else Microdollars(cap)
    return Opening(
        attempt=AttemptId(run=run, key=key, n=n, epoch=epoch),
        digest="d",
        agent="sim/echo",
        request='{"messages":[]}',
        most=Microdollars(most),
        levels=(DAY, Level(id=f"run:{run}", cap=cap_)),
        at=NOW,
        first=n == 1,
    )


def settling(opened: Opening, outcome: Outcome) -> Settlement:
    """Make the settlement of an attempt."""
    return Settlement(attempt=opened.attempt, outcome=outcome, reserved=opened.most, levels=opened.levels, at=NOW + 1)


def replied(cost: int = 40, text: str = "hello") -> Replied:
    """Make a reply."""
    usage = Usage(input=3, output=2)
    return Replied(reply=Reply(text=text, stop=Stop.END, usage=usage, cost=Microdollars(cost)))


async def raises(kind: type[MusterError], work: Awaitable[object]) -> MusterError:
    """Return the error that a piece of work must raise."""
    try:
        await work
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


async def stored(store: Store, run: RunId) -> Run:
    """Return a run that must be there."""
    found = await store.runs.get(run)
    assert found is not None
    return found
