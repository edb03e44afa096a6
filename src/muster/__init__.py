"""Muster runs fleets of AI agents as durable work: answered once, paid once, inside a hard budget."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app import open_muster as open  # noqa: A004  # as a user writes it: muster.open()
    from muster.domain.call import Message, Reply, Request, Role, Tool, ToolCall
    from muster.domain.errors import MusterError, Overdraft, RunFailed
    from muster.engine.context import Context
    from muster.engine.workload import workload

__version__ = "0.1.0"

__all__ = [
    "Context",
    "Message",
    "Muster",
    "MusterError",
    "Overdraft",
    "Reply",
    "Request",
    "Role",
    "RunFailed",
    "Tool",
    "ToolCall",
    "open",
    "workload",
]

_HOMES = {
    "Context": ("muster.engine.context", "Context"),
    "Message": ("muster.domain.call", "Message"),
    "Muster": ("muster.app", "Muster"),
    "MusterError": ("muster.domain.errors", "MusterError"),
    "Overdraft": ("muster.domain.errors", "Overdraft"),
    "Reply": ("muster.domain.call", "Reply"),
    "Request": ("muster.domain.call", "Request"),
    "Role": ("muster.domain.call", "Role"),
    "RunFailed": ("muster.domain.errors", "RunFailed"),
    "Tool": ("muster.domain.call", "Tool"),
    "ToolCall": ("muster.domain.call", "ToolCall"),
    "open": ("muster.app", "open_muster"),
    "workload": ("muster.engine.workload", "workload"),
}


def __getattr__(name: str) -> Any:
    """Hand out names when they are asked for, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    import importlib

    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    """Return the public names, for help and completion."""
    return sorted([*__all__, "__version__"])
