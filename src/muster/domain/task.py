"""Where a task of the pool stands."""

from enum import StrEnum


class TaskState(StrEnum):
    """Where a task stands."""

    PENDING = "pending"
    RUNNING = "running"
    PENDING_REVIEW = "pending_review"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
