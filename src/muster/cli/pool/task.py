"""`muster task`: work for the slots of the pool, submitted, reviewed, canceled and shown."""

import json
import shlex
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from muster.app import Muster
from muster.app.pool.tasks import Task
from muster.app.pool.trees import Merge
from muster.app.pool.values import Isolation, TaskSpec, TaskState
from muster.app.views.errors import task_error
from muster.app.views.pool import task_view
from muster.cli.completers import agent_names
from muster.cli.drive import SignalHandler
from muster.cli.line import Argument, Bundle, Option
from muster.cli.pool.tables import tasks_table
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean, fail_with, note, warn
from muster.domain.errors import BadArgument, Interrupted, NotFound
from muster.domain.money import show_usd
from muster.settings import parse_budget

if TYPE_CHECKING:
    from rich.console import Console

TaskArgument = Annotated[str, Argument(metavar="TASK", help="An id, the beginning of one, a name, or `last`.")]
PromptArgument = Annotated[
    str, Argument(metavar="PROMPT", when_more="Quote the prompt.", help="The prompt; - is standard input.")
]


def spec_of(
    agent: Annotated[
        str | None,
        Option("--agent", metavar="AGENT", complete=agent_names, shown="that of the slot", help="Who does it."),
    ] = None,
    slot: Annotated[str | None, Option("--slot", metavar="NAME", help="Only this slot may do it.")] = None,
    role: Annotated[str | None, Option("--role", metavar="ROLE", help="Only a slot with this role may do it.")] = None,
    model: Annotated[str | None, Option("--model", metavar="MODEL", help="The model of a CLI agent.")] = None,
    effort: Annotated[str | None, Option("--effort", metavar="EFFORT", help="The effort of Claude Code.")] = None,
    permission_mode: Annotated[
        str | None, Option("--permission-mode", metavar="MODE", help="The permission mode of Claude Code.")
    ] = None,
    tools: Annotated[
        str | None, Option("--tools", metavar="A,B", help="Tools that Claude Code may use without asking.")
    ] = None,
    max_turns: Annotated[
        int | None, Option("--max-turns", metavar="N", min=1, help="The most turns of Claude Code.")
    ] = None,
    system: Annotated[str, Option("--system", metavar="TEXT", help="Added to the system prompt.")] = "",
    schema: Annotated[
        Path | None, Option("--schema", metavar="FILE", help="A JSON Schema that the answer must fit.")
    ] = None,
    isolation: Annotated[
        str | None,
        Option(
            "--isolation",
            values=Isolation,
            shown="worktree for CLI agents in a git repository, else none",
            help="Where it works: in the project, in a git worktree or clone of its own.",
        ),
    ] = None,
    cwd: Annotated[str, Option("--cwd", metavar="DIR", help="The working folder, below the project.")] = "",
    review: Annotated[
        bool, Option("--review", help="Wait for `task approve` or `task reject` when it is done.")
    ] = False,
    max_rejections: Annotated[
        int, Option("--max-rejections", metavar="N", min=1, max=100, help="Rejections after which it has failed.")
    ] = 3,
    budget: Annotated[
        str | None, Option("--budget", metavar="USD", help="The most that the task may cost, in dollars.")
    ] = None,
    after: Annotated[
        list[str] | None, Option("--after", metavar="TASK", help="Start when this task has completed; repeatable.")
    ] = None,
    priority: Annotated[int, Option("--priority", metavar="N", help="Tasks with a higher number start first.")] = 0,
) -> TaskSpec:
    """Collect what a task is, but for its prompt."""
    named = {"model": model, "effort": effort, "permission_mode": permission_mode, "max_turns": max_turns}
    settings: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    if tools:
        settings["tools"] = [tool.strip() for tool in tools.split(",") if tool.strip()]
    return TaskSpec(
        prompt="?",
        agent=agent,
        slot=slot,
        role=role,
        system=system,
        schema=None if schema is None else _read_schema(schema),
        settings=settings,
        cwd=cwd,
        isolation=isolation,
        review=review,
        max_rejections=max_rejections,
        after=tuple(after or ()),
        priority=priority,
        budget_usd=None if budget is None else _dollars(budget),
    )


