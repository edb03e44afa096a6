"""What is given about a new task: the task itself, and the name, tags and limits of its run."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from muster.app.pool.values import Isolation, OnPermission, TaskSpec
from muster.cli.completion import agent_names
from muster.cli.line import Argument, Bundle, Option
from muster.cli.options import TimeoutOption
from muster.domain.errors import BadArgument, NotFound
from muster.settings import parse_budget
from muster.text.json_documents import json_fault
from muster.text.shell import shell_syntax

OF_AGENT = "that of the slot or the agent"


def spec_of(
    agent: Annotated[
        str | None,
        Option(
            "--agent", metavar="AGENT", complete=agent_names, shown="that of the slot", help="The agent that does it."
        ),
    ] = None,
    slot: Annotated[str | None, Option("--slot", metavar="NAME", help="Only this slot may do it.")] = None,
    role: Annotated[str | None, Option("--role", metavar="ROLE", help="Only a slot with this role may do it.")] = None,
    slot_tag: Annotated[
        list[str] | None,
        Option("--slot-tag", metavar="TAG", help="Only a slot with this tag may do it; repeatable."),
    ] = None,
    model: Annotated[
        str | None, Option("--model", metavar="MODEL", shown=OF_AGENT, help="The model of a CLI agent.")
    ] = None,
    effort: Annotated[
        str | None,
        Option(
            "--effort",
            metavar="EFFORT",
            shown=OF_AGENT,
            help="The effort of Claude Code: low, medium, high, xhigh or max.",
        ),
    ] = None,
    permission_mode: Annotated[
        str | None,
        Option(
            "--permission-mode",
            metavar="MODE",
            shown=OF_AGENT,
            help="The permission mode of Claude Code: default, acceptEdits, plan, dontAsk or bypassPermissions.",
        ),
    ] = None,
    tools: Annotated[
        str | None, Option("--tools", metavar="A,B", help="Tools that Claude Code may use without asking.")
    ] = None,
    max_turns: Annotated[
        int | None,
        Option("--max-turns", metavar="N", min=1, shown=OF_AGENT, help="Maximum number of turns of Claude Code."),
    ] = None,
    system: Annotated[str, Option("--system", metavar="TEXT", help="Added to the system prompt.")] = "",
    schema: Annotated[
        Path | None, Option("--schema", metavar="FILE", help="A JSON Schema that the answer must match.")
    ] = None,
    isolation: Annotated[
        str | None,
        Option(
            "--isolation",
            values=Isolation,
            shown="worktree for CLI agents in a git repository, else none",
            help="Where the agent works: in the project, or in a separate git worktree or clone.",
        ),
    ] = None,
    on_permission: Annotated[
        str | None,
        Option(
            "--on-permission",
            values=OnPermission,
            shown="that of the slot, else of the pool",
            help="When its agent asks for permission: fail, or wait for `task allow` or `task deny`.",
        ),
    ] = None,
    cwd: Annotated[
        str, Option("--cwd", metavar="DIR", shown="the project", help="The folder to work in, below the project.")
    ] = "",
    review: Annotated[
        bool, Option("--review", help="When the work is done, wait for `task approve` or `task reject`.")
    ] = False,
    max_rejections: Annotated[
        int, Option("--max-rejections", metavar="N", min=1, max=100, help="The task fails after this many rejections.")
    ] = 3,
    budget: Annotated[
        str | None,
        Option(
            "--budget",
            metavar="USD",
            shown="default_task_budget_usd in muster.toml, else none",
            help="The budget of the task in dollars, a hard cap.",
        ),
    ] = None,
    after: Annotated[
        list[str] | None,
        Option(
            "--after",
            metavar="TASK",
            help="Start when this task has completed, from its work and with its result; repeatable.",
        ),
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
        tags=tuple(slot_tag or ()),
        system=system,
        schema=None if schema is None else _read_schema(schema),
        settings=settings,
        cwd=cwd,
        isolation=isolation,
        on_permission=on_permission,
        review=review,
        max_rejections=max_rejections,
        after=tuple(after or ()),
        priority=priority,
        budget_usd=None if budget is None else _dollars(budget),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrder:
    """A task to do, and how its run is to be called, tagged and limited."""

    spec: TaskSpec
    run: Mapping[str, Any]  # what `pool.run` and `pool.tasks.submit` take besides the spec


def order_of(
    prompt: Annotated[
        str, Argument(metavar="PROMPT", when_more="quote the prompt", help="The prompt; - is standard input.")
    ],
    spec: Annotated[TaskSpec, Bundle(spec_of, "Task")],
    name: Annotated[str | None, Option("--name", metavar="NAME", help="A name for the task.")] = None,
    tag: Annotated[list[str] | None, Option("--tag", metavar="TAG", help="A tag of the task; repeatable.")] = None,
    timeout: TimeoutOption = None,
    continues: Annotated[
        str | None, Option("--continue", metavar="TASK", help="Continue the agent session of this earlier task.")
    ] = None,
) -> TaskOrder:
    """Collect what was given about a new task."""
    run = {"name": name, "tags": tuple(tag or ()), "timeout": timeout, "continues": continues}
    return TaskOrder(spec=replace(spec, prompt=_prompt(prompt)), run=run)


OrderOptions = Annotated[TaskOrder, Bundle(order_of)]


def check_of(given: str | None) -> tuple[str, ...]:
    """Return the command of --check, which no shell runs; raises BadArgument for what only a shell understands."""
    if given is None:
        return ()
    if (syntax := shell_syntax(given.strip())) is not None:
        shell = shlex.join(["sh", "-c", given.strip()])
        raise BadArgument(
            f"is run without a shell, and {syntax!r} is shell syntax",
            argument="check",
            suggestions=(f"ask for a shell: --check {shlex.quote(shell)}", f"or put {syntax!r} into single quotes"),
        )
    try:
        command = tuple(shlex.split(given))
    except ValueError as error:
        raise BadArgument(f"is not a command: {error}", argument="check") from None
    if not command:
        raise BadArgument("is empty, so it would check nothing", argument="check")
    return command


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
        raise BadArgument(f"{path} is not JSON: {json_fault(error)}") from error
    if not isinstance(found, dict):
        raise BadArgument(f"{path} is not a JSON Schema")
    return found


def _dollars(given: str) -> float:
    return (parse_budget(given) or 0) / 1_000_000
