"""The starts of one client at several servers of a store, at the same moment and by clocks that differ."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.budget import Budgets, UserBudget
from muster.domain.errors import LimitReached, NameTaken
from muster.domain.ids import RunId
from muster.domain.run import StartLimit, StartRequest
from muster.store.base import Store
from muster.store.postgres.store import open_postgres
from muster.store.sqlite.store import open_sqlite
from muster.testing.stores import NOW, new_run

CLIENT = "10.0.0.1"
LIMIT = StartLimit(most=5, seconds=60)
SERVERS = 3
STARTS = 60  # at each server


@pytest.fixture(params=["sqlite", "postgres"])
async def servers(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Sequence[Store]]:
    """One store, opened by several servers."""
    if request.param == "postgres":
        url = request.getfixturevalue("database_url")
        opened: Callable[[], Store] = lambda: open_postgres(url)  # noqa: E731
    else:
        opened = lambda: open_sqlite(tmp_path / "muster.db")  # noqa: E731
    async with AsyncExitStack() as stack:
        stores = []
        for _ in range(SERVERS):
            stores.append(opened())
            stack.push_async_callback(stores[-1].maintenance.close)
        yield stores


@pytest.mark.parametrize("seed", range(3))
async def test_several_servers_together_start_no_more_than_one_may_in_any_minute(
    servers: Sequence[Store], seed: int
) -> None:
    dice = random.Random(seed)

    async def start(store: Store, name: str, at: float) -> bool:
        new = replace(new_run(name), created_at=at, request=StartRequest(client=CLIENT, limit=LIMIT))
        try:
            await store.runs.create(new)
        except LimitReached:
            return False
        return True

    # Moments of four minutes in any order: a start is often stored after others that are younger.
    moments = [(store, NOW + dice.uniform(0, 240)) for store in servers for _ in range(STARTS)]
    dice.shuffle(moments)
    begun = await asyncio.gather(*(start(store, f"run{n}", at) for n, (store, at) in enumerate(moments)))
    started = sorted([run.created_at for run in await servers[0].runs.select(limit=500)])
    assert len(started) == sum(begun) >= LIMIT.most
    assert max(sum(at - LIMIT.seconds < other <= at for other in started) for at in started) == LIMIT.most


async def test_of_all_that_make_the_only_run_of_a_name_one_does_and_users_have_names_of_their_own(
    servers: Sequence[Store],
) -> None:
    ada = Budgets(lineage="", user=UserBudget(name="ada"))
    news = [replace(new_run(f"run{n}", name="once"), is_only=True) for n in range(30)]
    news += [replace(new, id=RunId(f"{new.id}-ada"), budgets=ada) for new in news]
    made = await asyncio.gather(
        *(servers[n % SERVERS].runs.create(new) for n, new in enumerate(news)), return_exceptions=True
    )
    assert sum(isinstance(one, NameTaken) for one in made) == len(news) - 2
    found = {owner: await servers[0].runs.newest_named("once", owner) for owner in (None, "ada", "eve")}
    assert {owner: run and run.owner for owner, run in found.items()} == {None: None, "ada": "ada", "eve": None}
    assert found["eve"] is None
    assert len(await servers[0].runs.select()) == 2
    await servers[0].runs.create(new_run("another", name="once"))  # nobody who names a run otherwise is in its way


async def test_at_one_moment_several_servers_together_start_as_many_as_one_may(servers: Sequence[Store]) -> None:
    request = StartRequest(client=CLIENT, limit=LIMIT)
    begun = await asyncio.gather(
        *(
            store.runs.create(replace(new_run(f"run{n}"), request=request))
            for n, store in enumerate([*servers] * STARTS)
        ),
        return_exceptions=True,
    )
    assert sum(isinstance(one, LimitReached) for one in begun) == len(begun) - LIMIT.most
    assert len(await servers[0].runs.select(limit=500)) == LIMIT.most
