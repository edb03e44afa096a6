"""A run that is resumed while its results come in: whatever is settled between two looks is not asked again."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.run import RunState
from muster.testing.clock import FakeClock
from tests.engine.batches.house import QUICK, House, batch, batches_of, open_house

MANY = 1500


async def fetch_while_resuming(house: House, clock: FakeClock, agent: str) -> None:
    """Bring the results of a run that was left into the store in the same moments in which it looks for them."""
    async with house.open(patience=replace(QUICK, settle=3.0, most_requests=MANY)) as muster:
        spec = {"agent": agent, "count": MANY, "turns": 1}
        handle = await muster.start("conversations", spec, dispatch=batch(), detach=True)
        run = await handle.wait()
        assert run.state is RunState.WAITING
    clock.advance(1.0)
    async with house.open() as muster:
        [made] = await batches_of(muster, run)
        resumed = await muster.resume(run.id)
        run, _ = await asyncio.gather(resumed.wait(), muster.batches.fetch(made))
        assert run.state is RunState.COMPLETED, run.error
        books = await house.check_to_the_cent(muster, run)
        assert len(books.batches) == len(house.batches) == 1
        assert len(books.attempts) == house.audit.calls == MANY


async def test_what_is_settled_while_a_run_looks_for_it_is_not_asked_again(tmp_path: Path, agent: str) -> None:
    clock = FakeClock()
    async with open_house(tmp_path / "house", clock.now, batch_ms=1000) as house:
        await fetch_while_resuming(house, clock, agent)


@pytest.mark.chaos
@pytest.mark.parametrize("again", range(10))
async def test_what_is_settled_while_a_run_looks_for_it_is_never_asked_again(
    tmp_path: Path, agent: str, again: int
) -> None:
    clock = FakeClock()
    async with open_house(tmp_path / "house", clock.now, batch_ms=1000) as house:
        await fetch_while_resuming(house, clock, agent)
