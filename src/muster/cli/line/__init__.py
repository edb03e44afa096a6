"""The command line: words become the arguments of a function, or an error that says what to do."""

from muster.cli.line.declared import Argument, Option
from muster.cli.line.group import Group
from muster.cli.line.misuse import Misuse

__all__ = ["Argument", "Group", "Misuse", "Option"]
