"""A run under one driver: what its calls come from and count under, which are known, and whether it may make another.

The call path, its branch for batches, the context and the drive of a run all stand on these objects.
"""

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from muster.domain.budget import CALL, Budgets, Excess, Level, Refused, UserBudget, overdraft, run_level
from muster.domain.canonical import Json
from muster.domain.dispatch import Mode
from muster.domain.entry import Entry, EntryKind, EntryState
from muster.domain.errors import KeyReused, NotFound, Overdraft, RecordedFailure, ReplayMiss, StopRun
from muster.domain.ids import BatchId, RunId
from muster.domain.money import NOTHING, Microdollars
from muster.domain.rules import DefaultRules
from muster.domain.run import CALLS_ONLY, REPLAYS, Reuse, Run
from muster.engine.base.asked import AskedKeys
from muster.engine.base.clock import STEP, Activity, Clock
from muster.store.base import Store

# What to do when a resumed run asks something else than it did.
CODE_CHANGED = "if the code changed meanwhile: let runs that began before ask what they asked (ctx.version)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ancestor:
    """A run whose journal counts, wholly or up to a key."""

    run: RunId
    fork_key: str | None = None
    before: int | None = None
    calls_only: bool = False

    @property
    def whole(self) -> bool:
        """Return whether everything in it counts."""
        return self.fork_key is None and not self.calls_only

    def covers(self, key: str, kind: EntryKind) -> bool:
        """Return whether this key may be taken from here: not the fork's key, nor anything below it."""
        if self.calls_only and kind in (EntryKind.STEP, EntryKind.EMIT, EntryKind.SIGNAL):
            return False
        return self.fork_key is None or (key != self.fork_key and not key.startswith(self.fork_key + "/"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildOptions:
    """What a child run is given besides its spec; what is None it has from its parent."""

    cap: Microdollars | None = None
    mode: Mode | None = None
    timeout: float | None = None


class Inheritance:
    """Looks keys up in the ancestors, nearest first."""

    def __init__(self, store: Store, ancestors: tuple[Ancestor, ...] = (), *, reuse: Reuse = Reuse.NOTHING) -> None:
        self._store = store
        self._ancestors = ancestors
        self.reuse = reuse

    @property
    def ancestors(self) -> tuple[Ancestor, ...]:
        """The runs that are looked at, nearest first."""
        return self._ancestors

    @property
    def replays(self) -> bool:
        """Return whether no calls may be made."""
        return self.reuse in REPLAYS

    @property
    def empty(self) -> bool:
        """Return whether there is nothing to take over."""
        return not self._ancestors

    async def find(
        self,
        key: str,
        digest: str,
        kind: EntryKind = EntryKind.CALL,
        *,
        final: bool = False,
        failures: Collection[str] = (),
    ) -> Entry | None:
        """Return an outcome to take over; in a replay, or where it must be known, a miss is an error with the key.

        A failure is taken over only then, or when its code is one of `failures`.
        """
        final = final or self.replays
        entry = await self._nearest(key, kind)
        if entry is not None and entry.digest == digest and _usable(entry, final, failures):
            return entry
        if final and (kind is EntryKind.CALL or any(ancestor.covers(key, kind) for ancestor in self._ancestors)):
            known = "another request was recorded under it" if entry and entry.digest != digest else "it has no outcome"
            reason = known if entry else "it was never recorded"
            raise ReplayMiss(f"replay: key {key!r} cannot be answered: {reason}")
        return None

    async def parked(self, key: str, digest: str) -> tuple[BatchId, int] | None:
        """Return the batch that still holds the call of an ancestor under this key."""
        entry = None if self.replays else await self._nearest(key, EntryKind.CALL)
        if entry is None or entry.digest != digest or entry.state is not EntryState.OPEN:
            return None
        return await self._store.batches.parked(entry.run, key)

    async def child(self, key: str) -> Run | None:
        """Return the child run that an ancestor had under this key."""
        entry = await self._nearest(key, EntryKind.CHILD)
        if entry is None or entry.kind is not EntryKind.CHILD:
            return None
        return await self._store.journal.newest_child(entry.run, key)

    async def _nearest(self, key: str, kind: EntryKind) -> Entry | None:
        for ancestor in self._ancestors:
            if not ancestor.covers(key, kind):
                continue
            if ancestor.before is None:
                entry = await self._store.journal.find(ancestor.run, key)
            else:
                entry = await self._store.journal.find_before(ancestor.run, key, ancestor.before)
            if entry is not None:
                return entry
        return None


def _usable(entry: Entry, final: bool, failures: Collection[str]) -> bool:
    if entry.state is EntryState.FAILED:
        return final or _is_one_of(entry, failures)
    return entry.state is EntryState.DONE


def _is_one_of(entry: Entry, failures: Collection[str]) -> bool:
    return entry.error is not None and entry.error.get("code") in failures


async def inheritance_of(store: Store, run: Run) -> Inheritance:
    """Follow a run's origins back; a fork ends the line, since what came later is not wanted."""
    ancestors: list[Ancestor] = []
    seen = {run.id}
    origin = run.origin
    calls_only = False
    while origin is not None and origin.run not in seen:
        seen.add(origin.run)
        before = None
        if origin.fork_key is not None:
            before = await store.journal.position(origin.run, origin.fork_key)
            if before is None:
                raise NotFound(f"run {origin.run} has no entry under the key {origin.fork_key!r}")
        calls_only = calls_only or origin.reuse in CALLS_ONLY
        ancestors.append(Ancestor(run=origin.run, fork_key=origin.fork_key, before=before, calls_only=calls_only))
        parent = await store.runs.get(origin.run)
        origin = None if parent is None or before is not None else parent.origin
    reuse = Reuse.NOTHING if run.origin is None else run.origin.reuse
    return Inheritance(store, tuple(ancestors), reuse=reuse)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetCaps:
    """What calls may cost as the settings of this process say: all of a day, those of each user, and a single one."""

    day: Microdollars | None = None
    call: Microdollars | None = None
    users: Mapping[str, Microdollars] = field(default_factory=dict)

    def user(self, budget: UserBudget | None) -> UserBudget | None:
        """Return the budget of a user with the cap that is set here; else the one that the run was created under."""
        return None if budget is None else replace(budget, day_cap=self.users.get(budget.name, budget.day_cap))


class Levels:
    """Gives the levels that count now; the day changes under a run that goes on past midnight (UTC)."""

    def __init__(
        self,
        runs: tuple[Level, ...],
        day_cap: Microdollars | None,
        user: UserBudget | None = None,
        call_cap: Microdollars | None = None,
    ) -> None:
        """Take the levels of runs, that of the lineage first."""
        self.runs, self.call_cap = runs, call_cap
        self._day_cap, self._user = day_cap, user
        self._day = -1
        self._levels: tuple[Level, ...] = ()

    def now(self, at: float) -> tuple[Level, ...]:
        """Return the levels in the order in which they are locked."""
        day = int(at // 86_400)
        if day != self._day:
            name = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")
            users = () if self._user is None else (self._user.level(name),)
            everything = (*self.runs, *users, Level(id=f"day:{name}", cap=self._day_cap))
            self._day, self._levels = day, tuple(sorted(everything, key=lambda level: level.id))
        return self._levels

    def require_call(self, most: Microdollars) -> None:
        """Raise BudgetExhausted for a call that can cost more than a single one may."""
        if self.call_cap is not None and most > self.call_cap:
            raise Refused(level=CALL, cap=self.call_cap, settled=NOTHING, most=most).error

    @property
    def lineage(self) -> Level:
        """The budget that the run shares with those it is resumed as."""
        return self.runs[0]

    @property
    def capped(self) -> bool:
        """Return whether any level has a cap."""
        others = (self.call_cap, self._day_cap, self._user and self._user.day_cap)
        return any(cap is not None for cap in (*(level.cap for level in self.runs), *others))


async def budgets_of(store: Store, run: Run) -> Budgets:
    """Return the budgets that a run was stored with; an older one has a budget of its own, below its parents'."""
    if run.budgets is not None:
        return run.budgets
    above = []
    parent = run.parent
    while parent is not None:
        found = await store.runs.get(parent)
        if found is None:
            break
        above.append(run_level(found.id))
        parent = found.parent
    return Budgets(lineage=run_level(run.id), above=tuple(above))


async def levels_of(store: Store, run: Run, caps: BudgetCaps) -> Levels:
    """Return the levels of a run; where no day cap is set here, the one it was created under holds."""
    budgets = await budgets_of(store, run)
    names = tuple(dict.fromkeys((budgets.lineage, run_level(run.id), *budgets.above)))
    balances = await store.runs.balances(names)
    known = {name: balance.cap for name, balance in balances.items()}
    runs = tuple(Level(id=name, cap=known.get(name), in_ledger=True) for name in names)
    day_cap = budgets.day_cap if caps.day is None else caps.day
    return Levels(runs, day_cap, caps.user(budgets.user), caps.call)


async def overdraft_of(store: Store, run: RunId, levels: Levels, excess: Excess | None, at: float) -> Overdraft | None:
    """Return how a run exceeded a budget: by a call of its own, in its lineage, or by a child under any budget."""
    counted = levels.now(at) if excess is not None else (levels.lineage,)
    found = overdraft(excess, counted, await store.runs.balances(level.id for level in counted))
    if found is not None:
        return found
    for child in await store.archive.children(run):
        if child.ended_reason == Overdraft.code:
            return Overdraft(f"child run {child.id}: {(child.error or {}).get('message', 'it exceeded a budget')}")
    return None


async def first_excess(store: Store, run: RunId) -> Excess | None:
    """Return the first call that cost more than was reserved for it, also under a former driver."""
    event = await store.events.first(run, "overdraft")
    if event is None:
        return None
    key, cost, reserved = (event.data[name] for name in ("key", "cost", "reserved"))
    return Excess(key=str(key), cost=Microdollars(int(str(cost))), reserved=Microdollars(int(str(reserved))))


@dataclass(frozen=True, slots=True, kw_only=True)
class DrivenRun:
    """A run that this process has claimed."""

    run: Run  # as it was when it was claimed
    epoch: int  # of the claim
    levels: Levels
    inheritance: Inheritance
    activity: Activity
    rules: DefaultRules  # of the limits that its requests leave open, and of what its workload counts
    asked: AskedKeys
    # Goes into the volatile part of its requests; may hold what nobody else should know.
    attached: Mapping[str, Json] = field(default_factory=dict, repr=False)


class CallJournal:
    """Looks calls up, in the journal of a run and in those that it comes from."""

    def __init__(self, driven: DrivenRun, store: Store, clock: Clock) -> None:
        self._run, self._epoch, self._inheritance = driven.run.id, driven.epoch, driven.inheritance
        self._store, self._clock, self._asked = store, clock, driven.asked

    async def find(self, key: str, digest: str, *, final: bool = False, failures: Collection[str] = ()) -> Entry | None:
        """Return the entry of a call, taken over if it is another run's; raise its failure if it is not tried again.

        That is so for all failures of what is `final` or replayed, else for those whose code is one of `failures`.
        """
        entry = await self._store.journal.find(self._run, key)
        if entry is not None:
            require_same(key, entry.digest, digest)
        else:
            entry = await self._inheritance.find(key, digest, final=final, failures=failures)
            if entry is not None:
                await self._store.journal.reuse(self._run, self._epoch, entry, self._clock.now())
            else:
                self._asked.note_missing(key)
        final = final or self._inheritance.replays
        if entry is not None and entry.error is not None and (final or _is_one_of(entry, failures)):
            raise RecordedFailure(entry.error)
        return entry


def require_same(key: str, recorded: str, asked: str) -> None:
    """Raise KeyReused when the digests of two requests under one key differ."""
    if recorded != asked:
        raise KeyReused(
            f"key {key!r} is used for another request in this run",
            suggestions=("use a different key for each request", "or fork the run from there on", CODE_CHANGED),
        )


class StopState:
    """Refuses new work of one run once it has been told to stop; a held refusal waits for `release`."""

    __slots__ = ("_held", "_released", "error", "raised")

    def __init__(self) -> None:
        self.error: StopRun | None = None
        self.raised: StopRun | None = None  # to the workload: it decides the end of the run, whatever that returns
        self._held: asyncio.Event | None = None
        self._released = False

    def tell(self, error: StopRun) -> None:
        """Let no new attempt, step or child start; the first error counts."""
        self.error = self.error or error

    def note(self, error: StopRun) -> None:
        """Note what is being raised to the workload: it stops the run, and the step in which it is raised."""
        self.tell(error)
        self.raised = self.raised or error
        step = STEP.get()
        if step is not None:
            step.stopped = step.stopped or error

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Note what stops the run when it is raised in here."""
        try:
            yield
        except StopRun as error:
            self.note(error)
            raise

    async def admit(self) -> None:
        """Raise if the run has been told to stop, as soon as its workload may learn of it."""
        if self.error is not None:
            await self.wait()
            self.note(self.error)
            raise self.error.with_traceback(None)  # it is raised often, and would keep the frames of all those places

    def hold(self) -> None:
        """Keep refusals back until `release`."""
        if self._held is None and not self._released:
            self._held = asyncio.Event()

    def release(self) -> None:
        """Let all refusals go, for good."""
        self._released = True
        if self._held is not None:
            self._held.set()

    async def wait(self) -> None:
        """Wait until refusals are no longer held."""
        if self._held is not None:
            await self._held.wait()


class CallGuard:
    """Decides whether a run may make another call: not once it was told to stop, nor after an overdraft."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels
        self.halt = StopState()
        self.excess: Excess | None = None  # the first call that cost more than was reserved for it

    @property
    def capped(self) -> bool:
        """Return whether any budget of the run has a cap."""
        return self._levels.capped

    @property
    def refusal(self) -> StopRun | None:
        """Why no call may be made; after an overdraft a run may still finish what it has answers for."""
        excess = self.excess
        if self.halt.error is None and excess is not None and (excess.reserved or self._levels.capped):
            return excess.refusal  # without either nobody asked for a limit
        return self.halt.error

    def check(self) -> None:
        """Raise if no call may be made."""
        if self.refusal is not None:
            raise self.refusal.with_traceback(None)

    def add_excess(self, key: str, cost: Microdollars, reserved: Microdollars) -> None:
        """Note a call that cost more than was reserved for it; the first counts."""
        self.excess = self.excess or Excess(key=key, cost=cost, reserved=reserved)
