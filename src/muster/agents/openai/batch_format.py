"""How batches of OpenAI are written and read: members and results of chat completions and of Responses. Pure."""

from dataclasses import replace
from typing import Any

from muster.agents.batch_client import member_pricing
from muster.agents.faults import Account, error_of, unpaid
from muster.agents.openai import responses_answer as responses
from muster.agents.openai.answer import Completion, decode, error_answer_of, fault, reply_of
from muster.agents.payload import reader, to_json
from muster.agents.usage import Ceiling
from muster.domain.batch import Answered, Dropped, Errored, MemberResult, Shortfall, Tariff
from muster.domain.call import Reply, Timings
from muster.domain.errors import AuthRefused, InvalidRequest, ProviderFault, RateLimited, UnknownModel, WireError
from muster.domain.wire import WireName
from muster.text import typed

ENDPOINT = "/v1/chat/completions"
ENDPOINTS = {WireName.CHAT: ENDPOINT, WireName.RESPONSES: "/v1/responses"}

_DROPPED = {
    "batch_expired": Dropped(Shortfall.EXPIRED),
    "request_expired": Dropped(Shortfall.EXPIRED),
    "batch_cancelled": Dropped(Shortfall.CANCELED),
    "batch_canceled": Dropped(Shortfall.CANCELED),
    "request_cancelled": Dropped(Shortfall.CANCELED),
    "request_canceled": Dropped(Shortfall.CANCELED),
}

# Codes that come without a status, and what live calls would have made of them.
_KINDS: dict[str, tuple[int, type[WireError]]] = {
    "invalid_request": (400, InvalidRequest),
    "invalid_request_error": (400, InvalidRequest),
    "context_length_exceeded": (400, InvalidRequest),
    "model_not_found": (404, UnknownModel),
    "rate_limit_exceeded": (429, RateLimited),
    "insufficient_quota": (429, AuthRefused),
}


class _Response(typed.Struct, gc=False):
    status_code: int = 200
    request_id: str | None = None
    body: typed.Raw = typed.Raw()


class _Completed(typed.Struct, gc=False):
    status_code: int
    body: Completion


class _CompletedLine(typed.Struct, gc=False):
    """What nearly every line is, read in one go."""

    custom_id: str
    response: _Completed


class _OutputLine(typed.Struct, gc=False):
    custom_id: str
    response: _Response | None = None
    error: Any = None


_success = typed.Decoder(_CompletedLine).decode
_line = reader(_OutputLine, ("response", "body"))


class OpenAIBatchFormat:
    """How batches of chat completions are written and read."""

    head = b""
    separator = b"\n"
    tail = b"\n"

    _endpoint = ENDPOINT.encode()

    def __init__(self, account: Account) -> None:
        self._account = account

    def member(self, name: str, body: bytes) -> bytes:
        """Write one member."""
        return b'{"custom_id":%b,"method":"POST","url":"%b","body":%b}' % (to_json(name), self._endpoint, body)

    def read(self, line: bytes) -> tuple[str, MemberResult] | None:
        """Read one line of results: the member's name and what became of it; None when it cannot be read."""
        try:
            found = _success(line)
        except (typed.DecodeError, UnicodeError, RecursionError):
            return self._read(line)
        if found.response.status_code == 200 and _is_whole(found.response.body):
            return found.custom_id, Answered(found.response.body)
        return self._read(line)

    def _read(self, line: bytes) -> tuple[str, MemberResult] | None:
        """Read a line that is no plain success; an answer in it is kept as it came."""
        try:
            found = _line(line)
        except (typed.DecodeError, UnicodeError, RecursionError):
            return None
        if found.response is not None:
            return found.custom_id, self._answered(found.response)
        if found.error is not None:
            return found.custom_id, self._unanswered(found.error)
        # Neither an answer nor an error: nobody knows whether it was paid, and `decode` will find nothing in it.
        return found.custom_id, Answered(line)

    def decode(self, answer: Any, tariff: Tariff, size: int, max_tokens: int, timings: Timings) -> Reply:
        """Read an answer at the price of the batch; raises the error that hides in it."""
        if isinstance(answer, Completion) and answer.choices:
            return reply_of(answer, answer.choices[0], member_pricing(tariff), Ceiling(size, max_tokens), timings)
        return decode(answer, member_pricing(tariff), Ceiling(size, max_tokens), self._account, timings)

    def _answered(self, response: _Response) -> MemberResult:
        body = bytes(response.body)
        if 200 <= response.status_code < 300:
            return Answered(body)
        headers = {"x-request-id": response.request_id} if response.request_id else {}
        return Errored(unpaid(fault(response.status_code, headers, body, self._account)))

    def _unanswered(self, trouble: Any) -> MemberResult:
        code = trouble.get("code") if isinstance(trouble, dict) else None
        dropped = _DROPPED.get(code) if isinstance(code, str) else None
        return dropped or Errored(self._error(trouble, code))

    def _error(self, trouble: Any, code: Any) -> WireError:
        """Read why a member failed; a code that we do not know is a fault of the provider, to be tried again."""
        reported = error_answer_of(trouble)
        if reported.status == 200:  # it named none
            status, kind = _KINDS.get(str(code), (500, ProviderFault))
            text = reported.text if code is None else f"{code}: {reported.text}"
            reported = replace(reported, status=status, kind=kind, text=text)
        return unpaid(error_of(reported, self._account))


def _is_whole(completion: Completion) -> bool:
    """Return whether there is an answer in it and no error."""
    choices = completion.choices or ()
    return completion.error is None and len(choices) > 0 and choices[0].error is None


class ResponsesBatchFormat(OpenAIBatchFormat):
    """How batches of Responses are written and read; an answer is kept as it came, since its reasoning goes back."""

    _endpoint = ENDPOINTS[WireName.RESPONSES].encode()

    def __init__(self, account: Account, model: str = "") -> None:
        super().__init__(account)
        self._model = model

    def read(self, line: bytes) -> tuple[str, MemberResult] | None:
        """Read one line of results: the member's name and what became of it; None when it cannot be read."""
        return self._read(line)

    def decode(self, answer: Any, tariff: Tariff, size: int, max_tokens: int, timings: Timings) -> Reply:
        """Read an answer at the price of the batch; raises the error that hides in it."""
        ceiling = Ceiling(size, max_tokens)
        return responses.decode(answer, member_pricing(tariff), ceiling, self._account, timings, self._model)


def format_of(scope: str, account: Account) -> OpenAIBatchFormat:
    """Return the format of the batches of a scope, which is their endpoint and their model."""
    endpoint, _, model = scope.partition(" ")
    if endpoint == ENDPOINTS[WireName.RESPONSES]:
        return ResponsesBatchFormat(account, model)
    return OpenAIBatchFormat(account)


def scope_of(model: str, form: WireName = WireName.CHAT) -> str:
    """Return what must be the same in one batch: the endpoint and the model."""
    return f"{ENDPOINTS[form]} {model}"
