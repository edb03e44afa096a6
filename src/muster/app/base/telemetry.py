"""Who watches an opened Muster: its log, its metrics and its traces, each loaded only when it is asked for."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration
from muster.domain.observation import Observer
from muster.observability.call_totals import CallTotals
from muster.observability.observers import ObserverGroup
from muster.observability.options import LogOptions, TraceOptions
from muster.settings import Settings
from muster.text.secrets.redaction import redact

if TYPE_CHECKING:
    from muster.observability.logs import RunLog
    from muster.observability.traces import TraceSession

MIN_SECRET = 8  # characters; a shorter one would be found in innocent words
HIDDEN = "[redacted]"
_MODULES = {"log": "muster.observability.logs", "traces": "muster.observability.traces"}


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryOptions:
    """What was asked to watch one opened Muster."""

    observers: Sequence[Observer] = ()  # of the user's own
    log: LogOptions | None = None
    metrics: bool = False  # count what this process does
    tracer_provider: object | None = None  # of OpenTelemetry; given, traces are on


class Telemetry:
    """The observers of one opened Muster, and what must be closed when it is."""

    def __init__(self, options: TelemetryOptions, settings: Settings) -> None:
        """Open them; raises BadConfiguration when traces are on and cannot be made."""
        self.totals = CallTotals() if options.metrics else None
        self._log = None if options.log is None else open_log(settings, options.log)
        try:
            self._traces = open_traces(settings, options.tracer_provider)
        except BaseException:
            self._close_log()
            raise
        own = (self.totals, self._log, None if self._traces is None else self._traces.recorder)
        self.observe = ObserverGroup([*options.observers, *(one for one in own if one is not None)])

    def log(self, event: str, fields: Mapping[str, Json], level: str = "info") -> None:
        """Write a line to the log, if there is one."""
        if self._log is not None:
            getattr(self._log.logger, level)(event, **fields)

    async def close(self) -> None:
        """Send the last spans and close the log."""
        self._close_log()
        if self._traces is not None:
            await self._traces.close()

    def _close_log(self) -> None:
        if self._log is not None:
            self._log.close()


def open_log(settings: Settings, options: LogOptions) -> "RunLog":
    """Open a log; an observer that writes lines, with a logger for lines of one's own."""
    log: RunLog = _load("log").RunLog(options, secret_remover(settings))
    return log


def open_traces(settings: Settings, provider: object | None) -> "TraceSession | None":
    """Make traces where a provider is given or the settings turn them on."""
    exporter = settings.trace_exporter
    if provider is None and exporter is None:
        return None
    options = TraceOptions(
        exporter=exporter or "otlp", protocol=settings.trace_protocol, content=settings.trace_content
    )
    traces: TraceSession = _load("traces").open_traces(options, provider, secret_remover(settings))
    return traces


def secret_remover(settings: Settings) -> Callable[[str], str]:
    """Return what takes configured secrets out of a text, and whatever looks like one."""
    known = sorted((one for one in settings.secrets if len(one) >= MIN_SECRET), key=len, reverse=True)

    def remove(text: str) -> str:
        for secret in known:
            text = text.replace(secret, HIDDEN)
        return redact(text).text  # numbered in each text: a server would remember all that strangers ever sent

    return remove


def _load(name: str) -> Any:
    try:
        return importlib.import_module(_MODULES[name])
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "opentelemetry":
            raise
        raise BadConfiguration(
            "traces are on, and OpenTelemetry is not installed",
            suggestions=("pip install 'muster-ai[otel]'", "or turn traces off: OTEL_SDK_DISABLED=true"),
        ) from error
