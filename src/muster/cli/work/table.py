"""Commands that are made from what kinds of work declare, as a list of all commands needs them: quick to load."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from muster.app.kinds import KINDS, AppKind, made_at
from muster.cli.line.commands import CommandEntry, load_place
from muster.domain.doors import Door

START = "work.command:start"


def command_of(known: AppKind) -> CommandEntry:
    """Return the command that starts work of a kind, made from its order."""
    return CommandEntry(known.kind.about, START, arguments=partial(_arguments_of, known))


def arguments_by_name(command: str) -> Any:
    """Return what makes the arguments of a command that is made but has words or commands of its own."""
    return _arguments_of(next(known for known in KINDS if known.kind.command_name == command))


def _arguments_of(known: AppKind) -> Any:
    return load_place("work.options:arguments_of")(known)


def made_commands() -> Mapping[str, CommandEntry]:
    """Return the commands that are made, by their names."""
    return {known.kind.command_name: command_of(known) for known in made_at(Door.COMMAND)}
