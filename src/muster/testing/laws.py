"""The laws of money and of work, checked in the store that a program has open."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from muster.app import Muster
from muster.app.runs.details import CallDetails
from muster.domain.entry import AttemptState
from muster.domain.errors import Overdraft
from muster.domain.ids import RunId
from muster.domain.money import Lane
from muster.domain.run import TERMINAL, Run

PAGE = 500
OPEN = frozenset({AttemptState.STARTED, AttemptState.PARKED})
EXPLAINED = frozenset({AttemptState.UNCERTAIN, AttemptState.FAILED, AttemptState.CANCELED, AttemptState.EXPIRED})
OVERDRAFT = Overdraft.code
AGAIN = "\x1f"  # in the key of a child that was tried again: between its key and the run before

Piece = tuple[str, ...]  # one piece of work: the lineage of the root, the keys of children from there, key and digest


async def assert_laws(m: Muster, paid: Mapping[str, int] | None = None) -> None:
    """Raise AssertionError, with a line for each violation, unless every run of the store obeys both laws.

    The law of money: in a run that is over every attempt is settled and nothing is reserved, what a run has spent is
    the sum of its attempts, and no more than its budget. The law of work: a lineage has one end, and no piece of work
    in it has two replies. `paid` says how often a request was answered, by digest: no oftener than its pieces of work
    and the attempts of uncertain or failed outcome explain.
    """
    if found := await violations(m, paid):
        raise AssertionError("\n".join(found))


async def violations(m: Muster, paid: Mapping[str, int] | None = None) -> Sequence[str]:
    """Return a line for each violation of a law."""
    books = Books()
    async for run in _runs(m):
        books.runs[run.id] = run
        books.calls[run.id] = [call async for call in _calls(m, run.id)]
        books.late.update([(run.id, key) async for key in _told_late(m, run.id)])
    found = [*_of_lineages(books.runs), *_of_attempts(books), *_of_spending(books), *_of_work(books)]
    return found if paid is None else [*found, *_of_payments(books, paid)]


@dataclass(frozen=True, slots=True)
class Books:
    """What a store has: its runs, their calls with the attempts, and which replies were late."""

    runs: dict[RunId, Run] = field(default_factory=dict)
    calls: dict[RunId, list[CallDetails]] = field(default_factory=dict)
    late: Counter[tuple[RunId, str]] = field(default_factory=Counter)

    def pieces(self) -> Iterator[tuple[Piece, RunId, CallDetails]]:
        """Yield every call with the piece of work that it is a part of."""
        for run, calls in self.calls.items():
            for call in calls:
                yield (*self._place(self.runs[run]), call.entry.key, call.entry.digest), run, call

    def _place(self, run: Run) -> Piece:
        parent = None if run.parent is None else self.runs.get(run.parent)
        if parent is None:
            return (run.lineage_level,)
        return (*self._place(parent), (run.parent_key or "").partition(AGAIN)[0])


async def _runs(m: Muster) -> AsyncIterator[Run]:
    last: str | None = None
    while page := await m.runs.page(after=last, limit=PAGE):
        for run in page:
            yield run
        last = page[-1].id


async def _calls(m: Muster, run: RunId) -> AsyncIterator[CallDetails]:
    last: str | None = None
    while page := await m.runs.attempts(run, after=last, limit=PAGE):
        for call in page:
            yield call
        last = page[-1].entry.key


async def _told_late(m: Muster, run: RunId) -> AsyncIterator[str]:
    last = 0
    while events := await m.runs.events(run, last, PAGE):
        for event in events:
            if event.kind == "call.late":
                yield str(event.data["key"])
        last = events[-1].seq


def _of_lineages(runs: Mapping[RunId, Run]) -> Iterator[str]:
    """Of the runs of a lineage one is its end, and all others were continued."""
    ends: dict[str, list[RunId]] = {}
    for run in runs.values():
        if run.parent is None and run.continued_by is None:
            ends.setdefault(run.lineage_level, []).append(run.id)
    for lineage, found in ends.items():
        if len(found) > 1:
            yield f"{lineage} has {len(found)} ends: {', '.join(found)}"


def _of_attempts(books: Books) -> Iterator[str]:
    """In a run that is over every attempt is settled; what is uncertain is booked as it was reserved."""
    for run, calls in books.calls.items():
        is_over = books.runs[run].state in TERMINAL
        for place, attempt in ((_place(run, call, one.n), one) for call in calls for one in call.attempts):
            if is_over and attempt.state in OPEN:
                yield f"{place} is {attempt.state}, and its run is over"
            if attempt.cost < 0 or attempt.reserved < 0:
                yield f"{place} has an amount below zero"
            booked = attempt.cost, attempt.lane
            if attempt.state is AttemptState.UNCERTAIN and booked != (attempt.reserved, Lane.UNCERTAIN):
                yield f"{place} is uncertain and is not booked as it was reserved"


def _of_spending(books: Books) -> Iterator[str]:
    """A run has spent the sum of the attempts of it and its children, has nothing reserved, and kept its budget."""
    sums: Counter[RunId] = Counter()
    for at, calls in books.calls.items():
        cost = sum(attempt.cost for call in calls for attempt in call.attempts)
        above: RunId | None = at
        while above is not None and above in books.runs:
            sums[above] += cost
            above = books.runs[above].parent
    for run in books.runs.values():
        spent, total = run.spent, run.total
        if spent.settled != sums[run.id]:
            yield f"run {run.id} has spent {spent.settled} microdollars, its attempts {sums[run.id]}"
        if run.state in TERMINAL and spent.reserved:
            yield f"run {run.id} is over, and {spent.reserved} microdollars are still reserved"
        if run.cap is not None and total.billed + total.uncertain > run.cap and run.ended_reason != OVERDRAFT:
            yield f"run {run.id} has spent more than its {run.cap} microdollars"


def _of_work(books: Books) -> Iterator[str]:
    """No piece of work has two replies, except late ones."""
    replies: Counter[Piece] = Counter()
    late: Counter[Piece] = Counter()
    for piece, run, call in books.pieces():
        replies[piece] += sum(one.state is AttemptState.SUCCEEDED for one in call.attempts)
        late[piece] += books.late[run, call.entry.key]
    for piece, times in replies.items():
        if times > 1 + late[piece]:
            yield f"{' / '.join(piece[:-1])}: answered {times} times, {late[piece]} of them late"


def _of_payments(books: Books, paid: Mapping[str, int]) -> Iterator[str]:
    """A request was answered as often as there are replies, and no oftener than work and failures explain."""
    work: dict[str, set[Piece]] = {}
    replies: Counter[str] = Counter()
    most: Counter[str] = Counter()
    for piece, run, call in books.pieces():
        digest = call.entry.digest
        if call.attempts:
            work.setdefault(digest, set()).add(piece)
        replies[digest] += sum(one.state is AttemptState.SUCCEEDED for one in call.attempts)
        most[digest] += sum(one.state in EXPLAINED for one in call.attempts) + books.late[run, call.entry.key]
    for digest in sorted({*work, *paid}):
        times, pieces = paid.get(digest, 0), work.get(digest, set())
        named = ", ".join(sorted(" / ".join(piece[:-1]) for piece in pieces)) or "a request of no run"
        if times < replies[digest]:
            yield f"{named}: {replies[digest]} replies, and the agent answered {times} times"
        if times > len(pieces) + most[digest]:
            yield f"{named}: answered {times} times, which is explained {len(pieces) + most[digest]} times"


def _place(run: RunId, call: CallDetails, attempt: int) -> str:
    return f"run {run}: attempt {attempt} of {call.entry.key}"
