"""Opening: settings, store, agents and engine put together, and taken apart again."""

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypedDict

from muster.agents.base import Agent
from muster.agents.processes.registry import ProcessRegistry, Reaper
from muster.agents.processes.system import is_gone, sees, this_process
from muster.app.agent_kinds.directory import AgentDirectory
from muster.app.base.backend import Backend
from muster.app.base.feeds import RunFeeds
from muster.app.base.schemas import JsonSchemas
from muster.app.base.stores import open_store
from muster.app.base.workloads import project_workloads
from muster.app.kinds import BUILT_IN
from muster.app.muster import Muster
from muster.app.project.location import locate
from muster.domain.agent import Timeouts
from muster.domain.errors import BadArgument, BadConfiguration, ConflictingArguments
from muster.domain.money import from_usd
from muster.domain.observation import Observer
from muster.domain.patience import Patience
from muster.domain.run import Driver
from muster.domain.script import Script
from muster.engine.base.clock import Clock, StoreClock
from muster.engine.base.driven_run import BudgetCaps
from muster.engine.base.killpoints import POINTS, KillPoints
from muster.engine.batches.base import BatchServices
from muster.engine.calls.admission import BudgetQueue
from muster.engine.calls.limiter import Limiters
from muster.engine.calls.retry import RetryPolicy
from muster.engine.calls.state import CallServices, LazyBatcher
from muster.engine.engine import Engine
from muster.engine.queue.base import FleetQueue, LazyQueue
from muster.engine.queue.sharing import ChildSharing
from muster.settings import Settings
from muster.store.base import Store

if TYPE_CHECKING:
    from muster.app.agent_kinds.given import GivenAgent
    from muster.app.base.telemetry import Telemetry
    from muster.engine.batches.batcher import Batcher
    from muster.observability.options import LogOptions


# Child runs that other workers may drive. Tasks and chains work in slots and folders of one machine, and councils that
# judge a case are over before another process has begun.
SHARED = frozenset(kind.workload for kind in BUILT_IN if kind.is_shared)


P = ParamSpec("P")
WAYS = ("async with muster.open() as m: …", "in code that is not async: with muster.sync.open() as m: …")


class MusterOpening(AbstractAsyncContextManager[Muster]):
    """A Muster that is opened when it is entered."""

    def __init__(self, opening: AbstractAsyncContextManager[Muster]) -> None:
        self._opening = opening

    async def __aenter__(self) -> Muster:
        return await self._opening.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._opening.__aexit__(kind, error, trace)

    if not TYPE_CHECKING:  # for programs that no type checker has read

        def __enter__(self) -> NoReturn:
            raise _not_entered("`with` is for code that is not async, and muster.open() is")

        def __exit__(self, *error: object) -> None: ...

        def __await__(self) -> NoReturn:
            raise _not_entered("muster.open() is not awaited")

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or not hasattr(Muster, name):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            raise _not_entered(f"this Muster is not open yet, and cannot do `{name}`")


def _not_entered(message: str) -> BadArgument:
    return BadArgument(message, suggestions=WAYS)


def entered(function: Callable[P, AsyncIterator[Muster]]) -> Callable[P, MusterOpening]:
    """Return a function that opens a Muster, written as a generator, as one for `async with`."""
    opening = asynccontextmanager(function)

    @wraps(function)
    def begin(*args: P.args, **kwargs: P.kwargs) -> MusterOpening:
        return MusterOpening(opening(*args, **kwargs))

    return begin


class OpenOptions(TypedDict, total=False):
    """What may be said of how a Muster works, wherever its store is, as `open_muster` explains it."""

    allow_unpriced: bool
    keyless: bool
    policy: RetryPolicy | None
    timeouts: Timeouts | None
    batch_timeouts: Timeouts | None
    patience: Patience | None
    observers: Sequence[Observer]
    metrics: bool


