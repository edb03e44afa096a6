"""Muster runs fleets of AI agents as durable work: answered once, paid once, inside a hard budget."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app import open_muster as open  # noqa: A004  # as a user writes it: muster.open()
    from muster.app.doctor import examine as doctor
    from muster.app.pool.values import TaskSpec, TaskState
    from muster.app.project.files import Project
    from muster.app.runs.follow import Resync, RunEnd, RunWatcher, TextDelta
    from muster.app.runs.handle import RunHandle
    from muster.app.runs.options import RunOptions
    from muster.app.suites.generation import Generation
    from muster.app.suites.reviews import ReviewDraft
    from muster.app.suites.suites import AnswerSource
    from muster.app.suites.values import ComparisonTerms, RowFilter, SuiteChoice, SuiteSpec
    from muster.app.verify.request import VerifyChoice, VerifyRequest
    from muster.app.verify.values import FileSelection
    from muster.domain.batch import Batch, BatchState
    from muster.domain.budget import Allowance
    from muster.domain.call import Message, Reply, Request, Role, Tool, ToolCall
    from muster.domain.entry import Event
    from muster.domain.errors import MusterError, Overdraft, RunFailed, StopRun, ToolError, ToolTurnsExceeded
    from muster.domain.observation import (
        AttemptBegan,
        AttemptEnded,
        BatchBegan,
        BatchEnded,
        CallBegan,
        CallEnded,
        RunBegan,
        RunEnded,
    )
    from muster.domain.run import Dispatch, Run, RunState
    from muster.engine.context import Context
    from muster.engine.steps import step
    from muster.engine.workload import workload
    from muster.observability.options import LogFormat, LogLevel, LogOptions

__version__ = "0.1.0"

__all__ = [
    "Allowance",
    "AnswerSource",
    "AttemptBegan",
    "AttemptEnded",
    "Batch",
    "BatchBegan",
    "BatchEnded",
    "BatchState",
    "CallBegan",
    "CallEnded",
    "ComparisonTerms",
    "Context",
    "Dispatch",
    "Event",
    "FileSelection",
    "Generation",
    "LogFormat",
    "LogLevel",
    "LogOptions",
    "Message",
    "Muster",
    "MusterError",
    "Overdraft",
    "Project",
    "Reply",
    "Request",
    "Resync",
    "ReviewDraft",
    "Role",
    "RowFilter",
    "Run",
    "RunBegan",
    "RunEnd",
    "RunEnded",
    "RunFailed",
    "RunHandle",
    "RunOptions",
    "RunState",
    "RunWatcher",
    "StopRun",
    "SuiteChoice",
    "SuiteSpec",
    "TaskSpec",
    "TaskState",
    "TextDelta",
    "Tool",
    "ToolCall",
    "ToolError",
    "ToolTurnsExceeded",
    "VerifyChoice",
    "VerifyRequest",
    "doctor",
    "open",
    "step",
    "workload",
]

_HOMES = {
    "Allowance": ("muster.domain.budget", "Allowance"),
    "AnswerSource": ("muster.app.suites.suites", "AnswerSource"),
    "AttemptBegan": ("muster.domain.observation", "AttemptBegan"),
    "AttemptEnded": ("muster.domain.observation", "AttemptEnded"),
    "Batch": ("muster.domain.batch", "Batch"),
    "BatchBegan": ("muster.domain.observation", "BatchBegan"),
    "BatchEnded": ("muster.domain.observation", "BatchEnded"),
    "BatchState": ("muster.domain.batch", "BatchState"),
    "CallBegan": ("muster.domain.observation", "CallBegan"),
    "CallEnded": ("muster.domain.observation", "CallEnded"),
    "ComparisonTerms": ("muster.app.suites.values", "ComparisonTerms"),
    "Context": ("muster.engine.context", "Context"),
    "Dispatch": ("muster.domain.run", "Dispatch"),
    "Event": ("muster.domain.entry", "Event"),
    "FileSelection": ("muster.app.verify.values", "FileSelection"),
    "Generation": ("muster.app.suites.generation", "Generation"),
    "LogFormat": ("muster.observability.options", "LogFormat"),
    "LogLevel": ("muster.observability.options", "LogLevel"),
    "LogOptions": ("muster.observability.options", "LogOptions"),
    "Message": ("muster.domain.call", "Message"),
    "Muster": ("muster.app", "Muster"),
    "MusterError": ("muster.domain.errors", "MusterError"),
    "Overdraft": ("muster.domain.errors", "Overdraft"),
    "Project": ("muster.app.project.files", "Project"),
    "Reply": ("muster.domain.call", "Reply"),
    "Request": ("muster.domain.call", "Request"),
    "Resync": ("muster.app.runs.follow", "Resync"),
    "ReviewDraft": ("muster.app.suites.reviews", "ReviewDraft"),
    "Role": ("muster.domain.call", "Role"),
    "RowFilter": ("muster.app.suites.values", "RowFilter"),
    "Run": ("muster.domain.run", "Run"),
    "RunBegan": ("muster.domain.observation", "RunBegan"),
    "RunEnded": ("muster.domain.observation", "RunEnded"),
    "RunEnd": ("muster.app.runs.follow", "RunEnd"),
    "RunFailed": ("muster.domain.errors", "RunFailed"),
    "RunHandle": ("muster.app.runs.handle", "RunHandle"),
    "RunOptions": ("muster.app.runs.options", "RunOptions"),
    "RunState": ("muster.domain.run", "RunState"),
    "RunWatcher": ("muster.app.runs.follow", "RunWatcher"),
    "StopRun": ("muster.domain.errors", "StopRun"),
    "SuiteChoice": ("muster.app.suites.values", "SuiteChoice"),
    "SuiteSpec": ("muster.app.suites.values", "SuiteSpec"),
    "TaskSpec": ("muster.app.pool.values", "TaskSpec"),
    "TaskState": ("muster.app.pool.values", "TaskState"),
    "TextDelta": ("muster.app.runs.follow", "TextDelta"),
    "Tool": ("muster.domain.call", "Tool"),
    "ToolCall": ("muster.domain.call", "ToolCall"),
    "ToolError": ("muster.domain.errors", "ToolError"),
    "ToolTurnsExceeded": ("muster.domain.errors", "ToolTurnsExceeded"),
    "VerifyChoice": ("muster.app.verify.request", "VerifyChoice"),
    "VerifyRequest": ("muster.app.verify.request", "VerifyRequest"),
    "doctor": ("muster.app.doctor", "examine"),
    "open": ("muster.app", "open_muster"),
    "step": ("muster.engine.steps", "step"),
    "workload": ("muster.engine.workload", "workload"),
}


def __getattr__(name: str) -> Any:
    """Hand out names when they are asked for, so that importing the package costs nothing."""
    if name not in _HOMES:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    """Return the public names, for help and completion."""
    return sorted([*__all__, "__version__"])
