"""Options of commands that work for a long time: log lines."""

from pathlib import Path
from typing import Annotated

from muster.cli.line import Bundle, Option
from muster.domain.errors import BadArgument
from muster.observability.options import LogFormat, LogLevel, LogOptions


def log_options_of(
    log_format: Annotated[
        str | None, Option("--log-format", values=LogFormat, shown="no log", help="Write log lines in this format.")
    ] = None,
    log_level: Annotated[
        str | None,
        Option(
            "--log-level",
            values=LogLevel,
            shown="info",
            help="The lowest level that is logged: info has runs and batches, debug every call and attempt.",
        ),
    ] = None,
    log_file: Annotated[
        str | None,
        Option("--log-file", metavar="FILE", shown="standard error", help="Append the log lines to this file."),
    ] = None,
) -> LogOptions | None:
    """Check what was given; None: no log is wanted."""
    if log_format is None:
        useless = "--log-level" if log_level is not None else "--log-file" if log_file is not None else ""
        if useless:
            raise BadArgument(f"{useless} has no effect without --log-format", suggestions=("add --log-format json",))
        return None
    level = LogLevel.INFO if log_level is None else LogLevel(log_level)
    return LogOptions(format=LogFormat(log_format), level=level, file=None if log_file is None else Path(log_file))


LoggingOptions = Annotated[LogOptions | None, Bundle(log_options_of, "Log")]