@entered
async def open_muster(
    store: str | Path | None = None,
    *,
    project: str | Path | None = None,
    agents: "Mapping[str, GivenAgent] | None" = None,
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
    start_secs: float = 0.0,
    observers: Sequence[Observer] = (),
    log: "LogOptions | None" = None,
    metrics: bool = False,
    tracer_provider: object | None = None,
) -> AsyncIterator[Muster]:
    """Open a project with its store; `async with` closes it again.

    Without arguments it is the project of the working folder, as for commands. `project` is the folder of another, with
    its muster.toml and store. `store` moves the store alone: to a folder, or to the address of a PostgreSQL database.
    `settings` say both. `agents` are those of this process, by name, before those of muster.toml: an async function
    that takes a Request, an object of the protocol `Agent`, or what a section `[agents.NAME]` has, as a mapping.

    Without `create` a store that is not there is read as an empty one, and is not made.
    `on_wait` is told when a write has waited for some seconds because another process keeps the store locked, and when
    a database server is waited for that takes no connections yet, for at most `start_secs`.
    With `metrics` attempts, tokens and times are counted for `Muster.metrics`; a `tracer_provider` of OpenTelemetry
    turns traces on; `observers` are told what the engine does.
    """
    if settings is None:
        settings = locate(store, project)
    elif store is not None or project is not None:
        raise ConflictingArguments("settings", "store", "project")
    settings, made = _read_agents(agents, settings)
    telemetry = _open_telemetry(settings, observers, log, metrics, tracer_provider)
    try:
        shared = await _open_shared(settings, clock, on_wait=on_wait, create=create, start_secs=start_secs)
    except BaseException:
        if telemetry is not None:
            await telemetry.close()
        raise
    processes = ProcessRegistry(shared.store.processes, shared.driver)
    reaper = Reaper(shared.store.processes, shared.driver.host, shared.is_gone)
    directory = AgentDirectory(
        settings,
        processes,
        load_script=_load_script,
        allow_unpriced=allow_unpriced,
        keyless=keyless,
        given=made,
        hide=shared.store.maintenance.hide,
    )
    observe = None if telemetry is None else telemetry.observe
    batcher = LazyBatcher(
        partial(_make_batcher, shared, settings, directory, patience or Patience(), batch_timeouts, observe)
    )

    async def sweep() -> None:
        await engine.sweep_in_turn()

    limiters, budget_queue = Limiters(shared.clock), BudgetQueue(shared.store.changes, sweep, shared.clock)
    services = CallServices(
        store=shared.store,
        directory=directory,
        limiters=limiters,
        budget_queue=budget_queue,
        clock=shared.clock,
        random=shared.random,
        kill=shared.kill,
        policy=policy or RetryPolicy(),
        timeouts=timeouts or Timeouts(),
        batcher=batcher,
        is_gone=shared.is_gone,
        sees=shared.sees,
        reap=reaper.reap,
        schemas=JsonSchemas(),
        observe=observe,
    )
    queue = None if settings.redis_url is None else LazyQueue(partial(open_queue, settings, telemetry))
    engine, muster = _assemble(services, settings, directory, processes, shared.driver, telemetry, queue)
    # Closed from the last to the first, each of them even if another fails: no process outlives a full disk.
    queues = () if queue is None else (queue,)
    parts = (shared.store.maintenance, processes, directory, limiters, budget_queue, batcher, *queues, muster)
    async with AsyncExitStack() as closing:
        if telemetry is not None:
            closing.push_async_callback(telemetry.close)
        for part in parts:
            closing.push_async_callback(part.close)
        muster.reaped = await reaper.reap()
        yield muster


def _read_agents(agents: "Mapping[str, GivenAgent] | None", settings: Settings) -> tuple[Settings, Mapping[str, Agent]]:
    """Return settings that declare the agents of the program, and those agents that it made itself."""
    if not agents:
        return settings, {}
    from muster.app.agent_kinds.given import read_given  # loads what checks answers of functions

    given = read_given(agents)
    return given.declared_in(settings), given.made


@dataclass(frozen=True, slots=True, kw_only=True)
class _OpenedParts:
    """What every part shares: the store, time and chance, and who this process is."""

    store: Store
    clock: Clock
    random: random.Random
    kill: KillPoints
    driver: Driver
    is_gone: Callable[[Driver], bool]  # whether a driver is certainly dead
    sees: Callable[[Driver], bool]  # whether this process can tell


