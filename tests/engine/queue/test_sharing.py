"""A child that any worker may drive, as its parent sees it."""

import asyncio
from pathlib import Path

from muster.domain.ids import RunId
from muster.domain.run import Run
from muster.engine.queue.sharing import SharedChild
from muster.testing.clock import FakeClock
from muster.testing.stores.values import new_run
from tests.engine.stores import open_store


class Parent:
    """A drive that says which of its children are driven here."""

    stopping = False

    def __init__(self) -> None:
        self.driven: set[RunId] = set()

    def drives(self, run: RunId) -> bool:
        return run in self.driven


async def test_a_parent_is_not_left_while_a_child_is_about_to_be_claimed(tmp_path: Path) -> None:
    store, parent = open_store(tmp_path), Parent()
    claiming, claimed, driving, over = (asyncio.Event() for _ in range(4))

    async def nobody() -> frozenset[str]:
        return frozenset()

    async def drive_here(run: Run) -> Run:
        claiming.set()
        await claimed.wait()
        parent.driven.add(run.id)
        driving.set()
        await over.wait()
        return run

    child = SharedChild(
        await store.runs.create(new_run("child")),
        parent,
        store=store,
        clock=FakeClock(),
        announce=None,
        served=nobody,
        is_abandoned=lambda run: False,
        drive_here=drive_here,
    )
    ending = asyncio.ensure_future(child.to_end())
    await claiming.wait()
    assert (child.all_parked, child.handed_in) == (False, False)
    claimed.set()
    await driving.wait()
    assert (child.all_parked, child.handed_in) == (True, True)  # the drive of the child answers for itself
    over.set()
    await ending
    await store.maintenance.close()