SpecOptions = Annotated[TaskSpec, Bundle(spec_of, "Task")]
NameOption = Annotated[str | None, Option("--name", metavar="NAME", help="A name for the task.")]
TagOption = Annotated[list[str] | None, Option("--tag", metavar="TAG", help="A tag of the task; repeatable.")]
TimeoutOption = Annotated[
    float | None, Option("--timeout", metavar="S", help="Time limit in seconds, excluding queueing and reviews.")
]
ContinueOption = Annotated[
    str | None, Option("--continue", metavar="TASK", help="Continue the agent's session of this task.")
]


def run(
    common: CommonOptions,
    spec: SpecOptions,
    prompt: PromptArgument,
    name: NameOption = None,
    tag: TagOption = None,
    timeout: TimeoutOption = None,
    continues: ContinueOption = None,
) -> int:
    """Do a task now and wait until it ends or can be reviewed; done in this process if none drives the pool."""
    asked = replace(spec, prompt=_prompt(prompt))

    async def work(muster: Muster) -> Task:
        SignalHandler(muster, warn).install()
        return await muster.pool.run(asked, tags=tuple(tag or ()), name=name, timeout=timeout, continues=continues)

    task = with_muster(common, work, create=True)
    if task.state is TaskState.PENDING and not task.refusal:
        go_on = "muster pool start"
        raise Interrupted(f"task {task.id} was interrupted; continue with: {go_on}", suggestions=(go_on,))
    return _tell(common, task)


def submit(
    common: CommonOptions,
    spec: SpecOptions,
    prompt: PromptArgument,
    name: NameOption = None,
    tag: TagOption = None,
    timeout: TimeoutOption = None,
    continues: ContinueOption = None,
) -> int:
    """Queue a task for the process that drives the pool."""
    asked = replace(spec, prompt=_prompt(prompt))

    async def work(muster: Muster) -> tuple[Task, bool]:
        task = await muster.pool.tasks.submit(
            asked, tags=tuple(tag or ()), name=name, timeout=timeout, continues=continues
        )
        return task, await muster.pool.living_driver() is not None

    task, driven = with_muster(common, work, create=True)
    who = "" if driven else "; no process drives the pool; start one with: muster pool start"
    text = f"task {task.id} is pending{who}"
    answer(common, task_view(task), lambda console: console.print(text, soft_wrap=True))
    return 0


def result(common: CommonOptions, task: TaskArgument) -> int:
    """Print the output of a task; exit 1 if it failed."""
    return _tell(common, _of(common, task))


def cancel(common: CommonOptions, task: TaskArgument) -> int:
    """Cancel a task; one that has ended stays as it is."""
    return _changed(common, lambda muster: muster.pool.tasks.cancel(task), "")


def approve(common: CommonOptions, task: TaskArgument) -> int:
    """Approve a task that waits for its review."""
    return _changed(common, lambda muster: muster.pool.tasks.approve(task), "approved, and completes")


def reject(
    common: CommonOptions,
    task: TaskArgument,
    feedback: Annotated[str, Option("--feedback", metavar="TEXT", help="What is to be done differently.")],
) -> int:
    """Reject a task that waits for its review; it is done again, and told all feedback."""
    return _changed(common, lambda muster: muster.pool.tasks.reject(task, feedback), "rejected, and done again")


def retry(common: CommonOptions, task: TaskArgument) -> int:
    """Queue a failed or canceled task again."""
    return _changed(common, lambda muster: muster.pool.tasks.retry(task), "queued again, and done")


def change(
    common: CommonOptions,
    task: TaskArgument,
    prompt: Annotated[str | None, Option("--prompt", metavar="TEXT", help="The new prompt.")] = None,
    priority: Annotated[int | None, Option("--priority", metavar="N", help="The new priority.")] = None,
) -> int:
    """Change the prompt or the priority of a task that has not begun."""
    if prompt is None and priority is None:
        raise BadArgument("nothing to change", suggestions=("add --prompt or --priority",))
    return _changed(common, lambda muster: muster.pool.tasks.amend(task, prompt=prompt, priority=priority), "")


def claim(common: CommonOptions, slot: Annotated[str, Argument(metavar="SLOT", help="A slot's name or id.")]) -> int:
    """Give the oldest pending task that fits to a slot; prints its id, or nothing."""

    async def work(muster: Muster) -> Task | None:
        return await muster.pool.tasks.claim(slot)

    found = with_muster(common, work)
    data = {"task": None if found is None else found.id}
    answer(common, data, lambda console: console.print(found.id) if found is not None else None)
    return 0


