"""What the parts of an open Muster share: settings, store, engine, agents and workloads. Nothing of it is public."""

from dataclasses import dataclass

from muster.app.agent_kinds.directory import AgentDirectory
from muster.app.project_workloads import ProjectWorkloads
from muster.engine.clock import Clock
from muster.engine.engine import Engine
from muster.settings import Settings
from muster.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """The rooms below the application layer, put together once."""

    settings: Settings
    store: Store
    engine: Engine
    clock: Clock
    directory: AgentDirectory
    workloads: ProjectWorkloads
