"""Which runs are looked at beside a queue, however many wait before them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from muster.domain.errors import AwaitsSignal
from muster.domain.ids import RunId
from muster.domain.run import Run, RunState
from muster.engine.queue.base import QueuedJob
from muster.engine.queue.fleet import FleetDelivery
from muster.engine.queue.sweeps import PAGE, CancelKeys, DueRuns
from muster.store.base import RunRelease, Store
from muster.testing.clock import FakeClock
from muster.testing.stores import driven
from muster.testing.stores.values import NOW, new_run
from tests.engine.stores import open_store

from .test_fleet import ScriptedQueue


async def submit(store: Store, workload: str, names: Sequence[str], at: float) -> None:
    await asyncio.gather(
        *(
            store.runs.create(replace(new_run(name, submitted=True), workload=workload, created_at=at + number))
            for number, name in enumerate(names)
        )
    )


async def test_a_run_is_announced_however_many_older_ones_of_other_queues_wait(tmp_path: Path) -> None:
    store, queue = open_store(tmp_path), ScriptedQueue()
    await submit(store, "many", [f"old{number}" for number in range(PAGE + 1)], NOW)
    await submit(store, "battle", ["new"], NOW + 1_000)

    async def nobody() -> frozenset[str]:
        return frozenset()

    async def refuse(job: QueuedJob) -> Run:
        raise AssertionError

    clock = FakeClock(NOW + 1_000)
    delivery = FleetDelivery(queue, store, clock, queues=["battles"], most=1, accept=refuse, served=nobody)
    await delivery.look(())
    assert queue.announced == []  # whoever stored it a moment ago announces it
    clock.advance(1.0)
    await delivery.look(())
    assert queue.announced == ["new"]
    await store.maintenance.close()


async def test_the_oldest_are_seen_at_every_look_and_all_others_page_after_page(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    names = [f"run{number:03}" for number in range(2 * PAGE + 50)]
    await submit(store, "many", names, NOW)
    due = DueRuns(store)
    seen = [[run.id for run in await due.look()] for _ in range(3)]
    assert seen == [names[: 2 * PAGE], [*names[:PAGE], *names[2 * PAGE :]], names[: 2 * PAGE]]
    await store.maintenance.close()


class NamedRuns(ScriptedQueue):
    """Keys that name runs to be canceled; it counts the looks at them."""

    def __init__(self, *named: str) -> None:
        super().__init__()
        self._named, self.looks = frozenset(named), 0

    async def canceled(self, runs: object) -> Sequence[RunId]:
        self.looks += 1
        return [run for run in runs if run in self._named] if isinstance(runs, list) else []


async def test_a_due_run_is_canceled_by_its_key_and_keys_are_read_once_a_second(tmp_path: Path) -> None:
    store, keys, clock = open_store(tmp_path), NamedRuns("b"), FakeClock()
    await submit(store, "many", ["a", "b"], NOW)
    cancels = CancelKeys(keys, store, clock)
    for _ in range(2):
        await cancels.look()
    assert keys.looks == 1
    assert [run.id for run in await store.runs.select([RunState.CANCELED])] == ["b"]
    await store.maintenance.close()


async def test_a_run_that_only_waits_for_a_person_is_canceled_by_its_key(tmp_path: Path) -> None:
    store, clock = open_store(tmp_path), FakeClock()
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.WAITING, reason=AwaitsSignal.code, at=NOW))
    assert await DueRuns(store).look() == ()
    await CancelKeys(NamedRuns(run), store, clock).look()
    assert [one.id for one in await store.runs.select([RunState.CANCELED])] == [run]
    await store.maintenance.close()
