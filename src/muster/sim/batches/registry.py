"""The batches of a rehearsal server: opened, found and brought up to date; the audit reads the list."""

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Generic, Protocol, TypeVar

from muster.domain.canonical import Json
from muster.sim.audit import AuditLog
from muster.sim.batches.batch import MemberOutcome, Schedule, SimBatch, SimBatchMember, Wording, make_schedule, moment
from muster.sim.batches.settler import Settler
from muster.sim.faults import Fault, FaultKind, Op, Plans
from muster.sim.options import Options
from muster.sim.protocols.ask import SimRefusal


class BatchRegistry:
    """Every batch of a server, in the order of creation, deleted ones too."""

    def __init__(
        self, options: Options, book: AuditLog, plans: Plans, settler: Settler, clock: Callable[[], float]
    ) -> None:
        self._seconds = options.batch_ms / 1000
        self._book = book
        self._plans = plans
        self._settler = settler
        self.numbers = count(1)
        self.file_numbers = count(1)
        self.now = clock
        self.clear()

    def clear(self) -> None:
        """Forget every batch."""
        self.batches: list[SimBatch] = []
        self._open: list[SimBatch] = []
        self._listed: AccountItems[SimBatch] = AccountItems()
        self.files: AccountItems[File] = AccountItems()

    def find(self, wording: Wording, account: str, name: str) -> SimBatch | None:
        """Find a batch of an account."""
        return self._listed.get(_owner(wording, account), name)

    def newest_first(self, wording: Wording, account: str) -> list[SimBatch]:
        """Return the batches of an account."""
        return self._listed.newest_first(_owner(wording, account))

    def drop(self, batch: SimBatch) -> None:
        """Keep a batch no longer, but for the audit."""
        self._listed.drop(_owner(batch.wording, batch.account), batch.id)
        batch.output, batch.errors = [], []

    def pick_fault(self, content: bytes) -> Fault | None:
        """Pick what goes wrong with a batch as a whole, by what is in it."""
        plan = self._plans.of(Op.BATCH)
        if plan.idle:
            return None
        fault = plan.pick(hashlib.sha256(content).hexdigest() if plan.faults.rates else "", "", "")
        if fault is not None:
            self._book.fault(fault.name)
        return fault

    def open(
        self,
        wording: Wording,
        account: str,
        members: list[SimBatchMember],
        *,
        fault: Fault | None = None,
        about: Mapping[str, Json] | None = None,
        problems: Iterable[Json] = (),
    ) -> SimBatch:
        """Open a batch; its members are processed in an order of their own."""
        name = f"{wording.prefix}{next(self.numbers):08d}"
        random.Random(f"{self._plans.faults.seed}:{name}").shuffle(members)  # noqa: S311 - no secret
        batch = SimBatch(
            id=name,
            account=account,
            wording=wording,
            schedule=self.schedule(self.now(), expiring=fault is not None and fault.kind is FaultKind.EXPIRY),
            members=members,
            about=about or {},
            problems=tuple(problems),
            fault=fault,
        )
        self.put(batch)
        return batch

    def put(self, batch: SimBatch, *, listed: bool = True) -> None:
        """Keep a batch; one that its owner has deleted is kept for the audit only."""
        self.batches.append(batch)
        if not batch.closed:
            self._open.append(batch)
        if listed:
            self._listed.put(_owner(batch.wording, batch.account), batch)

    def schedule(self, created: float, *, expiring: bool = False) -> Schedule:
        """Plan a batch of this server."""
        return make_schedule(created, self._seconds, expiring=expiring)

    def settle(self, only: Iterable[SimBatch] | None = None) -> Iterator[None]:
        """Bring these batches up to date, or all of them, in small steps."""
        now = self.now()
        for batch in tuple(self._open) if only is None else only:
            yield from self._settler.settle(batch, now)
        self._open = [batch for batch in self._open if not batch.closed]

    def entries(self) -> tuple[Json, ...]:
        """Return the entries of all batches for the audit."""
        return tuple(self._entry(batch) for batch in self.batches)

    def _entry(self, batch: SimBatch) -> Json:
        return {
            "id": batch.id,
            "provider": batch.wording.provider,
            "account": batch.account,
            "created_at": moment(batch.schedule.created),
            "status": batch.wording.status(batch.phase),
            "requests": batch.size,
            **{verdict.value: batch.counts[verdict] for verdict in MemberOutcome},
            "metadata": batch.about.get("metadata"),
            "models": sorted(batch.models),
        }


def _owner(wording: Wording, account: str) -> str:
    return f"{wording.provider}/{account}"


class Named(Protocol):
    """Whatever has an id."""

    @property
    def id(self) -> str:
        """Its name, which nothing else has."""


T = TypeVar("T", bound=Named)


class AccountItems(Generic[T]):
    """Items by account: under one key, nobody sees those of another."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[str, T]] = {}

    def put(self, account: str, thing: T) -> None:
        """Keep a thing."""
        self._kept.setdefault(account, {})[thing.id] = thing

    def get(self, account: str, name: str) -> T | None:
        """Find a thing."""
        return self._kept.get(account, {}).get(name)

    def drop(self, account: str, name: str) -> None:
        """Keep a thing no longer."""
        self._kept.get(account, {}).pop(name, None)

    def all(self) -> list[tuple[str, T]]:
        """Return every thing with its account."""
        return [(account, thing) for account, kept in self._kept.items() for thing in kept.values()]

    def newest_first(self, account: str) -> list[T]:
        """Return all things of an account."""
        return list(self._kept.get(account, {}).values())[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(Generic[T]):
    """Some of a list, and whether there are more in the direction it was read."""

    things: Sequence[T]
    more: bool

    @property
    def ends(self) -> dict[str, str | bool | None]:
        """The fields of a list that both protocols have."""
        first, last = (self.things[0].id, self.things[-1].id) if self.things else (None, None)
        return {"has_more": self.more, "first_id": first, "last_id": last}


def page_after(things: Sequence[T], limit: int, after: str | None) -> ListPage[T]:
    """Return the things that follow `after`, or the first ones."""
    start = 0 if after is None else _place(things, after) + 1
    return ListPage(things=things[start : start + limit], more=start + limit < len(things))


def page_before(things: Sequence[T], limit: int, before: str) -> ListPage[T]:
    """Return the things that come just before `before`."""
    end = _place(things, before)
    start = max(0, end - limit)
    return ListPage(things=things[start:end], more=start > 0)


def limit_of(query: Mapping[str, str], default: int, most: int) -> int:
    """Read how many things are wanted on a page."""
    limit = query.get("limit", str(default))
    if not limit.isdecimal() or not 1 <= int(limit) <= most:
        raise SimRefusal(400, f"limit: expected a number from 1 to {most}", code="invalid_value", param="limit")
    return int(limit)


def _place(things: Sequence[T], name: str) -> int:
    for index, thing in enumerate(things):
        if thing.id == name:
            return index
    raise SimRefusal(400, f"there is nothing with the id {name} to list from")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class File:
    """A named content; of a batch's output, the batch it came from."""

    id: str
    name: str
    purpose: str
    created: float
    lines: Sequence[bytes]  # an upload is one
    batch: SimBatch | None = None

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return sum(map(len, self.lines))


def spell_file(file: File) -> Json:
    """Spell a file as its provider does."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": int(file.created),
        "expires_at": None,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }
