"""Tasks: submitted, listed, claimed, reviewed, canceled and tried again."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from muster.api.bodies import AllowBody, AmendBody, DenyBody, FeedbackBody, ResumeBody
from muster.api.dependencies import Audit, Opened, PageLimit, Starter, needs
from muster.api.json_route import JsonRoute
from muster.app import Muster
from muster.app.views.tasks import (
    ClaimView,
    DiffView,
    LogView,
    TaskPageView,
    TaskView,
    diff_view,
    log_view,
    result_view,
    task_page_view,
    task_view,
)
from muster.domain.run import Run
from muster.domain.task import TaskState

router = APIRouter(prefix="/api/tasks", tags=["tasks"], route_class=JsonRoute)
READ, START, REVIEW = [needs("read")], [needs("start")], [needs("review")]


@router.get("", dependencies=READ)
async def list_tasks(
    muster: Opened,
    state: Annotated[list[TaskState] | None, Query()] = None,
    slot: Annotated[str | None, Query(max_length=200)] = None,
    tag: Annotated[str | None, Query(max_length=200)] = None,
    limit: PageLimit = 50,
) -> TaskPageView:
    """Return the newest tasks."""
    found = await muster.pool.tasks.list(state or (), tag=tag, slot=slot, limit=limit + 1)
    return task_page_view(found, limit)


@router.post("/claim/{slot}", dependencies=[needs("admin")])
async def claim_task(muster: Opened, audit: Audit, slot: str) -> ClaimView:
    """Give the oldest pending task that fits to a slot; null when there is none."""
    async with audit.action("claim", slot) as doing:
        task = await muster.pool.tasks.claim(slot)
        doing.subject = slot if task is None else task.id
    return ClaimView(task=None if task is None else task.id)


@router.get("/{task_id}", dependencies=READ)
async def show_task(muster: Opened, task_id: str) -> TaskView:
    """Return a task as it stands."""
    return task_view(await muster.pool.tasks.get(task_id))


@router.get("/{task_id}/result", dependencies=READ)
async def task_result(muster: Opened, task_id: str) -> TaskView:
    """Return a task with its output, and the files that other tasks changed too."""
    task = await muster.pool.tasks.get(task_id)
    return result_view(task, await muster.pool.trees.overlaps(task.id))


@router.get("/{task_id}/diff", dependencies=READ)
async def task_diff(muster: Opened, task_id: str) -> DiffView:
    """Return what a task changed in its worktree, as a patch."""
    task = await muster.pool.tasks.get(task_id)
    shared = await muster.pool.trees.overlaps(task.id)
    return diff_view(task, await muster.pool.trees.diff(task.id), shared)


@router.get("/{task_id}/logs", dependencies=READ)
async def task_logs(muster: Opened, task_id: str) -> LogView:
    """Return what happened to a task so far and what its agent wrote."""
    return LogView(log=[log_view(record) async for record in muster.pool.monitor.logs(task_id)])


@router.post("/{task_id}/approve", dependencies=REVIEW)
async def approve_task(muster: Opened, audit: Audit, task_id: str) -> TaskView:
    """Approve a task that waits for review."""
    async with audit.action("approve", task_id) as doing:
        task = await muster.pool.tasks.approve(task_id, sender=audit.user)
        doing.subject = task.id
    return task_view(task)


@router.post("/{task_id}/reject", dependencies=REVIEW)
async def reject_task(muster: Opened, audit: Audit, task_id: str, body: FeedbackBody) -> TaskView:
    """Reject a task that waits for its review; it is done again with all feedback."""
    async with audit.action("reject", task_id) as doing:
        task = await muster.pool.tasks.reject(task_id, body.feedback, budget_usd=body.budget_usd, sender=audit.user)
        doing.subject = task.id
    return task_view(task)


@router.post("/{task_id}/allow", dependencies=REVIEW)
async def allow_task(muster: Opened, audit: Audit, task_id: str, body: AllowBody | None = None) -> TaskView:
    """Grant what a task asks permission for, to its end."""
    tool = body.tool if body else None
    async with audit.action("allow", task_id) as doing:
        task = await muster.pool.tasks.allow(task_id, tool=tool, sender=audit.user)
        doing.subject = task.id
    return task_view(task)


@router.post("/{task_id}/deny", dependencies=REVIEW)
async def deny_task(muster: Opened, audit: Audit, task_id: str, body: DenyBody | None = None) -> TaskView:
    """Deny what a task asks permission for; its agent goes on without it."""
    reason = body.reason if body else ""
    async with audit.action("deny", task_id) as doing:
        task = await muster.pool.tasks.deny(task_id, reason, sender=audit.user)
        doing.subject = task.id
    return task_view(task)


@router.post("/{task_id}/change", dependencies=START)
async def change_task(muster: Opened, audit: Audit, task_id: str, body: AmendBody) -> TaskView:
    """Change the prompt or the priority of a task that has not started."""
    async with audit.action("change", task_id) as doing:
        task = await muster.pool.tasks.amend(task_id, prompt=body.prompt, priority=body.priority)
        doing.subject = task.id
    return task_view(task)


@router.post("/{task_id}/cancel", dependencies=START)
async def cancel_task(muster: Opened, audit: Audit, task_id: str) -> TaskView:
    """Cancel a task; 409 for one that has ended otherwise."""
    async with audit.action("cancel", task_id) as doing:
        task = await muster.pool.cancel(task_id)
        doing.subject = task.id
    return task_view(task)


@router.post("/{task_id}/retry", dependencies=START, status_code=202)
async def retry_task(
    muster: Opened, starter: Starter, response: Response, task_id: str, body: ResumeBody | None = None
) -> TaskView:
    """Queue a failed or canceled task again, with a new total for its budget if one is given."""
    wanted = body or ResumeBody()

    async def begin(muster: Muster) -> Run:
        return (await muster.pool.tasks.retry(task_id, budget_usd=wanted.budget_usd)).run

    return task_view(await muster.pool.tasks.of(await starter.start(response, "retry", begin, wanted)))
