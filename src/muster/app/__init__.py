"""The only place that puts the rooms together."""

from muster.app.muster import Muster
from muster.app.opening import open_muster
from muster.app.project.workloads import project_workloads
from muster.engine.batches.base import Patience

__all__ = ["Muster", "Patience", "open_muster", "project_workloads"]
