"""The only place that puts the rooms together."""

from muster.app.muster import Muster
from muster.app.opening import import_workloads, open_muster

__all__ = ["Muster", "import_workloads", "open_muster"]
