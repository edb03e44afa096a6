"""The books of a run, read from its store, and what must hold of them whatever happened."""

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from muster.agents.anthropic import wire as anthropic
from muster.agents.openai import wire as openai
from muster.app import Muster
from muster.domain.batch import OVER, Batch, Saving
from muster.domain.call import Request
from muster.domain.canonical import digest
from muster.domain.entry import AttemptState, Entry, EntryKind, EntryState, Event
from muster.domain.money import Lane
from muster.domain.run import Run, RunState
from muster.sim.audit import Audit
from muster.store.base import Attempt
from tests.chaos import work
from tests.chaos.stage import Stage

EVENTS = 1_000_000
NO_SAVING = Saving()
LEFT_OPEN = (AttemptState.STARTED, AttemptState.PARKED)


@dataclass(frozen=True)
class Books:
    """Everything that a store knows of one run, and the budgets of all."""

    run: Run
    entries: Sequence[Entry]
    attempts: Sequence[Attempt]
    events: Sequence[Event]
    reserved: Mapping[str, int]
    batches: Sequence[Batch] = ()
    saving: Saving = NO_SAVING

    @property
    def uncertain(self) -> list[Attempt]:
        return [attempt for attempt in self.attempts if attempt.state is AttemptState.UNCERTAIN]

    @property
    def texts(self) -> dict[str, str]:
        """The replies, by key."""
        return {entry.key: entry.reply.text for entry in self.entries if entry.reply is not None}

    def on_the_wire(self) -> dict[str, str]:
        """Name every call as the provider's audit does, by key."""
        return {entry.key: wire_digest(entry) for entry in self.entries}


async def read_books(stage: Stage, reference: str = "fleet") -> Books:
    async with stage.open() as muster:
        return await books_of(muster, await muster.runs.find(reference))


async def books_of(muster: Muster, run: Run) -> Books:
    return Books(
        run=await muster.runs.get(run.id),
        entries=[
            each async for each in muster._backend.store.archive.entries(run.id) if each.kind is not EntryKind.SIGNAL
        ],
        attempts=await muster._backend.store.archive.attempts(run.id),
        events=await muster._backend.store.events.read(run.id, 0, EVENTS),
        reserved=budgets(muster, "reserved"),
        batches=await muster._backend.store.batches.of_run(run.id),
        saving=await muster._backend.store.batches.saving(run.id),
    )


def budgets(muster: Muster, what: str) -> dict[str, int]:
    """Read one column of all budgets, the days' too."""
    database = sqlite3.connect(muster.settings.database)
    try:
        return dict(database.execute(f"SELECT id, {what} FROM budgets").fetchall())
    finally:
        database.close()


def wire_digest(entry: Entry) -> str:
    """Name a call by the body that the provider receives."""
    assert entry.agent is not None
    request = msgspec.convert(entry.request, Request)
    provider, _, model = entry.agent.partition("/")
    body: dict[str, Any] = (
        anthropic.params(request, model) if provider == "anthropic" else openai.params(request, model)
    )
    return digest(body)


def check_books(books: Books) -> None:
    """Nothing is open, nothing is reserved, the sums are right, the events have no gaps."""
    run = books.run
    assert all(amount == 0 for amount in books.reserved.values()), books.reserved
    assert run.spent.reserved == 0
    assert all(attempt.state not in LEFT_OPEN for attempt in books.attempts)
    sums: Counter[str] = Counter()
    for attempt in books.attempts:
        sums[attempt.lane] += attempt.cost
    assert (run.spent.billed, run.spent.imputed, run.spent.uncertain) == (
        sums["billed"],
        sums["imputed"],
        sums["uncertain"],
    )
    assert run.calls.uncertain == len(books.uncertain)
    assert run.calls.total == len(books.entries)
    assert run.calls.done == len(books.texts)
    assert [event.seq for event in books.events] == list(range(1, run.last_seq + 1))
    check_uncertainty_is_told(books)
    check_batches(books)


def check_batches(books: Books) -> None:
    """Every batch is over, every member of it has one outcome, and its money is that of its members."""
    members: Counter[str] = Counter()
    costs: Counter[str] = Counter()
    for attempt in books.attempts:
        if attempt.batch is not None:
            members[attempt.batch] += 1
            costs[attempt.batch] += attempt.cost if attempt.lane is Lane.BILLED else 0  # uncertain money is apart
    assert books.saving.parked == 0
    assert books.saving.batches == len(books.batches)
    assert books.saving.cost == sum(costs.values())
    for batch in books.batches:
        assert batch.state in OVER, batch
        assert members[batch.id] == batch.requests == batch.tally.over, batch
        assert costs[batch.id] == batch.cost, batch


def check_uncertainty_is_told(books: Books) -> None:
    """The events say what was uncertain, call by call and at every resume, with the money."""
    told = [event for event in books.events if event.data.get("lane") == "uncertain"]
    assert len(told) == len(books.uncertain)
    assert _sum(told, "cost") == books.run.spent.uncertain
    left = [event for event in told if event.kind == "call.uncertain"]
    sums = [event for event in books.events if "uncertain_cost" in event.data]
    assert _sum(sums, "uncertain") == len(left)
    assert _sum(sums, "uncertain_cost") == _sum(left, "cost")


def _sum(events: Sequence[Event], name: str) -> int:
    return sum([int(str(event.data[name])) for event in events])


def check_paid_once(books: Books, audit: Audit) -> None:
    """For every digest: replies ≤ paid ≤ replies + uncertain."""
    names = books.on_the_wire()
    replies = Counter(names[key] for key in books.texts)
    uncertain = Counter(names[attempt.key] for attempt in books.uncertain)
    paid = Counter(audit.by_digest)
    assert paid.keys() <= set(names.values())
    for name in names.values():
        assert replies[name] <= paid[name] <= replies[name] + uncertain[name], name


def check_whole(books: Books, calls: int, size: int = 0) -> None:
    """The run is completed: one right reply for every key."""
    assert books.run.state is RunState.COMPLETED, books.run.error
    assert all(entry.kind is EntryKind.CALL and entry.state is EntryState.DONE for entry in books.entries)
    expected = [work.question(number, size) for number in range(calls)]
    assert books.texts == {work.key_of(number): text for number, text in enumerate(expected)}
    assert books.run.result == {"texts": expected}


def check_judged(books: Books, calls: int, topic: str = "") -> None:
    """The run is completed: every question has its answer, and every answer its verdict."""
    assert books.run.state is RunState.COMPLETED, books.run.error
    assert all(entry.kind is EntryKind.CALL and entry.state is EntryState.DONE for entry in books.entries)
    verdicts = [work.verdict_on(number, topic) for number in range(calls)]
    assert books.texts == {
        **{work.answer_key(number): work.answer_to(number, topic) for number in range(calls)},
        **{work.verdict_key(number): text for number, text in enumerate(verdicts)},
    }
    assert books.run.result == {"texts": verdicts}
