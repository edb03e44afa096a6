"""The events of a stream as they came: cut where they end, so that the last of them can wait for the books. Pure."""

from collections.abc import Iterator

from muster.agents.http.sse import EventParser, ServerSentEvent
from muster.agents.upstream.dialects import AnswerForm
from muster.domain.errors import OutcomeUnknown
from muster.text import typed

MAX_EVENT_BYTES = 16 * 1024 * 1024
_ENDS = (b"\r\n\r\n", b"\n\n", b"\r\r")
_LAST = ("response.completed", "response.incomplete", "response.failed", "error")


class FrameCutter:
    """Cuts the bytes of a stream behind every event."""

    def __init__(self) -> None:
        self._rest = b""
        self._parser = EventParser()

    def feed(self, chunk: bytes) -> Iterator[tuple[bytes, list[ServerSentEvent]]]:
        """Yield what is whole by now: the bytes of each event, and the event; comments have none."""
        self._rest += chunk
        while True:
            end = self._end()
            if end is None:
                break
            frame, self._rest = self._rest[:end], self._rest[end:]
            yield frame, self._parser.feed(frame)
        if len(self._rest) > MAX_EVENT_BYTES:
            raise OutcomeUnknown(f"the stream sent an event longer than {MAX_EVENT_BYTES} bytes")

    @property
    def rest(self) -> bytes:
        """What came behind the last whole event."""
        return self._rest

    def _end(self) -> int | None:
        ends = [found + len(mark) for mark in _ENDS if (found := self._rest.find(mark)) >= 0]
        return min(ends, default=None)


def is_last(event: ServerSentEvent, form: AnswerForm, answers: int) -> bool:
    """Return whether a client may take an answer for whole once it has this event."""
    if event.data.strip() == b"[DONE]":
        return True
    if form is AnswerForm.MESSAGES:
        return event.name in ("message_stop", "error")
    told = _told(event.data)
    if form is AnswerForm.RESPONSES:
        return told.get("type") in _LAST
    choices = told.get("choices")
    parts = choices if isinstance(choices, list) else []
    return answers == 1 and any(isinstance(part, dict) and part.get("finish_reason") for part in parts)


def is_usage_only(event: ServerSentEvent) -> bool:
    """Return whether an event is the one that tells the usage of a chat completion, and nothing else."""
    told = _told(event.data)
    return told.get("choices") == [] and bool(told.get("usage"))


def _told(data: bytes) -> dict[str, object]:
    try:
        found = typed.decode(data)
    except (typed.DecodeError, UnicodeError):
        return {}
    return found if isinstance(found, dict) else {}
