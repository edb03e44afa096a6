"""A small house for the proofs of batches: a folder, a rehearsal server in this process, and an open Muster."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from muster.app import Muster, open_muster
from muster.domain.agent import Timeouts
from muster.domain.batch import Batch
from muster.domain.canonical import Json
from muster.domain.dispatch import Dispatch, Fallback, Mode
from muster.domain.ids import BatchId
from muster.domain.run import Run, RunState
from muster.engine.base.clock import Clock, SystemClock
from muster.engine.batches.base import Patience
from muster.settings import load_settings
from muster.sim.audit import Audit
from muster.sim.files import read_faults
from muster.sim.options import Options
from muster.sim.server import Server, serve
from tests.chaos.books import Books, books_of, check_books, check_paid_once
from tests.chaos.stage import HASTY, LOOK_SECONDS, declare_prices, until
from tests.chaos.work import ANTHROPIC, OPENAI
from tests.engine.batches import work  # registers the workloads in this process

__all__ = ["ANTHROPIC", "OPENAI", "PROVIDERS", "House", "batch", "open_house", "until", "work"]

PROVIDERS = (ANTHROPIC, OPENAI)
QUICK = Patience(settle=0.02, poll_first=0.01, poll_longest=0.05, grace=0.3)
NEVER_QUIET = replace(QUICK, settle=100_000.0, linger=100_000.0)  # flushes full batches only
SOON = Timeouts(connect=60.0, idle=3.0, call=3.0, grace=0.5)


class HurriedClock(SystemClock):
    """The time of this machine, which a test can move ahead."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


def batch(*, fallback: Fallback = Fallback.FAIL, batches: int = 3) -> Dispatch:
    """Say that a run's calls go into batches."""
    return Dispatch(mode=Mode.BATCH, fallback=fallback, batches=batches)


class House:
    """One folder before one rehearsal server."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.server = folder, server
        folder.mkdir(exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """All that is known here of the outside."""
        return {
            "ANTHROPIC_API_KEY": "sk-test-anthropic",
            "OPENAI_API_KEY": "sk-test-openai",
            "ANTHROPIC_BASE_URL": self.server.anthropic,
            "OPENAI_BASE_URL": self.server.openai,
        }

    @property
    def audit(self) -> Audit:
        """What was paid, as the provider says."""
        return self.server.audit

    @property
    def batches(self) -> list[Mapping[str, Any]]:
        """The batches, as the provider says."""
        return list(self.audit.batches)

    def declare(self, more: str = "") -> None:
        """Give both models the server's prices."""
        declare_prices(self.folder, more)

    def play(self, *script: Mapping[str, Any], **rest: Any) -> None:
        """Let things go wrong at the server."""
        self.server.play(read_faults({"script": list(script), **rest}))

    @asynccontextmanager
    async def open(
        self,
        *,
        patience: Patience = QUICK,
        timeouts: Timeouts = SOON,
        batch_timeouts: Timeouts = SOON,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        **watched: Any,
    ) -> AsyncIterator[Muster]:
        """Open the store of this folder."""
        settings = load_settings(
            folder=self.folder, environment=self.environment if environment is None else environment
        )
        async with open_muster(
            settings=settings,
            clock=clock,
            policy=HASTY,
            timeouts=timeouts,
            batch_timeouts=batch_timeouts,
            patience=patience,
            **watched,
        ) as muster:
            yield muster

    @asynccontextmanager
    async def open_impatient(self, **rest: Any) -> AsyncIterator[Muster]:
        """Open the store for somebody whose time to wait is over when results were once read in vain."""
        clock = HurriedClock()
        async with self.open(clock=clock, **rest) as muster:
            hurrying = asyncio.create_task(_hurry(muster, clock))
            try:
                yield muster
            finally:
                hurrying.cancel()
                await asyncio.wait({hurrying})

    async def check(self, muster: Muster, run: Run) -> Books:
        """Everything that must hold of a run that is over, whatever happened."""
        books = await books_of(muster, run)
        check_books(books)
        check_paid_once(books, self.audit)
        return books

    async def check_to_the_cent(self, muster: Muster, run: Run) -> Books:
        """Nothing is uncertain, and what was billed is what the provider charged."""
        books = await self.check(muster, run)
        assert not books.uncertain
        assert books.run.spent.billed == self.audit.cost
        return books


async def _hurry(muster: Muster, clock: HurriedClock) -> None:
    """Move the time beyond every deadline whenever the results of another batch turn out to lack something."""
    seen: set[BatchId] = set()
    while True:
        lacking = {made.id for made in await muster.batches.list() if made.note.endswith("fetched again")}
        if lacking - seen:
            clock.ahead += 2 * QUICK.deadline
        seen |= lacking
        await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def open_house(folder: Path, clock: Callable[[], float] = time.time, **options: Any) -> AsyncIterator[House]:
    """Open a house; the options are the rehearsal server's, whose batches get on by the clock."""
    async with serve(Options(**options), clock) as server:
        house = House(folder, server)
        house.declare()
        yield house


def questions(count: int, topic: str = "question") -> dict[str, str]:
    """Make questions, and the keys that they are asked under."""
    return {f"{topic}/{number:05d}": f"{topic} {number}" for number in range(count)}


def survey(agent: str, asked: Mapping[str, str], max_tokens: int | None = None) -> dict[str, Json]:
    """Make the spec of a survey."""
    return {"agent": agent, "questions": dict(asked), "max_tokens": max_tokens}


async def ask_all(
    muster: Muster, agent: str, asked: Mapping[str, str], dispatch: Dispatch | None = None, **rest: Any
) -> Run:
    """Ask everything in batches and wait until that is over."""
    max_tokens = rest.pop("max_tokens", None)
    handle = await muster.start("survey", survey(agent, asked, max_tokens), dispatch=dispatch or batch(), **rest)
    return await handle.wait()


def check_answered(run: Run, asked: Mapping[str, str]) -> None:
    """Everything was answered, each question with its own echo."""
    assert run.state is RunState.COMPLETED, run.error
    assert run.result == {key: {"text": text} for key, text in asked.items()}


async def give_up_and_go_on(muster: Muster, run: Run) -> tuple[Run, int]:
    """Give up what is open or lost and go on, until the run is over; says how often."""
    rounds = 0
    while run.state is RunState.WAITING:
        assert run.ended_reason in {"batch_open", "batch_lost", "batch_overdue"}, run.error
        await muster.batches.reconcile(resubmit=True)
        run = await (await muster.resume(run.id)).wait()
        rounds += 1
    return run, rounds


async def batches_of(muster: Muster, run: Run) -> list[Batch]:
    """Give the batches of a run, the oldest first."""
    return list(await muster._backend.store.batches.of_run(run.id))


async def told(muster: Muster, run: Run) -> list[str]:
    """Give the kinds of a run's events."""
    return [event.kind for event in await muster._backend.store.events.read(run.id, 0, 100_000)]


async def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until something holds in this process or at the server."""

    async def holds() -> bool:
        return condition()

    await until(holds)