async def _open_shared(
    settings: Settings,
    clock: Clock | None,
    *,
    on_wait: Callable[[str], None] | None,
    create: bool,
    start_secs: float,
) -> _OpenedParts:
    """Open the store and find out who this process is."""
    kill, driver = _kill_points(settings), this_process()
    heard = {} if on_wait is None else {"on_wait": on_wait}
    store = await open_store(settings, reach=kill.reach, create=create, start_secs=start_secs, **heard)
    return _OpenedParts(
        store=store,
        clock=clock or StoreClock(store.time.now),
        random=random.Random(),  # noqa: S311  # jitter and ids, no secrets
        kill=kill,
        driver=driver,
        is_gone=partial(is_gone, us=driver),
        sees=partial(sees, us=driver),
    )


def _open_telemetry(
    settings: Settings,
    observers: Sequence[Observer],
    log: "LogOptions | None",
    metrics: bool,
    tracer_provider: object | None,
) -> "Telemetry | None":
    """Open what watches; None, at no cost, when nothing was asked for."""
    wanted = observers or log is not None or metrics or tracer_provider is not None
    if not wanted and settings.trace_exporter is None:
        return None
    from muster.app.base.telemetry import Telemetry, TelemetryOptions

    return Telemetry(
        TelemetryOptions(observers=observers, log=log, metrics=metrics, tracer_provider=tracer_provider), settings
    )


def _make_batcher(
    shared: _OpenedParts,
    settings: Settings,
    directory: AgentDirectory,
    patience: Patience,
    timeouts: Timeouts | None,
    observe: Observer | None,
) -> "Batcher":
    from muster.engine.batches.assembly import CREATE_TIMEOUTS, TIMEOUTS, make_batcher

    services = BatchServices(
        store=shared.store,
        directory=directory,
        clock=shared.clock,
        random=shared.random,
        kill=shared.kill,
        driver=shared.driver,
        is_gone=shared.is_gone,
        patience=patience,
        timeouts=timeouts or TIMEOUTS,
        create_timeouts=timeouts or CREATE_TIMEOUTS,
        observe=observe,
    )
    return make_batcher(services, settings.home / "spool")


def _assemble(
    services: CallServices,
    settings: Settings,
    directory: AgentDirectory,
    processes: ProcessRegistry,
    driver: Driver,
    telemetry: "Telemetry | None",
    queue: LazyQueue | None,
) -> tuple[Engine, Muster]:
    """Make the engine, and the application layer above it."""
    workloads = project_workloads(settings)
    users = {one.name: from_usd(f"{one.day_usd:.6f}") for one in settings.tokens if one.day_usd is not None}
    caps = BudgetCaps(day=settings.day_cap, call=settings.call_cap, users=users)
    sharing = None if queue is None else ChildSharing(queue=queue, workloads=SHARED)
    engine = Engine(
        services, workloads=workloads, driver=driver, caps=caps, limits=settings.workload_limits, sharing=sharing
    )
    backend = Backend(
        settings=settings,
        store=services.store,
        engine=engine,
        clock=services.clock,
        kill=services.kill,
        directory=directory,
        workloads=workloads,
        processes=processes,
        telemetry=telemetry,
        queue=queue,
        feeds=RunFeeds(services.store, engine.sweep_in_turn),
    )
    return engine, Muster(backend)


def open_queue(settings: Settings, telemetry: "Telemetry | None" = None) -> FleetQueue:
    """Open the queue of REDIS_URL; raises BadConfiguration when its packages are not installed."""
    try:
        from muster.engine.queue.bull import open_bull_queue
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "muster":
            raise
        raise BadConfiguration(
            f"REDIS_URL is set, and the extra `redis` is not installed: no module {error.name}",
            suggestions=("pip install 'muster-ai[redis]'", "or unset REDIS_URL to work on one machine"),
        ) from error

    def on_error(text: str) -> None:
        if telemetry is not None:
            telemetry.log("queue.error", {"error": text}, "warning")

    driver = this_process()
    process = f"{driver.host}-{driver.pid}"
    return open_bull_queue(settings.redis_url or "", settings.region, on_error, process=process)


def _load_script(path: Path) -> Script:
    from muster.sim.files import load_script

    return load_script(path)


def _kill_points(settings: Settings) -> KillPoints:
    if settings.crash_at is None:
        return KillPoints()
    point, nth = settings.crash_at
    if point not in POINTS:
        raise BadArgument(f"MUSTER_CRASH_AT names an unknown point: {point}", suggestions=POINTS)
    return KillPoints(point, nth)


open = open_muster  # noqa: A001  # as a user writes it: muster.open()
