"""What the pool hands to the edges: what tasks are made of, and where they stand."""

from muster.domain.isolation import Isolation
from muster.pool.fan_out import FanOut, read_fan_out
from muster.pool.metrics import PoolMetrics
from muster.pool.order import OnPermission
from muster.pool.permissions import PermissionQuestion
from muster.pool.tasks import (
    AssignedSlot,
    SlotProfile,
    TaskSpec,
    task_id,
    task_state,
    task_title,
)

__all__ = [
    "AssignedSlot",
    "FanOut",
    "Isolation",
    "OnPermission",
    "PermissionQuestion",
    "PoolMetrics",
    "SlotProfile",
    "TaskSpec",
    "read_fan_out",
    "task_id",
    "task_state",
    "task_title",
]
