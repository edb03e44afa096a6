"""The registry of workloads: patterns of work, found by name in any process that resumes a run."""

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

    def workload(self, name: str) -> Callable[[W], W]:
        """Register an async function under a name."""

        def register(function: W) -> W:
            self._found[name] = function
            return function

        return register

    def find(self, name: str) -> Workload:
        """Give the function, or say which ones there are."""
        if name not in self._found:
            raise BadConfiguration(
                f"this process does not know the workload {name!r}",
                suggestions=(
                    "name the module that defines it in muster.toml under [workloads] import",
                    f"known here: {', '.join(sorted(self._found)) or 'none'}",
                ),
            )
        return self._found[name]

    def __contains__(self, name: str) -> bool:
        return name in self._found


REGISTRY = Workloads()
workload = REGISTRY.workload
