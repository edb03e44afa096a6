"""Opening: settings, store, agents and engine put together, and taken apart again."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from muster.agents.processes.registry import ProcessRegistry, Reaper
from muster.agents.processes.system import is_gone, sees, this_process
from muster.app.agent_kinds.directory import AgentDirectory
from muster.app.backend import Backend
from muster.app.muster import Muster
from muster.app.project_workloads import project_workloads
from muster.domain.agent import Timeouts
from muster.domain.errors import BadArgument
from muster.domain.script import Script
from muster.engine.admission import BudgetQueue
from muster.engine.batches.base import BatchServices, Patience
from muster.engine.batches.batcher import CREATE_TIMEOUTS, make_batcher
from muster.engine.batches.batcher import TIMEOUTS as BATCH_TIMEOUTS
from muster.engine.call_state import CallServices, LazyBatcher
from muster.engine.clock import Clock, SystemClock
from muster.engine.engine import Engine
from muster.engine.killpoints import POINTS, KillPoints
from muster.engine.limiter import Limiters
from muster.engine.retry import RetryPolicy
from muster.settings import Settings, load_settings
from muster.store.sqlite import open_sqlite
from muster.text.json_schema import JsonSchemas


@asynccontextmanager
async def open_muster(
    home: str | Path | None = None,
    *,
    settings: Settings | None = None,
    allow_unpriced: bool = False,
    keyless: bool = False,
    clock: Clock | None = None,
    policy: RetryPolicy | None = None,
    timeouts: Timeouts | None = None,
    batch_timeouts: Timeouts | None = None,
    patience: Patience | None = None,
    on_wait: Callable[[str], None] | None = None,
    create: bool = True,
) -> AsyncIterator[Muster]:
    """Open the store of a folder with everything around it; `async with` closes it again.

    Without `create` a store that is not there is read as an empty one, and is not made.
    `on_wait` is told when a write has waited for some seconds because another process keeps the store locked.
    """
    settings = settings or load_settings(None if home is None else Path(home))
    clock = clock or SystemClock()
    kill = _kill_points(settings)
    heard = {} if on_wait is None else {"on_wait": on_wait}
    store = open_sqlite(settings.database, secrets=settings.secrets, reach=kill.reach, create=create, **heard)
    driver = this_process()
    gone, seen = partial(is_gone, us=driver), partial(sees, us=driver)
    reaper = Reaper(store.processes, driver.host, gone)
    processes = ProcessRegistry(store.processes, driver)
    directory = AgentDirectory(
        settings, processes, load_script=_load_script, allow_unpriced=allow_unpriced, keyless=keyless
    )
    limiters = Limiters(clock)
    engine: Engine

    async def sweep() -> None:
        await engine.sweep()

    budget_queue = BudgetQueue(store.changes, sweep, clock)
    chance = random.Random()  # noqa: S311  # jitter and ids, no secrets
    batch_services = BatchServices(
        store=store,
        directory=directory,
        clock=clock,
        random=chance,
        kill=kill,
        driver=driver,
        is_gone=gone,
        patience=patience or Patience(),
        timeouts=batch_timeouts or BATCH_TIMEOUTS,
        create_timeouts=batch_timeouts or CREATE_TIMEOUTS,
    )
    batcher = LazyBatcher(partial(make_batcher, batch_services, settings.home / "spool"))
    services = CallServices(
        store=store,
        directory=directory,
        limiters=limiters,
        budget_queue=budget_queue,
        clock=clock,
        random=chance,
        kill=kill,
        policy=policy or RetryPolicy(),
        timeouts=timeouts or Timeouts(),
        batcher=batcher,
        is_gone=gone,
        sees=seen,
        reap=reaper.reap,
        schemas=JsonSchemas(),
    )
    workloads = project_workloads(settings)
    engine = Engine(services, workloads=workloads, driver=driver, day_cap=settings.day_cap)
    muster = Muster(
        Backend(settings=settings, store=store, engine=engine, clock=clock, directory=directory, workloads=workloads)
    )
    # Closed from the last to the first, each of them even if another fails: no process outlives a full disk.
    parts = (store.maintenance, processes, directory, limiters, budget_queue, batcher, muster)
    async with AsyncExitStack() as closing:
        for part in parts:
            closing.push_async_callback(part.close)
        muster.reaped = await reaper.reap()
        yield muster


def _load_script(path: Path) -> Script:
    from muster.sim.files import load_script

    return load_script(path)


def _kill_points(settings: Settings) -> KillPoints:
    if settings.crash_at is None:
        return KillPoints()
    point, nth = settings.crash_at
    if point not in POINTS:
        raise BadArgument(f"MUSTER_CRASH_AT names no known point: {point}", suggestions=POINTS)
    return KillPoints(point, nth)
