"""The only place that puts the rooms together."""

from muster.app.muster import Muster
from muster.app.opening import import_workloads, open_muster
from muster.engine.patience import Patience

__all__ = ["Muster", "Patience", "import_workloads", "open_muster"]
