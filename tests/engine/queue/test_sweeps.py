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
from muster.engine.queue.sweeps import PAGE, QUIET_SECONDS, CancelKeys, FleetRuns
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
    clock, seen = FakeClock(), []
    fleet = FleetRuns(store, clock)
    for _ in range(3):
        seen.append([run.id for run in (await fleet.look(offered=False)).due])
        clock.advance(1.0)
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
    cancels = CancelKeys(keys, store, clock, FleetRuns(store, clock))
    for _ in range(2):
        await cancels.look(offered=False)
    assert keys.looks == 1
    assert [run.id for run in await store.runs.select([RunState.CANCELED])] == ["b"]
    await store.maintenance.close()


async def test_a_run_that_only_waits_for_a_person_is_canceled_by_its_key(tmp_path: Path) -> None:
    store, clock = open_store(tmp_path), FakeClock()
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.WAITING, reason=AwaitsSignal.code, at=NOW))
    fleet = FleetRuns(store, clock)
    assert not (await fleet.look(offered=False)).due
    await CancelKeys(NamedRuns(run), store, clock, fleet).look(offered=False)
    assert [one.id for one in await store.runs.select([RunState.CANCELED])] == [run]
    await store.maintenance.close()


async def test_while_nothing_is_due_or_driven_the_store_is_read_every_five_seconds_or_when_a_run_is_offered(
    tmp_path: Path,
) -> None:
    store, clock = open_store(tmp_path), FakeClock(NOW)
    fleet = FleetRuns(store, clock)
    assert await look_for(fleet, clock, 0.0) == []
    await submit(store, "many", ["a"], NOW)
    assert await look_for(fleet, clock, QUIET_SECONDS - 1.0) == []
    assert await look_for(fleet, clock, 1.0) == ["a"]
    await submit(store, "many", ["b"], NOW + 1)
    assert await look_for(fleet, clock, 0.5, offered=True) == ["a"]  # at most once a second
    assert await look_for(fleet, clock, 0.5) == ["a", "b"]
    for name in ("a", "b"):
        await store.runs.cancel(RunId(name), NOW)
    assert await look_for(fleet, clock, 1.0) == []
    await submit(store, "many", ["c"], NOW + 2)
    assert await look_for(fleet, clock, 1.0, offered=True) == ["c"]
    await store.maintenance.close()


async def look_for(fleet: FleetRuns, clock: FakeClock, seconds: float, *, offered: bool = False) -> list[str]:
    """Return the runs that are due some seconds later, as far as the fleet knows."""
    clock.advance(seconds)
    return [run.id for run in (await fleet.look(offered=offered)).due]


async def test_keys_of_runs_that_wait_for_a_person_are_read_every_second_without_a_look_into_the_store(
    tmp_path: Path,
) -> None:
    store, keys, clock = open_store(tmp_path), NamedRuns(), FakeClock()
    run, claim = await driven(store)
    await store.leases.release(run, claim.epoch, RunRelease(state=RunState.WAITING, reason=AwaitsSignal.code, at=NOW))
    cancels = CancelKeys(keys, store, clock, FleetRuns(store, clock))
    found = []
    for _ in range(3):
        found.append(await cancels.look(offered=False))
        clock.advance(1.0)
    assert keys.looks == 3
    assert found[0] is found[1] is found[2]
    await store.maintenance.close()
