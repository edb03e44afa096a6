"""Log lines of a process that works for a long time: one line for each thing that happens, with its run and its call.

Nothing here is global: a log has a stream of its own, and structlog is not configured for anybody else. Prompts and
answers are never logged; of errors the code and the message are, without secrets.
"""

import sys
from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any, TextIO

import structlog

from muster.domain.call import Reply
from muster.domain.canonical import JsonObject
from muster.domain.entry import Failed, Replied
from muster.domain.errors import BadArgument, MusterError
from muster.domain.ids import RunId
from muster.domain.money import to_usd
from muster.domain.observation import (
    AttemptBegan,
    AttemptEnded,
    BatchBegan,
    BatchEnded,
    CallBegan,
    CallEnded,
    Observation,
    RunBegan,
    RunEnded,
)
from muster.domain.run import FAILURES
from muster.observability.options import LogFormat, LogOptions

MAX_VALUE = 1000  # characters of one value
_FIRST = ("timestamp", "level", "event", "run", "key")

Redact = Callable[[str], str]
Fields = JsonObject


class RunLog:
    """Writes what the engine tells as lines; an observer."""

    def __init__(self, options: LogOptions, redact: Redact) -> None:
        """Open the log; raises BadArgument for a file that cannot be written."""
        self._file = None if options.file is None else _open(options.file)
        self.logger = make_logger(self._file or sys.stderr, options, redact)
        self._agents: dict[tuple[RunId, str], str] = {}
        self._requests: dict[RunId, str] = {}  # by which runs that are driven were started

    def close(self) -> None:
        """Close the file; standard error stays open."""
        if self._file is not None:
            self._file.close()

    def __call__(self, observation: Observation) -> None:
        """Write the line of an observation."""
        match observation:
            case RunBegan():
                self._run_began(observation)
            case RunEnded():
                self._run_ended(observation)
            case CallBegan(run, key, profile, _):
                self._agents[run, key] = profile.name
                self.logger.debug("call.began", **self._run_fields(run), key=key, agent=profile.name)
            case CallEnded():
                self._call_ended(observation)
            case AttemptBegan():
                self._attempt_began(observation)
            case AttemptEnded():
                self._attempt_ended(observation)
            case BatchBegan(batch):
                self.logger.info("batch.began", batch=batch)
            case BatchEnded():
                self._batch_ended(observation)

    def _run_began(self, began: RunBegan) -> None:
        run = began.run
        if run.request is not None and run.request.id is not None:
            self._requests[run.id] = run.request.id
        self.logger.info(
            "run.began",
            **self._run_fields(run.id),
            **_given(workload=run.workload, name=run.name, parent=run.parent),
            epoch=began.epoch,
        )

    def _run_ended(self, ended: RunEnded) -> None:
        run = ended.run
        fields = self._run_fields(run.id)
        self._requests.pop(run.id, None)
        if ended.error is not None:
            self.logger.error("run.lost", **fields, workload=run.workload, **_error_fields(ended.error))
            return
        write = self.logger.warning if run.state in FAILURES else self.logger.info
        error = {} if not run.error else {"error": run.error.get("code"), "message": run.error.get("message")}
        write(
            "run.ended",
            **fields,
            workload=run.workload,
            state=str(run.state),
            reason=run.ended_reason,
            active_seconds=round(run.active, 3),
            calls=run.calls.total,
            cost_usd=to_usd(run.spent.settled),
            **error,
        )

    def _call_ended(self, ended: CallEnded) -> None:
        fields = {
            **self._run_fields(ended.run),
            "key": ended.key,
            **_given(agent=self._agents.pop((ended.run, ended.key), None)),
        }
        match ended.outcome:
            case None:
                self.logger.debug("call.canceled", **fields)
            case Reply():
                self.logger.debug("call.ended", **fields, **_reply_fields(ended.outcome))
            case error:
                self.logger.warning("call.failed", **fields, **_error_fields(error))

    def _attempt_began(self, began: AttemptBegan) -> None:
        self.logger.debug(
            "attempt.began",
            **self._attempt_fields(began),
            waited_seconds=round(began.waited, 3),
            **_given(batch=began.batch),
        )

    def _attempt_ended(self, ended: AttemptEnded) -> None:
        fields = self._attempt_fields(ended)
        match ended.outcome:
            case Replied(reply):
                self.logger.debug("attempt.ended", **fields, **_reply_fields(reply))
            case Failed() as failed:
                error = {"error": failed.error.get("code"), "message": failed.error.get("message")}
                again = _given(retry_in_seconds=failed.again_in)
                self.logger.warning("attempt.failed", **fields, **error, uncertain=failed.uncertain, **again)
            case _:
                self.logger.debug("attempt.left", **fields)

    def _run_fields(self, run: RunId) -> Fields:
        return {"run": run, **_given(request_id=self._requests.get(run))}

    def _attempt_fields(self, observed: AttemptBegan | AttemptEnded) -> Fields:
        run, key, n, _ = observed.attempt
        return {**self._run_fields(run), "key": key, "attempt": n, **_given(agent=self._agents.get((run, key)))}

    def _batch_ended(self, ended: BatchEnded) -> None:
        if ended.found is None:
            error = {} if ended.error is None else _error_fields(ended.error)
            self.logger.warning("batch.left", batch=ended.batch, **error)
            return
        batch, tally = ended.found, ended.found.tally
        self.logger.info(
            "batch.ended",
            **_given(batch=batch.id, provider_id=batch.provider_id),
            state=str(batch.state),
            requests=batch.requests,
            succeeded=tally.succeeded,
            errored=tally.errored,
            canceled=tally.canceled,
            expired=tally.expired,
            uncertain=tally.uncertain,
        )


