"""The doors through which orders come."""

from enum import StrEnum


class Door(StrEnum):
    """A way in which orders come."""

    COMMAND = "command"
    PYTHON = "python"
    REQUEST = "request"
    TOOL = "tool"
    JOB = "job"


LOCAL = frozenset({Door.COMMAND, Door.PYTHON})  # whoever comes here may read files and run programs anyway
REMOTE = frozenset({Door.REQUEST, Door.TOOL, Door.JOB})
WIRE = frozenset({Door.REQUEST, Door.JOB})
EVERYWHERE = LOCAL | REMOTE
