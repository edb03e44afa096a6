"""The commands of `setup`: they prepare a new working tree, once, before anybody works in it."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.agent import Command
from muster.domain.call import Message, Request, Role
from muster.domain.errors import AgentFailed, CallFailed
from muster.engine.context import Context
from muster.git.layout import Worktree
from muster.pool.tasks import SETUP_SECONDS

_MAX_LINES = 10  # of what a command wrote last that are shown
_MAX_SHOWN = 1_000  # characters of them


class SetupFailed(AgentFailed):
    """A command that prepares a working tree failed."""

    code = "setup_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeSetup:
    """What prepares a new working tree."""

    commands: tuple[tuple[str, ...], ...] = ()
    seconds: float = SETUP_SECONDS  # that each may take
    environment: Mapping[str, str] = field(default_factory=dict)  # besides PATH and LANG


def told_key(number: int) -> str:
    """Return the key of the event that tells of a command."""
    return f"setup/{number:03d}/told"


async def prepare_tree(ctx: Context, tree: Worktree, setup: TreeSetup, kind_of_event: str) -> None:
    """Run the commands in the root of a tree; those that succeeded before in these very files are not repeated."""
    for number, argv in enumerate(setup.commands, 1):
        command = Command(
            argv=argv, folder=str(tree.path), environment=dict(setup.environment), exits=(0,), quotes=True
        )
        told = {"command": command.name, "number": number, "of": len(setup.commands)}
        await ctx.emit(told_key(number), kind_of_event, told)
        request = Request(messages=(Message(role=Role.USER),))
        try:
            await ctx.call(command, request, key=f"setup/{tree.made}/{number:03d}", timeout=setup.seconds)
        except CallFailed as error:
            raise _failed(command, error) from error


def _failed(command: Command, error: CallFailed) -> SetupFailed:
    log = error.log if isinstance(error, AgentFailed) else ""
    why = error.message.removeprefix(f"agent {command.name!r}: ")
    ends = "\n".join(log.strip().splitlines()[-_MAX_LINES:])[-_MAX_SHOWN:]
    if ends and ends not in why:
        why = f"{why}; its last lines: {ends}"
    return SetupFailed(
        f"the working tree could not be prepared: the setup command `{shlex.join(command.argv)}` failed: {why}",
        log=log,
        suggestions=("make it succeed and try again; after a change of setup in [pool], start anew",),
    )