def diff(common: CommonOptions, task: TaskArgument) -> int:
    """Print what a task changed in its worktree, as a patch."""

    async def work(muster: Muster) -> str:
        return await muster.pool.trees.diff(task)

    text = with_muster(common, work)
    answer(common, {"diff": text}, lambda console: console.out(clean(text), highlight=False, end=""))
    return 0


def merge(
    common: CommonOptions,
    task: TaskArgument,
    check: Annotated[
        str | None, Option("--check", metavar="COMMAND", help="A command that must succeed on the merged files.")
    ] = None,
    apply: Annotated[
        bool, Option("--apply", help="Move the branch that is checked out to the merge, if it is clean.")
    ] = False,
) -> int:
    """Merge the branch of a task in a worktree of its own; your files change only with --apply."""

    async def work(muster: Muster) -> Merge:
        return await muster.pool.trees.merge(task, tuple(shlex.split(check or "")), apply=apply)

    found = with_muster(common, work)
    text = f"merged {found.branch} into {found.target}: {found.commit[:12]}"
    text += "" if apply else "; nothing was moved; add --apply to do so"
    data = {"branch": found.branch, "target": found.target, "commit": found.commit, "applied": apply}
    answer(common, data, lambda console: console.print(text, soft_wrap=True))
    return 0


def list_tasks(
    common: CommonOptions,
    state: Annotated[
        str | None, Option("--state", metavar="STATE", values=TaskState, help="Only tasks in this state.")
    ] = None,
    slot: Annotated[str | None, Option("--slot", metavar="NAME", help="Only tasks of this slot.")] = None,
    tag: Annotated[str | None, Option("--tag", metavar="TAG", help="Only tasks with this tag.")] = None,
    limit: Annotated[int, Option("--limit", metavar="N", min=1, help="How many.")] = 20,
) -> None:
    """List the newest tasks."""

    async def work(muster: Muster) -> list[Task]:
        found = await muster.pool.tasks.list(() if state is None else (state,), tag=tag, limit=limit)
        return [task for task in found if slot is None or (task.slot and slot in (task.slot.name, task.slot.id))]

    tasks = with_muster(common, work)

    def tell(console: "Console") -> None:
        if tasks:
            console.print(tasks_table(tasks))
        else:
            note(common, "there are no such tasks" if state or tag or slot else "there are no tasks yet")

    answer(common, [task_view(task) for task in tasks], tell)


def _of(common: CommonOptions, reference: str) -> Task:
    async def work(muster: Muster) -> Task:
        return await muster.pool.tasks.get(reference)

    return with_muster(common, work)


def _changed(common: CommonOptions, change: Callable[[Muster], Awaitable[Task]], done: str) -> int:
    """Change a task and say so; `done` is what becomes of it as soon as the pool is driven."""

    async def work(muster: Muster) -> tuple[Task, bool]:
        return await change(muster), await muster.pool.living_driver() is not None

    task, driven = with_muster(common, work)
    text = f"task {task.id} is {task.state}"
    if done and task.state is TaskState.PENDING:
        text = f"task {task.id} is {done} " + ("soon" if driven else "when the pool is started: muster pool start")
    answer(common, task_view(task), lambda console: console.print(text, soft_wrap=True))
    return 0


def _tell(common: CommonOptions, task: Task) -> int:
    """Print what a task came to; standard output holds the output and nothing else."""
    error, data = task_error(task), task_view(task)
    if common.json:
        if error is not None:
            return fail_with(common, error, 1, data)
        answer(common, data, lambda console: None)
        return 0
    if task.reply is not None:
        text = clean(task.reply.text)
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
        sys.stdout.flush()
    if error is not None:
        return fail_with(common, error, 1)
    note(common, _footer(task))
    return 0


def _footer(task: Task) -> str:
    parts = [f"task {task.id} is {task.state}"]
    if task.slot is not None:
        parts.append(f"slot {task.slot.name}")
    parts.append(show_usd(task.run.total.billed + task.run.total.imputed))
    if task.state is TaskState.PENDING_REVIEW:
        parts.append(f"muster task approve {task.id}, or muster task reject {task.id} --feedback TEXT")
    return " · ".join(parts)


def _prompt(given: str) -> str:
    if given != "-":
        return given
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeError:
        raise BadArgument("the prompt is not UTF-8") from None


def _read_schema(path: Path) -> Any:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            raise NotFound(f"no such file: {path}") from error
        raise BadArgument(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadArgument(f"{path} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadArgument(f"{path} is not a JSON Schema")
    return found


def _dollars(given: str) -> float:
    return (parse_budget(given) or 0) / 1_000_000
