"""The registry of workloads: patterns of work, found by name in any process that resumes a run."""

import importlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration

if TYPE_CHECKING:
    from muster.engine.context import Context

Workload = Callable[["Context", Any], Awaitable[Json]]
W = TypeVar("W", bound=Callable[..., Awaitable[Any]])


class Workloads:
    """Names and the functions behind them."""

    def __init__(self) -> None:
        self._found: dict[str, Workload] = {}
        self._promised: dict[str, str] = {}  # modules that are imported when somebody asks for the name

    def workload(self, name: str) -> Callable[[W], W]:
        """Register an async function under a name."""

        def register(function: W) -> W:
            self._found[name] = function
            return function

        return register

    def promise(self, name: str, module: str) -> None:
        """Say which module registers a name, without importing it: most commands need no workload at all."""
        self._promised[name] = module

    def find(self, name: str) -> Workload:
        """Give the function, or say which ones there are."""
        if name not in self._found and name in self._promised:
            importlib.import_module(self._promised[name])
        if name not in self._found:
            raise BadConfiguration(
                f"this process does not know the workload {name!r}",
                suggestions=(
                    "name the module that defines it in muster.toml under [workloads] import",
                    f"known here: {', '.join(sorted({*self._found, *self._promised})) or 'none'}",
                ),
            )
        return self._found[name]

    def __contains__(self, name: str) -> bool:
        return name in self._found or name in self._promised


REGISTRY = Workloads()
workload = REGISTRY.workload
