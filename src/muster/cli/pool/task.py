"""`muster task`: work for the slots of the pool, submitted, reviewed, canceled and shown."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.kinds import TASK
from muster.app.pool.task_queries import Task
from muster.app.pool.trees import Merge, OverlapReport
from muster.app.serving.orders import naming_agents
from muster.app.views.errors import task_error
from muster.app.views.tasks import diff_view, merge_view, result_view, task_view
from muster.cli.drive import SignalHandler
from muster.cli.line import Argument, Option
from muster.cli.options import LimitOption, TaskArgument, filled
from muster.cli.pool.checks import check_of
from muster.cli.pool.options import TaskArguments
from muster.cli.pool.tables import permission_text, task_notes, tasks_table
from muster.cli.pool.words import notice_lines, overlap_lines, work_commands, work_text
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, answer_list, clean, fail_with, note, warn
from muster.cli.terminal.stream import AnswerWriter
from muster.domain.errors import BadArgument, Interrupted, state_verb
from muster.domain.task import TaskState

if TYPE_CHECKING:
    from rich.console import Console

NewTotalOption = Annotated[
    str | None,
    Option("--budget", metavar="USD", help="The new total budget in dollars, including what was spent."),
]


def run(common: CommonOptions, arguments: TaskArguments) -> int:
    """Run a task and wait until it ends or waits for review; runs in this process if no process runs the pool."""
    order, streams = filled(arguments.order, TASK), sys.stdout.isatty() and not common.json

    async def work(muster: Muster) -> Task:
        SignalHandler(muster, warn).install()
        writer = AnswerWriter(muster.settings.secrets)
        try:
            with naming_agents(muster, order):
                task = await muster.pool.run_ordered(order, on_delta=writer if streams else None)
        finally:
            writer.break_line()
        if streams and task.reply is not None:
            writer.finish(task.reply.text)
        return task

    task = with_muster(common, work, create=True)
    if task.state is TaskState.PENDING and not task.refusal:
        go_on = "muster pool start"
        raise Interrupted(f"task {task.title} was interrupted; continue with: {go_on}", suggestions=(go_on,))
    return _tell(common, task, printed=streams)


def submit(common: CommonOptions, arguments: TaskArguments) -> int:
    """Queue a task for the process that runs the pool."""
    order = filled(arguments.order, TASK)

    async def work(muster: Muster) -> tuple[Task, bool]:
        with naming_agents(muster, order):
            task = await muster.pool.tasks.submit_ordered(order)
        return task, await muster.pool.living_driver() is not None

    task, driven = with_muster(common, work, create=True)
    who = "" if driven else "; no process runs the pool; start one with: muster pool start"
    text = clean(f"task {task.title} is pending{who}")
    answer(common, task_view(task), lambda console: console.print(text, soft_wrap=True))
    return 0


def result(common: CommonOptions, task: TaskArgument) -> int:
    """Print the output of a task; exit 1 if it failed."""

    async def work(muster: Muster) -> tuple[Task, OverlapReport]:
        found = await muster.pool.tasks.get(task)
        return found, await muster.pool.trees.overlaps(found.id)

    return _tell(common, *with_muster(common, work))


def cancel(common: CommonOptions, task: TaskArgument) -> int:
    """Cancel a task that has not ended."""
    return _changed(common, lambda muster: muster.pool.cancel(task), "")


def approve(common: CommonOptions, task: TaskArgument) -> int:
    """Approve a task that waits for review."""
    return _changed(common, lambda muster: muster.pool.tasks.approve(task), "approved, and completes")


def reject(
    common: CommonOptions,
    task: TaskArgument,
    feedback: Annotated[str, Option("--feedback", metavar="TEXT", help="What to do differently.")],
    budget: NewTotalOption = None,
) -> int:
    """Reject a task that waits for review; the agent does it again and sees all feedback."""

    def work(muster: Muster) -> Awaitable[Task]:
        return muster.pool.tasks.reject(task, feedback, budget_usd=budget)

    return _changed(common, work, "rejected, and done again", ends="rejected as often as it allows, and fails")


def allow(
    common: CommonOptions,
    task: TaskArgument,
    tool: Annotated[
        str | None,
        Option(
            "--tool",
            metavar="RULE",
            shown="the tool that it asks for",
            help="Grant this instead, such as 'Bash(git status:*)' for Claude Code.",
        ),
    ] = None,
) -> int:
    """Grant the permission that a task asks for, until the task ends."""
    return _changed(common, lambda muster: muster.pool.tasks.allow(task, tool=tool), "allowed, and continues")


def deny(
    common: CommonOptions,
    task: TaskArgument,
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="The reason; the agent sees it.")] = "",
) -> int:
    """Deny the permission that a task asks for; its agent continues without it."""
    return _changed(common, lambda muster: muster.pool.tasks.deny(task, reason), "denied, and continues without it")


def retry(
    common: CommonOptions,
    task: TaskArgument,
    budget: NewTotalOption = None,
) -> int:
    """Queue a failed or canceled task again."""
    return _changed(common, lambda muster: muster.pool.tasks.retry(task, budget_usd=budget), "queued again, and done")


def change(
    common: CommonOptions,
    task: TaskArgument,
    prompt: Annotated[str | None, Option("--prompt", metavar="TEXT", help="The new prompt.")] = None,
    priority: Annotated[int | None, Option("--priority", metavar="N", help="The new priority.")] = None,
) -> int:
    """Change the prompt or the priority of a task that has not started."""
    if prompt is None and priority is None:
        raise BadArgument("nothing to change", suggestions=("add --prompt or --priority",))
    return _changed(common, lambda muster: muster.pool.tasks.amend(task, prompt=prompt, priority=priority), "")


def claim(common: CommonOptions, slot: Annotated[str, Argument(metavar="SLOT", help="A slot's name or id.")]) -> int:
    """Assign the oldest pending task that fits to a slot; print its id, or nothing if there is none."""

    async def work(muster: Muster) -> Task | None:
        return await muster.pool.tasks.claim(slot)

    found = with_muster(common, work)
    data = {"task": None if found is None else found.id}
    answer(common, data, lambda console: console.print(found.id) if found is not None else None)
    return 0


def diff(common: CommonOptions, task: TaskArgument) -> int:
    """Print what a task changed in its worktree, as a patch."""

    async def work(muster: Muster) -> tuple[str, Task, OverlapReport]:
        found = await muster.pool.tasks.get(task)
        return await muster.pool.trees.diff(found.id), found, await muster.pool.trees.overlaps(found.id)

    text, found, shared = with_muster(common, work)
    answer(common, diff_view(found, text, shared), lambda console: console.out(clean(text), highlight=False, end=""))
    _tell_work(common, found)
    _tell_overlaps(common, found.id, shared)
    return 0


def merge(
    common: CommonOptions,
    task: TaskArgument,
    check: Annotated[
        str | None,
        Option("--check", metavar="COMMAND", help="A command that must succeed on the merged files; no shell runs it."),
    ] = None,
    apply: Annotated[
        bool, Option("--apply", help="Merge into the branch that is checked out, if it has no uncommitted changes.")
    ] = False,
) -> int:
    """Merge the branch of a task in a separate worktree; your files change only with --apply."""

    command = check_of(check)

    async def work(muster: Muster) -> tuple[Merge, Task]:
        merge = await muster.pool.trees.merge(task, command, apply=apply)
        return merge, await muster.pool.tasks.get(task)

    found, whose = with_muster(common, work)
    data = merge_view(found, whose, applied=apply and not found.is_empty)
    text = f"task {whose.title}: {_merged(found, whose, apply=apply)}"
    answer(common, data, lambda console: console.print(clean(text), soft_wrap=True))
    return 0


def _merged(merge: Merge, task: Task, *, apply: bool) -> str:
    """Return what a merge came to; one of nothing says so, and what lies beside the branch is named."""
    beside = f"; not merged: {'; '.join(task.beside)}" if task.beside else ""
    if merge.is_empty:
        return f"nothing to merge: {merge.target} has all of {merge.branch} already{beside}"
    moved = "" if apply else "; nothing was moved; add --apply to do so"
    return f"merged {merge.branch} into {merge.target}: {merge.commit[:12]}{moved}{beside}"


def list_tasks(
    common: CommonOptions,
    state: Annotated[
        str | None, Option("--state", metavar="STATE", values=TaskState, help="Only tasks in this state.")
    ] = None,
    slot: Annotated[str | None, Option("--slot", metavar="NAME", help="Only tasks of this slot.")] = None,
    tag: Annotated[str | None, Option("--tag", metavar="TAG", help="Only tasks with this tag.")] = None,
    limit: LimitOption = 20,
) -> None:
    """List the newest tasks."""

    async def work(muster: Muster) -> list[Task]:
        wanted = () if state is None else (state,)
        return list(await muster.pool.tasks.list(wanted, tag=tag, slot=slot, limit=limit + 1))

    found = with_muster(common, work)
    tasks = found[:limit]

    def tell(console: "Console") -> None:
        if tasks:
            console.print(tasks_table(tasks, console.width))
            for line in task_notes(tasks):
                console.print(line, soft_wrap=True)
        else:
            note(common, "no tasks match" if state or tag or slot else "no tasks yet")

    answer_list(common, [task_view(task) for task in tasks], tell, cut=len(found) > limit, noun="tasks")


def _changed(common: CommonOptions, change: Callable[[Muster], Awaitable[Task]], done: str, *, ends: str = "") -> int:
    """Change a task and say so; `done` is what becomes of it as soon as the pool is driven, `ends` after too many."""

    async def work(muster: Muster) -> tuple[Task, bool]:
        return await change(muster), await muster.pool.living_driver() is not None

    task, driven = with_muster(common, work)
    text = f"task {task.title} {state_verb(task.state)}"
    if done and task.state is TaskState.PENDING:
        becomes = ends if ends and task.is_rejected_for_good else done
        when = "soon" if driven else "when the pool is started: muster pool start"
        text = f"task {task.title} is {becomes} {when}"
    answer(common, task_view(task), lambda console: console.print(clean(text), soft_wrap=True))
    return 0


def _tell(common: CommonOptions, task: Task, shared: OverlapReport | None = None, *, printed: bool = False) -> int:
    """Print what a task came to; standard output holds the output and nothing else."""
    error, data = task_error(task), task_view(task) if shared is None else result_view(task, shared)
    if common.json:
        if error is not None:
            return fail_with(common, error, 1, data)
        answer(common, data, lambda console: None)
        return 0
    if task.reply is not None and not printed:
        text = clean(task.output or "")
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    if error is not None:
        code = fail_with(common, error, 1)
        failure = {"failed command": data.failed_command, "exit code": data.exit_code}
        for name, value in (failure | {"cost": str(task.cost), "work": work_text(task) or None}).items():
            if value is not None:
                warn(clean(f"  {name}: {value}"))
        for line in notice_lines(task):
            warn(clean(line))
        return code
    note(common, clean(_footer(task)))
    _tell_work(common, task)
    _tell_overlaps(common, task.id, shared or OverlapReport())
    return 0


def _tell_work(common: CommonOptions, task: Task) -> None:
    """Say where the work of a task is, and how it is taken."""
    lines = [line for line in (work_text(task), work_commands(task), *notice_lines(task)) if line]
    if lines:
        note(common, clean("\n".join(lines)))


def _tell_overlaps(common: CommonOptions, task: str, shared: OverlapReport) -> None:
    if lines := overlap_lines(shared, task):
        note(common, clean("\n".join(lines)))


def _footer(task: Task) -> str:
    parts = [f"task {task.title} {state_verb(task.state)}"]
    if task.slot is not None:
        parts.append(f"slot {task.slot.name}")
    parts.append(str(task.cost))
    if task.permission is not None:
        parts.append(permission_text(task.permission))
        parts.append(f"muster task allow {task.id}, or muster task deny {task.id} --reason TEXT")
    elif task.state is TaskState.PENDING_REVIEW:
        parts.append(f"muster task approve {task.id}, or muster task reject {task.id} --feedback TEXT")
    return " · ".join(parts)
