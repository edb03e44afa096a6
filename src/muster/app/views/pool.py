"""Tasks, slots and the pool as JSON."""

from collections.abc import Sequence
from typing import Any

from muster.app.pool.pool import PoolStatus, Slot
from muster.app.pool.tasks import Task
from muster.app.views.runs import moment
from muster.domain.entry import Signal
from muster.domain.money import to_usd
from muster.pool.metrics import PoolMetrics
from muster.pool.tasks import TaskState


def task_view(task: Task) -> dict[str, Any]:
    """Return a task as JSON."""
    run, reply, error = task.run, task.reply, task.run.error or {}
    trace = None if reply is None else reply.trace
    ended = run.ended_at if run.ended_at is not None else None
    elapsed = None if ended is None or run.started_at is None else round((ended - run.started_at) * 1000)
    return {
        "id": task.id,
        "run": run.id,
        "state": str(task.state),
        "slot": None if task.slot is None else task.slot.name,
        "agent": task.slot.agent if task.slot else task.spec.agent,
        "output": None if reply is None else reply.text,
        "data": None if reply is None else reply.data,
        "success": task.state is TaskState.COMPLETED if task.run.ended_at is not None else None,
        "cost_usd": to_usd(run.total.billed + run.total.imputed),
        "uncertain_usd": to_usd(run.total.uncertain),
        "turns": None if trace is None else trace.turns,
        "elapsed_ms": elapsed,
        "model": None if reply is None else reply.model,
        "session_id": None if trace is None else trace.session,
        "error": dict(error) or None,
        "reason": task.refusal or None,
        "stderr": error.get("log"),
        "budget_exceeded": run.overdraft is not None,
        "rejection_count": task.rejections,
        "branch": task.branch,
        "summary": task.saved.get("summary"),
        "files": task.saved.get("files", []),
        "original_prompt": task.spec.prompt,
        "priority": task.spec.priority,
        "after": list(task.spec.after),
        "tags": list(run.tags),
        "created_at": moment(run.created_at),
        "started_at": moment(run.started_at),
        "ended_at": moment(run.ended_at),
    }


def slot_view(slot: Slot) -> dict[str, Any]:
    """Return a slot as JSON."""
    return {
        "id": slot.profile.id,
        "name": slot.profile.name,
        "role": slot.profile.role or None,
        "state": slot.state,
        "current_task": None if slot.task is None else slot.task.id,
        "tasks_completed": slot.record.completed,
        "restart_count": slot.record.failures,
        "error": slot.record.error or None,
    }


def pool_view(status: PoolStatus) -> dict[str, Any]:
    """Return the pool at a glance as JSON."""
    states = ("idle", "busy", "stopped", "errored")
    return {
        "slots": {state: sum(slot.state == state for slot in status.slots) for state in states},
        "tasks": {str(state): number for state, number in status.tasks.items()},
        "spend_usd": to_usd(status.spent),
        "budget_usd": None if status.budget is None else to_usd(status.budget),
        "draining": status.draining,
        "driver": None if status.driver is None else str(status.driver),
    }


def metrics_view(found: PoolMetrics) -> dict[str, Any]:
    """Return figures over tasks as JSON."""
    names = ("min", "median", "avg", "max")
    return {
        "tasks": found.tasks,
        "states": {str(state): number for state, number in found.states.items()},
        "cost_usd": {
            "total": to_usd(found.cost),
            "avg": None if found.average_cost is None else to_usd(found.average_cost),
            "max": None if found.highest_cost is None else to_usd(found.highest_cost),
        },
        "elapsed_ms": (
            None
            if found.elapsed is None
            else {name: round(seconds * 1000) for name, seconds in zip(names, found.elapsed, strict=True)}
        ),
        "turns": found.turns,
        "models": {model: {"tasks": one.tasks, "cost_usd": to_usd(one.cost)} for model, one in found.models.items()},
    }


def fan_out_view(tasks: Sequence[Task]) -> dict[str, Any]:
    """Return the results of a fan-out as JSON, in the order of its prompts."""
    return {"results": [task_view(task) for task in tasks]}


def message_view(message: Signal) -> dict[str, Any]:
    """Return a message to a slot as JSON."""
    return {"id": message.seq, "from": message.sender or None, "text": message.payload, "sent_at": moment(message.at)}
