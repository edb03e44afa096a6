"""What can be chosen of log lines and traces."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class LogFormat(StrEnum):
    """How a line is written."""

    TEXT = "text"  # logfmt: name=value
    JSON = "json"


class LogLevel(StrEnum):
    """From which importance on lines are written."""

    DEBUG = "debug"  # every call and attempt
    INFO = "info"  # runs and batches
    WARNING = "warning"  # what failed
    ERROR = "error"  # what this process could not do


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Log lines as they were asked for; without a file they go to standard error."""

    format: LogFormat
    level: LogLevel = LogLevel.INFO
    file: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOptions:
    """Traces as they were asked for."""

    exporter: str = "otlp"  # or "console"
    protocol: str = "http/protobuf"  # of OTLP, or "grpc"
    content: bool = False  # prompts, answers and messages of errors too
