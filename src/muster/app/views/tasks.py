"""Tasks: as they stand, their work, their logs, and what several of them changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.app.pool.monitor import LogRecord
from muster.app.pool.task_queries import Task
from muster.app.pool.trees import Merge, OverlapReport, TaskOverlap
from muster.app.views.events import event_view
from muster.app.views.money import cost_view
from muster.domain.canonical import Json
from muster.domain.run import RunState
from muster.domain.task import TaskState
from muster.pool.handover import Handover
from muster.pool.permissions import PermissionQuestion
from muster.text.secrets.redaction import Redactor, redact
from muster.text.views import UNSET, UnsetType, View, asdict, instant, moment, replace

MAX_LINES = 20  # of standard error


class OverlapView(View):
    """A file that several tasks changed, and which of them changed the same lines."""

    path: str
    tasks: Sequence[str]
    names: Mapping[str, str]
    conflicts: Sequence[Sequence[str]]
    examined: bool


class OverlapsView(View):
    """The files that several tasks changed."""

    overlaps: Sequence[OverlapView]
    overlaps_left_out: int
    overlaps_unknown: str | None


class HandoverView(View):
    """The work of an earlier task that a task began with."""

    task: str
    name: str | None
    branch: str | None
    commit: str | None
    missing: Sequence[Json]


class WorkView(View, kw_only=True):
    """Where the work of a task is: on its branch and beside it, as it was last saved."""

    branch: str | None
    base: str | None
    summary: str | None
    changed: int | None
    files: Sequence[Json]
    other_branches: Sequence[str]
    nested_repositories: Sequence[str]
    unsaved_files: Sequence[str]
    operation: str | None
    beside: Sequence[str]
    merged_into: str | None
    repository_changes: Sequence[Any]
    repository_unknown: str | None
    handed_over: Sequence[HandoverView]


class PermissionView(View):
    """What a task asks permission for."""

    tool: str | None
    input: Mapping[str, Json] | None


class TaskView(WorkView):
    """A task as it stands; its result has the files that other tasks changed too."""

    id: str
    name: str | None
    run: str
    state: TaskState
    slot: str | None
    agent: str | None
    output: str | None
    data: Json
    success: bool | None
    cost_usd: float  # the amounts of CostView: a value has one base
    spent_usd: float
    imputed_usd: float
    uncertain_usd: float
    reserved_usd: float
    budget_usd: float | None
    turns: int | None
    elapsed_ms: int | None
    model: str | None
    session_id: str | None
    error: Mapping[str, Json] | None
    reason: str | None
    remedy: str | None
    setup: str | None
    permission: PermissionView | None
    failed_command: Json
    exit_code: int | None
    stderr: str | None
    budget_exceeded: bool
    rejection_count: int
    max_rejections: int
    original_prompt: str
    priority: int
    timeout_secs: float | None
    after: Sequence[str]
    tags: Sequence[str]
    created_at: str
    started_at: str | None
    ended_at: str | None
    overlaps: Sequence[OverlapView] | UnsetType = UNSET
    overlaps_left_out: int | UnsetType = UNSET
    overlaps_unknown: str | UnsetType | None = UNSET


class TaskPageView(View):
    """The newest tasks, and whether there are more."""

    tasks: Sequence[TaskView]
    more: bool


class DiffView(WorkView):
    """What a task changed: the patch, where else there is work of it, and what others changed too."""

    diff: str
    overlaps: Sequence[OverlapView]
    overlaps_left_out: int
    overlaps_unknown: str | None


class MergeView(View):
    """A merge of the branch of a task, with what it left elsewhere."""

    branch: str
    target: str
    commit: str
    empty: bool
    other_branches: Sequence[str]
    nested_repositories: Sequence[str]
    operation: str | None
    beside: Sequence[str]
    applied: bool


class ClaimView(View):
    """The task that a slot was given; null: there was none."""

    task: str | None


class LogRecordView(View):
    """A record of a task's log: an event, or a piece of what its agent wrote."""

    type: str
    at: str
    text: str | None
    run: str | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    data: Mapping[str, Json] | UnsetType = UNSET
    state: RunState | UnsetType = UNSET
    key: str | UnsetType | None = UNSET


class LogView(View):
    """What happened to a task so far and what its agent wrote."""

    log: Sequence[LogRecordView]


class FanOutView(View):
    """The results of a fan-out, in the order of its prompts."""

    results: Sequence[TaskView]