def make_logger(stream: TextIO, options: LogOptions, redact: Redact) -> Any:
    """Make a structlog logger that writes lines to a stream."""
    renderer: Any = structlog.processors.JSONRenderer(ensure_ascii=False)
    if options.format is LogFormat.TEXT:
        renderer = structlog.processors.LogfmtRenderer(key_order=_FIRST, drop_missing=True, bool_as_flag=False)
    return structlog.wrap_logger(
        structlog.WriteLogger(stream),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _Cleaner(redact),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(str(options.level)),
    )


class _Cleaner:
    """Takes secrets and control characters out of all texts of a line, and the rest of those that are too long."""

    def __init__(self, redact: Redact) -> None:
        self._redact = redact

    def __call__(self, logger: Any, method: str, fields: MutableMapping[str, Any]) -> Fields:
        """Return the fields of a line as they may be written."""
        return {name: self._clean(value) for name, value in fields.items()}

    def _clean(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float):
            return value
        text = self._redact(str(value))  # before it is cut: half a secret would not be found
        text = text if len(text) <= MAX_VALUE else text[:MAX_VALUE] + "…"
        return text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)


def _open(path: Path) -> TextIO:
    try:
        path.touch(mode=0o600)  # error messages are private: nobody else on the machine may read them
        return path.open("a", encoding="utf-8", buffering=1)
    except OSError as error:
        raise BadArgument(f"the log file {path} cannot be written: {error.strerror}") from error


def _given(**fields: Any) -> Fields:
    return {name: value for name, value in fields.items() if value is not None}


def _reply_fields(reply: Reply) -> Fields:
    return {
        "model": reply.model,
        "input_tokens": reply.usage.all_input,
        "output_tokens": reply.usage.output,
        "cost_usd": to_usd(reply.cost),
        "lane": str(reply.lane),
        "wire_seconds": round(reply.timings.wire, 3),
    }


def _error_fields(error: BaseException) -> Fields:
    if isinstance(error, MusterError):
        return {"error": error.code, "message": error.message}
    return {"error": type(error).__name__}  # of a stranger only its kind: its message may quote anything
