"""Commands of click made from functions: parameters come from annotations, modules are loaded when called."""

from muster.cli.line.commands import CliCommand, CliGroup, CommandEntry
from muster.cli.line.parameters import Argument, Bundle, Option

__all__ = ["Argument", "Bundle", "CliCommand", "CliGroup", "CommandEntry", "Option"]
