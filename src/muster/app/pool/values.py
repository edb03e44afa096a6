"""What the pool hands to the edges: what tasks are made of, and where they stand."""

from muster.pool.tasks import SlotProfile, TaskSpec, TaskState, task_id, task_state

__all__ = ["SlotProfile", "TaskSpec", "TaskState", "task_id", "task_state"]
