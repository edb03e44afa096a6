"""Models behind the Responses API, asked live: the wire, and the fold of a stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from muster.agents.faults import Account, error_of, unreadable
from muster.agents.http.sse import ServerSentEvent
from muster.agents.model import ModelWire
from muster.agents.openai import answer as envelope
from muster.agents.openai import responses_answer as answer
from muster.agents.openai import responses_wire as wire
from muster.agents.openai.answer import broken, error_answer_of
from muster.agents.openai.responses_answer import UNTIMED, ModelResponse, failed, reasoned, reply_of
from muster.agents.payload import reader
from muster.agents.usage import Ceiling
from muster.domain.call import Reply, Request, Timings
from muster.domain.canonical import JsonObject
from muster.domain.errors import OutcomeUnknown, WireError
from muster.domain.price import Pricing
from muster.text import typed

_LAST = ("response.completed", "response.incomplete", "response.failed")
_TEXTS = ("response.output_text.delta", "response.refusal.delta")


class _Event(typed.Struct, gc=False):
    type: str = ""
    delta: Any = None
    item: Any = None
    output_index: Any = None
    response: Any = None
    error: Any = None
    code: Any = None
    message: Any = None


_event = reader(_Event)


class ResponsesStream:
    """Takes the events of one stream in order; `done` once the response is whole."""

    def __init__(self, pricing: Pricing, ceiling: Ceiling, account: Account, model: str = "") -> None:
        self._pricing, self._ceiling, self._account, self._model = pricing, ceiling, account, model
        self._items: dict[int, JsonObject] = {}  # those that are whole, as they came
        self._last: JsonObject | None = None
        self._begun = False
        self.done = False

    def feed(self, event: ServerSentEvent) -> str:
        """Take one event and give the text that it adds."""
        if event.data.strip() == b"[DONE]":  # some servers end every stream like that of a completion
            return ""
        try:
            step = _event(event.data)
        except (typed.DecodeError, UnicodeError):
            raise unreadable("sent an event that is not part of a response", self._account, event.data) from None
        if step.type == "error" or (not step.type and step.error is not None):
            raise self._error(step)
        self._begun = self._begun or step.type.startswith("response.")
        if step.type in _TEXTS:
            return step.delta if isinstance(step.delta, str) else ""
        if step.type == "response.output_item.done" and isinstance(step.item, dict):
            self._items[step.output_index if isinstance(step.output_index, int) else len(self._items)] = step.item
        elif step.type in _LAST and isinstance(step.response, dict):
            self._last, self.done = step.response, True
        return ""

    def finish(self, timings: Timings = UNTIMED) -> Reply:
        """Return the reply, or say that the stream ended too early."""
        if self._last is None:
            raise OutcomeUnknown(f"{self._account.place}: the stream ended before the response did")
        raw = self._output(self._last)
        try:
            response = typed.convert({**self._last, "output": raw}, ModelResponse)
        except typed.ValidationError:
            body = typed.encode(self._last)
            raise unreadable("ended a stream with what is not a response", self._account, body) from None
        if response.status == "failed" or response.error is not None:
            raise failed(response, self._account)
        kept = raw if reasoned(response.output or ()) else None
        return reply_of(response, self._pricing, self._ceiling, timings, raw=kept, model=self._model)

    def _output(self, last: JsonObject) -> list[JsonObject]:
        """Return the items of the output, each as it was when it was whole; the last event may leave them out."""
        whole = {item.get("id"): item for item in self._items.values() if item.get("id") is not None}
        told = last.get("output")
        if isinstance(told, list) and told:
            return [whole.get(item.get("id"), item) for item in told if isinstance(item, dict)]
        return [item for _, item in sorted(self._items.items())]

    def _error(self, step: _Event) -> WireError:
        trouble = {"code": step.code, "message": step.message} if step.error is None else step.error
        return broken(trouble, self._account) if self._begun else error_of(error_answer_of(trouble), self._account)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponsesWire(ModelWire):
    """The Responses API, for one model."""

    reasons: bool = False  # it is known to

    def encode(self, request: Request, *, stream: bool) -> bytes:
        """Write a request."""
        asked = self.pricing.asked or ""
        tier = self.provider.tiers.get(asked, asked)
        return wire.encode(request, self.model, stream=stream, tier=tier, reasons=self.reasons)

    def decode(self, body: bytes, ceiling: Ceiling, timings: Timings) -> Reply:
        """Read a success, or raise the error that hides in it."""
        return answer.decode(body, self.pricing, ceiling, self.account, timings, self.model)

    def fault(self, status: int, headers: Mapping[str, str], body: bytes, sent: bytes) -> WireError:
        """Read a failure of a request with the body `sent`."""
        return envelope.fault(status, headers, body, self.account)

    def fold(self, ceiling: Ceiling) -> ResponsesStream:
        """Begin to read a stream."""
        return ResponsesStream(self.pricing, ceiling, self.account, self.model)
