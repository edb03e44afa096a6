"""What the pool hands to the edges: what tasks are made of, and where they stand."""

from muster.git.layout import Isolation
from muster.pool.fan_out import CONFIRMED_ABOVE, FanOut, read_fan_out
from muster.pool.metrics import PoolMetrics
from muster.pool.permissions import PermissionQuestion
from muster.pool.tasks import OnPermission, SlotProfile, TaskSpec, TaskState, task_id, task_state, task_title

__all__ = [
    "CONFIRMED_ABOVE",
    "FanOut",
    "Isolation",
    "OnPermission",
    "PermissionQuestion",
    "PoolMetrics",
    "SlotProfile",
    "TaskSpec",
    "TaskState",
    "read_fan_out",
    "task_id",
    "task_state",
    "task_title",
]
