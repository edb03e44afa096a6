"""The order in which a worker takes runs: clients in turn, each first come first served, within caps."""

import asyncio
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from muster.app.serving.limits import QueueCaps
from muster.domain.canonical import Json
from muster.domain.ids import RunId
from muster.domain.run import Run, StartRequest
from muster.engine.context import Context
from muster.engine.queue.base import DeliveryLook, OfferRun, RunDelivery
from muster.engine.worker import Worker
from muster.store.queries import queries

from .house import Hanging, House, house


async def one_call(ctx: Context, spec: Any) -> Json:
    return (await ctx.call("a", str(spec["name"]), key="k")).text


CAPS = QueueCaps(per_client=3, battles=3)


class Served:
    """A worker with caps over runs that last until they are let go."""

    def __init__(
        self,
        h: House,
        hanging: Hanging,
        *,
        most: int = 8,
        caps: QueueCaps = CAPS,
        delivery: RunDelivery | None = None,
    ) -> None:
        self.h, self.hanging = h, hanging
        self.worker = Worker(
            h.store,
            h.engine,
            h.clock,
            most=most,
            caps=caps,
            delivery=delivery,
            on_end=self._ended,
            on_error=self._failed,
        )

    async def _ended(self, run: Run) -> None:
        return None

    def _failed(self, run: RunId, error: Exception) -> None:
        pytest.fail(f"{run}: {error}")

    async def add(self, name: str, client: str, workload: str = "one_call", **spec: Any) -> None:
        request = StartRequest(client=client)
        await self.h.create(one_call, spec={"name": name, **spec}, workload=workload, submitted=True, request=request)

    async def asked(self, number: int) -> list[str]:
        """Return what the next calls ask, in the order of their names."""
        found = [await self.hanging.arrived.get() for _ in range(number)]
        return sorted(request.messages[-1].text for request in found)

    async def end(self, serving: "asyncio.Task[None]") -> None:
        self.hanging.let_go.set()
        self.worker.close()
        await serving


async def test_a_client_with_a_thousand_runs_does_not_keep_others_waiting(tmp_path: Path) -> None:
    hanging = Hanging()
    async with house(tmp_path, a=hanging.puppet) as h:
        served = Served(h, hanging)
        await asyncio.gather(*(served.add(f"first{number:04}", "10.0.0.1") for number in range(1100)))
        for name in ("second", "third"):
            await served.add(name, f"10.0.0.{len(name)}")
        serving = asyncio.create_task(served.worker.serve())
        found = await served.asked(5)
        assert [name for name in found if not name.startswith("first")] == ["second", "third"]
        assert len(h.engine.driving) == 5  # three of the first client, one of each other
        for run in await h.store.runs.submitted(2000):
            await h.store.runs.cancel(run.id, h.clock.now())
        await served.end(serving)


async def test_runs_of_one_client_are_taken_in_order(tmp_path: Path) -> None:
    hanging = Hanging()
    hanging.let_go.set()
    async with house(tmp_path, a=hanging.puppet) as h:
        served = Served(h, hanging, most=1)
        for name in ("1", "2", "3"):
            await served.add(name, "10.0.0.1")
        await served.add("other", "10.0.0.2")
        await served.worker.serve(until_idle=True)
        assert [request.messages[-1].text for request in hanging.puppet.asked] == ["1", "other", "2", "3"]


class SilentDelivery:
    """A queue that says nothing for long after a run was passed over. Implements `RunDelivery`."""

    async def listen(self, offer: OfferRun) -> None:
        """Offer nothing."""

    async def look(self, driven: Collection[RunId], *, leads: bool = True, offered: bool = True) -> DeliveryLook:
        return DeliveryLook(take=frozenset(), offers_later=True)

    async def is_idle(self) -> bool:
        return True

    async def close(self) -> None:
        """Hold nothing."""


async def test_the_next_run_of_a_client_does_not_wait_until_it_is_announced_again(tmp_path: Path) -> None:
    hanging = Hanging()
    hanging.let_go.set()
    async with house(tmp_path, a=hanging.puppet) as h:
        served = Served(h, hanging, caps=QueueCaps(per_client=1), delivery=SilentDelivery())
        for name in ("1", "2", "3"):
            await served.add(name, "10.0.0.1")
        serving = asyncio.create_task(served.worker.serve())
        (first, *_) = await h.store.runs.submitted(3)
        offers = [asyncio.create_task(served.worker.offer(first.id)) for _ in range(2)]
        assert sorted([(await offered).taken for offered in offers]) == [False, True]  # two jobs of one run
        assert await served.asked(3) == ["1", "2", "3"]
        await served.end(serving)


def scale(concurrency: int) -> dict[str, Any]:
    return {"battle": {"agent": "a", "counterpart": "b"}, "runs": 10, "concurrency": concurrency}


async def test_a_scale_test_waits_for_as_many_places_as_it_plays_battles_and_later_battles_wait_for_it(
    tmp_path: Path,
) -> None:
    hanging = Hanging()

    async def play(ctx: Context, spec: Any) -> Json:
        return (await ctx.call("a", str(ctx.run), key="k")).text

    async with house(tmp_path, a=hanging.puppet) as h:
        served = Served(h, hanging)
        runs: dict[str, str] = {}

        async def add(name: str, workload: str, client: str, spec: Any) -> None:
            request = StartRequest(client=client)
            run = await h.create(play, spec=spec, workload=workload, submitted=True, request=request)
            runs[run.id] = name

        await add("battle 1", "battle", "10.0.0.1", {})
        serving = asyncio.create_task(served.worker.serve())
        assert [runs[run] for run in await served.asked(1)] == ["battle 1"]
        await add("scale", "scale", "10.0.0.2", scale(3))
        await add("battle 2", "battle", "10.0.0.3", {})
        await add("question", "ask", "10.0.0.3", {})
        assert [runs[run] for run in await served.asked(1)] == ["question"]
        assert {runs[run] for run in h.engine.driving} == {"battle 1", "question"}
        hanging.let_go.set()
        assert [runs[run] for run in await served.asked(1)] == ["scale"]
        assert [runs[run] for run in await served.asked(1)] == ["battle 2"]
        await served.end(serving)


@pytest.mark.sqlite_file
@pytest.mark.parametrize("name", ["next_due_workload", "first_due_client", "next_due_client", "select_due"])
async def test_a_look_at_the_queue_is_a_seek_however_many_runs_wait(tmp_path: Path, name: str) -> None:
    async with house(tmp_path):
        pass
    parameters = {"after": "", "workload": "w", "client": "c", "limit": 1}
    with sqlite3.connect(tmp_path / "muster.db") as database:
        plan = [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {queries()[name]}", parameters)]
    assert len(plan) == 1
    assert plan[0].startswith("SEARCH runs USING")
    assert "INDEX runs_due" in plan[0]