def task_view(task: Task) -> TaskView:
    """Return a task as it stands."""
    run, reply, error = task.run, task.reply, task.run.error or {}
    trace = None if reply is None else reply.trace
    return TaskView(
        **asdict(work_view(task)),
        **asdict(cost_view(task.cost)),
        id=task.id,
        name=run.name,
        run=run.id,
        state=task.state,
        slot=None if task.slot is None else task.slot.name,
        agent=task.slot.agent if task.slot else task.spec.agent,
        output=task.output,
        data=None if reply is None else Redactor().json(reply.data),
        success=task.state is TaskState.COMPLETED if run.ended_at is not None else None,
        turns=None if trace is None else trace.turns,
        elapsed_ms=_elapsed(task),
        model=None if reply is None else reply.model,
        session_id=None if trace is None else trace.session,
        error=Redactor().json({name: value for name, value in error.items() if name != "traceback"}) or None,
        reason=task.refusal or None,
        remedy=task.remedy or None,
        setup=task.setup or None,
        permission=None if task.permission is None else permission_view(task.permission),
        failed_command=error.get("command"),
        exit_code=error.get("exit_code"),
        stderr=redact(last_lines(str(error["log"]))).text if error.get("log") else None,
        budget_exceeded=run.overdraft is not None,
        rejection_count=task.rejections,
        max_rejections=task.spec.max_rejections,
        original_prompt=task.spec.prompt,
        priority=task.spec.priority,
        timeout_secs=run.timeout,
        after=task.spec.after,
        tags=run.tags,
        created_at=instant(run.created_at),
        started_at=moment(run.started_at),
        ended_at=moment(run.ended_at),
    )


def _elapsed(task: Task) -> int | None:
    began, ended = task.run.started_at, task.run.ended_at
    return None if began is None or ended is None else round((ended - began) * 1000)


def work_view(task: Task) -> WorkView:
    """Return where the work of a task is."""
    saved = task.saved
    return WorkView(
        branch=task.branch,
        base=task.base,
        summary=task.summary,
        changed=saved.get("changed"),
        files=Redactor().json(saved.get("files", [])),
        other_branches=saved.get("other_branches", []),
        nested_repositories=Redactor().json(saved.get("nested", [])),
        unsaved_files=Redactor().json(saved.get("unsaved", [])),
        operation=saved.get("operation"),
        beside=task.beside,
        merged_into=task.merged_into,
        repository_changes=saved.get("repository_changes", []),
        repository_unknown=saved.get("repository_unknown"),
        handed_over=[_handover_view(earlier) for earlier in task.handed_over],
    )


def _handover_view(earlier: Handover) -> HandoverView:
    return HandoverView(
        task=earlier.task,
        name=earlier.name,
        branch=earlier.branch,
        commit=earlier.head,
        missing=earlier.missing,
    )


def permission_view(question: PermissionQuestion) -> PermissionView:
    """Return what a task asks permission for."""
    return PermissionView(tool=question.tool or None, input=question.input)


def last_lines(log: str) -> str:
    """Return the end of what a program wrote to standard error."""
    return "\n".join(log.rstrip().splitlines()[-MAX_LINES:])


def task_page_view(tasks: Sequence[Task], limit: int) -> TaskPageView:
    """Return at most so many of some tasks."""
    return TaskPageView(tasks=[task_view(task) for task in tasks[:limit]], more=len(tasks) > limit)


def result_view(task: Task, report: OverlapReport) -> TaskView:
    """Return a task, with the files that other tasks changed too."""
    return replace(task_view(task), **asdict(overlaps_view(report)))


def diff_view(task: Task, diff: str, report: OverlapReport) -> DiffView:
    """Return what a task changed."""
    return DiffView(**asdict(work_view(task)), **asdict(overlaps_view(report)), diff=diff)


def merge_view(merge: Merge, task: Task, *, applied: bool) -> MergeView:
    """Return a merge of the branch of a task, and whether it was applied to the user's branch."""
    work = work_view(task)
    return MergeView(
        branch=merge.branch,
        target=merge.target,
        commit=merge.commit,
        empty=merge.is_empty,
        other_branches=work.other_branches,
        nested_repositories=work.nested_repositories,
        operation=work.operation,
        beside=work.beside,
        applied=applied,
    )


def overlaps_view(report: OverlapReport) -> OverlapsView:
    """Return the files that several tasks changed."""
    return OverlapsView(
        overlaps=[_overlap_view(overlap, report.names) for overlap in report.overlaps],
        overlaps_left_out=report.left_out,
        overlaps_unknown=report.obstacle or None,
    )


def _overlap_view(overlap: TaskOverlap, names: Mapping[str, str]) -> OverlapView:
    return OverlapView(
        path=redact(overlap.path).text,
        tasks=overlap.tasks,
        names={task: names[task] for task in overlap.tasks if task in names},
        conflicts=overlap.conflicts,
        examined=overlap.examined,
    )


def log_view(record: LogRecord) -> LogRecordView:
    """Return a record of a task's log."""
    if record.event is None:
        return LogRecordView(type="output", at=instant(record.at), key=record.key or None, text=record.text)
    return LogRecordView(type="event", **asdict(event_view(record.event)), text=record.text or None)


def fan_out_view(tasks: Sequence[Task]) -> FanOutView:
    """Return the results of a fan-out, in the order of its prompts."""
    return FanOutView(results=[task_view(task) for task in tasks])
