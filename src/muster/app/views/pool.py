"""Tasks, slots and the pool as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.app.pool.monitor import LogRecord, PoolSnapshot
from muster.app.pool.status import PoolStatus, Slot
from muster.app.pool.task_queries import Task
from muster.app.pool.trees import Merge, OverlapReport
from muster.app.views.money import cost_view, money_view
from muster.app.views.runs import event_view, moment
from muster.domain.entry import Signal
from muster.domain.money import to_usd
from muster.pool.metrics import ModelFigures, PoolMetrics
from muster.pool.permissions import PermissionQuestion
from muster.pool.tasks import TaskState
from muster.text.secrets.redaction import Redactor, redact

MOST_LINES = 20  # of standard error


def task_view(task: Task) -> dict[str, Any]:
    """Return a task as JSON."""
    run, reply, error = task.run, task.reply, task.run.error or {}
    trace = None if reply is None else reply.trace
    ended = run.ended_at if run.ended_at is not None else None
    elapsed = None if ended is None or run.started_at is None else round((ended - run.started_at) * 1000)
    return {
        "id": task.id,
        "name": run.name,
        "run": run.id,
        "state": str(task.state),
        "slot": None if task.slot is None else task.slot.name,
        "agent": task.slot.agent if task.slot else task.spec.agent,
        "output": task.output,
        "data": None if reply is None else Redactor().json(reply.data),
        "success": task.state is TaskState.COMPLETED if task.run.ended_at is not None else None,
        **cost_view(task.cost),
        "turns": None if trace is None else trace.turns,
        "elapsed_ms": elapsed,
        "model": None if reply is None else reply.model,
        "session_id": None if trace is None else trace.session,
        "error": Redactor().json({name: value for name, value in error.items() if name != "traceback"}) or None,
        "reason": task.refusal or None,
        "setup": task.setup or None,
        "permission": None if task.permission is None else permission_view(task.permission),
        "failed_command": error.get("command"),
        "exit_code": error.get("exit_code"),
        "stderr": redact(last_lines(str(error["log"]))).text if error.get("log") else None,
        "budget_exceeded": run.overdraft is not None,
        "rejection_count": task.rejections,
        "max_rejections": task.spec.max_rejections,
        **work_view(task),
        "original_prompt": task.spec.prompt,
        "priority": task.spec.priority,
        "after": list(task.spec.after),
        "tags": list(run.tags),
        "created_at": moment(run.created_at),
        "started_at": moment(run.started_at),
        "ended_at": moment(run.ended_at),
    }


def work_view(task: Task) -> dict[str, Any]:
    """Return where the work of a task is as JSON: on its branch and beside it, as it was last saved."""
    saved = task.saved
    return {
        "branch": task.branch,
        "base": task.base,
        "summary": task.summary,
        "changed": saved.get("changed"),
        "files": Redactor().json(saved.get("files", [])),
        "other_branches": saved.get("other_branches", []),
        "nested_repositories": Redactor().json(saved.get("nested", [])),
        "unsaved_files": Redactor().json(saved.get("unsaved", [])),
        "operation": saved.get("operation"),
        "beside": list(task.beside),
        "merged_into": task.merged_into,
        "repository_changes": saved.get("repository_changes", []),
        "repository_unknown": saved.get("repository_unknown"),
        "handed_over": [_handover_view(one) for one in task.handed_over],
    }


def _handover_view(earlier: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "task": earlier["task"],
        "name": earlier["name"],
        "branch": earlier.get("branch"),
        "commit": earlier.get("head"),
        "missing": earlier.get("missing", []),
    }


def permission_view(question: PermissionQuestion) -> dict[str, Any]:
    """Return what a task asks permission for as JSON."""
    return {"tool": question.tool or None, "input": question.input}


def last_lines(log: str) -> str:
    """Return the end of what a program wrote to standard error."""
    return "\n".join(log.rstrip().splitlines()[-MOST_LINES:])


def result_view(task: Task, found: OverlapReport) -> dict[str, Any]:
    """Return a task as JSON, with the files that other tasks changed too."""
    return task_view(task) | overlaps_view(found)


def diff_view(task: Task, diff: str, found: OverlapReport) -> dict[str, Any]:
    """Return what a task changed as JSON: the patch, where else there is work of it, and what others changed too."""
    return {"diff": diff, **work_view(task)} | overlaps_view(found)


def merge_view(merge: Merge, task: Task) -> dict[str, Any]:
    """Return a merge of the branch of a task as JSON."""
    return {
        "branch": merge.branch,
        "target": merge.target,
        "commit": merge.commit,
        "empty": merge.is_empty,
        **{name: work_view(task)[name] for name in ("other_branches", "nested_repositories", "operation", "beside")},
    }


def overlaps_view(found: OverlapReport) -> dict[str, Any]:
    """Return the files that several tasks changed as JSON."""
    return {
        "overlaps": [
            {
                "path": redact(one.path).text,
                "tasks": list(one.tasks),
                "names": {task: found.names[task] for task in one.tasks if task in found.names},
                "conflicts": [list(pair) for pair in one.conflicts],
                "examined": one.examined,
            }
            for one in found.overlaps
        ],
        "overlaps_left_out": found.left_out,
        "overlaps_unknown": found.obstacle or None,
    }


def slot_view(slot: Slot) -> dict[str, Any]:
    """Return a slot as JSON."""
    return {
        "id": slot.profile.id,
        "name": slot.profile.name,
        "role": slot.profile.role or None,
        "state": slot.state,
        "current_task": None if slot.task is None else slot.task.id,
        "current_task_name": None if slot.task is None else slot.task.run.name,
        "session_id": slot.session,
        "worktree": None if slot.task is None else slot.task.tree.get("path"),
        **cost_view(slot.cost),
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
        "spend_usd": to_usd(status.cost.total),
        "unlisted_usd": to_usd(status.unlisted),
        **cost_view(status.cost),
        "draining": status.draining,
        "driver": None if status.driver is None else str(status.driver),
    }


def snapshot_view(snapshot: PoolSnapshot) -> dict[str, Any]:
    """Return the pool at one moment as JSON, with its slots and the tasks that are shown."""
    return {
        "pool": pool_view(snapshot.status),
        "slots": [slot_view(slot) for slot in snapshot.status.slots],
        "tasks": [task_view(task) for task in snapshot.tasks],
        "tasks_left_out": snapshot.left_out,
        "writing": dict(snapshot.writing),
    }


def log_view(record: LogRecord) -> dict[str, Any]:
    """Return a record of a task's log as JSON."""
    said = {"key": record.key or None, "text": record.text}
    if record.event is None:
        return {"type": "output", "at": moment(record.at), **said}
    return {"type": "event", **event_view(record.event), "text": record.text or None}


