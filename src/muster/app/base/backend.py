"""What the parts of an open Muster share: settings, store, engine, agents and workloads. Nothing of it is public."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.agents.processes.registry import ProcessRegistry
from muster.app.agent_kinds.directory import AgentDirectory
from muster.app.base.feeds import RunFeeds
from muster.app.base.workloads import ProjectWorkloads
from muster.domain.run import AT_THIS_MACHINE, User
from muster.engine.base.clock import Clock
from muster.engine.base.killpoints import KillPoints
from muster.engine.engine import Engine
from muster.engine.queue.base import LazyQueue
from muster.settings import Settings
from muster.store.base import Store

if TYPE_CHECKING:
    from muster.app.base.telemetry import Telemetry
    from muster.domain.ids import RunId
    from muster.suites.statistics import SubjectStats


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The rooms below the application layer, put together once."""

    settings: Settings
    store: Store
    engine: Engine
    clock: Clock
    kill: KillPoints
    directory: AgentDirectory
    workloads: ProjectWorkloads
    processes: ProcessRegistry
    feeds: RunFeeds
    queue: LazyQueue | None = None  # that several machines share; None: the store is enough
    user: User = AT_THIS_MACHINE
    telemetry: "Telemetry | None" = None
    figures: "dict[RunId, tuple[SubjectStats, ...]]" = field(default_factory=dict)  # of suite runs that have ended
