"""The only place that puts the rooms together; what it offers is loaded when it is first used."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.app.base.workloads import project_workloads
    from muster.app.muster import Muster
    from muster.app.opening import open_muster
    from muster.domain.patience import Patience

__all__ = ["Muster", "Patience", "open_muster", "project_workloads"]

_PLACES = {
    "Muster": "muster.app.muster",
    "Patience": "muster.domain.patience",
    "open_muster": "muster.app.opening",
    "project_workloads": "muster.app.base.workloads",
}


def __getattr__(name: str) -> Any:
    """Return what is offered by this name."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