def metrics_view(found: PoolMetrics) -> dict[str, Any]:
    """Return figures over tasks as JSON."""
    names = ("min", "median", "avg", "max")
    return {
        "tasks": found.tasks,
        "states": {str(state): number for state, number in found.states.items()},
        **money_view(found.spent),
        "average_cost_usd": None if found.average_cost is None else to_usd(found.average_cost),
        "highest_cost_usd": None if found.highest_cost is None else to_usd(found.highest_cost),
        "unlisted_usd": to_usd(found.unlisted),
        "elapsed_ms": (
            None
            if found.elapsed is None
            else {name: round(seconds * 1000) for name, seconds in zip(names, found.elapsed, strict=True)}
        ),
        "turns": found.turns,
        "models": {model: _model_view(one) for model, one in found.models.items()},
        "unknown_model": _model_view(found.unknown_model),
    }


def _model_view(found: ModelFigures) -> dict[str, Any]:
    return {"tasks": found.tasks, **money_view(found.spent)}


def fan_out_view(tasks: Sequence[Task]) -> dict[str, Any]:
    """Return the results of a fan-out as JSON, in the order of its prompts."""
    return {"results": [task_view(task) for task in tasks]}


def message_view(message: Signal) -> dict[str, Any]:
    """Return a message to a slot as JSON."""
    return {"id": message.seq, "from": message.sender or None, "text": message.payload, "sent_at": moment(message.at)}
