"""The office where batches are opened, found and brought up to date; the audit reads its list."""

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

from muster.domain.canonical import Json
from muster.sim.audit import Book
from muster.sim.batches.batch import Batch, Member, Verdict, Wording
from muster.sim.batches.file import File
from muster.sim.batches.schedule import Schedule, make_schedule, moment
from muster.sim.batches.settling import Settler
from muster.sim.batches.shelf import Shelf
from muster.sim.faults import Fault, Kind, Op
from muster.sim.options import Options
from muster.sim.plan import Plans


class Office:
    """Every batch of a server, in the order of creation, deleted ones too."""

    def __init__(
        self, options: Options, book: Book, plans: Plans, settler: Settler, clock: Callable[[], float]
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
        self.batches: list[Batch] = []
        self._open: list[Batch] = []
        self._shelf: Shelf[Batch] = Shelf()
        self.files: Shelf[File] = Shelf()

    def find(self, wording: Wording, account: str, name: str) -> Batch | None:
        """Find a batch of an account."""
        return self._shelf.get(_owner(wording, account), name)

    def newest_first(self, wording: Wording, account: str) -> list[Batch]:
        """Give the batches of an account."""
        return self._shelf.newest_first(_owner(wording, account))

    def drop(self, batch: Batch) -> None:
        """Keep a batch no longer, but for the audit."""
        self._shelf.drop(_owner(batch.wording, batch.account), batch.id)
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
        members: list[Member],
        *,
        fault: Fault | None = None,
        about: Mapping[str, Json] | None = None,
        problems: Iterable[Json] = (),
    ) -> Batch:
        """Open a batch; its members are processed in an order of their own."""
        name = f"{wording.prefix}{next(self.numbers):08d}"
        random.Random(f"{self._plans.faults.seed}:{name}").shuffle(members)  # noqa: S311 - no secret
        batch = Batch(
            id=name,
            account=account,
            wording=wording,
            schedule=self.schedule(self.now(), expiring=fault is not None and fault.kind is Kind.EXPIRY),
            members=members,
            about=about or {},
            problems=tuple(problems),
            fault=fault,
        )
        self.put(batch)
        return batch

    def put(self, batch: Batch, *, listed: bool = True) -> None:
        """Keep a batch; one that its owner has deleted is kept for the audit only."""
        self.batches.append(batch)
        if not batch.closed:
            self._open.append(batch)
        if listed:
            self._shelf.put(_owner(batch.wording, batch.account), batch)

    def schedule(self, created: float, *, expiring: bool = False) -> Schedule:
        """Plan a batch of this server."""
        return make_schedule(created, self._seconds, expiring=expiring)

    def settle(self, only: Iterable[Batch] | None = None) -> Iterator[None]:
        """Bring these batches up to date, or all of them, in small steps."""
        now = self.now()
        for batch in tuple(self._open) if only is None else only:
            yield from self._settler.settle(batch, now)
        self._open = [batch for batch in self._open if not batch.closed]

    def entries(self) -> tuple[Json, ...]:
        """Tell the audit about every batch."""
        return tuple(self._entry(batch) for batch in self.batches)

    def _entry(self, batch: Batch) -> Json:
        return {
            "id": batch.id,
            "provider": batch.wording.provider,
            "account": batch.account,
            "created_at": moment(batch.schedule.created),
            "status": batch.wording.status(batch.phase),
            "requests": batch.size,
            **{verdict.value: batch.counts[verdict] for verdict in Verdict},
            "metadata": batch.about.get("metadata"),
            "models": sorted(batch.models),
        }


def _owner(wording: Wording, account: str) -> str:
    return f"{wording.provider}/{account}"
