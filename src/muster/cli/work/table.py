"""Commands that are made from what kinds of work declare, as a list of all commands needs them: quick to load."""

from functools import partial

from muster.app.kinds import made_at
from muster.cli.line.commands import CommandEntry, load_place
from muster.domain.kind import WorkKind
from muster.domain.order import Door


def command_of(kind: WorkKind) -> CommandEntry:
    """Return the command that starts work of a kind, made from its order."""
    return CommandEntry(kind.about, "work.command:start", arguments=partial(_arguments_of, kind))


def _arguments_of(kind: WorkKind) -> object:
    return load_place("work.options:arguments_of")(kind)


COMMANDS = {known.kind.command_name: command_of(known.kind) for known in made_at(Door.COMMAND) if known.kind.spec_of}
