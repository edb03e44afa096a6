"""The command line: words become the arguments of a function, or an error that says what to do."""

from muster.cli.line.group import Group
from muster.cli.line.parameters import Argument, Misuse, Option

__all__ = ["Argument", "Group", "Misuse", "Option"]
