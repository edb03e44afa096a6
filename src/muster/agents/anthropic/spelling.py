"""Members and results of Message Batches. Pure; what they hold is spelled as in live calls."""

from dataclasses import replace
from typing import Any

import msgspec

from muster.agents.account import Account
from muster.agents.anthropic.answer import Said, Trouble, decode, reply_of, without_status
from muster.agents.faults import error_of, plain, unpaid
from muster.agents.payload import reader, to_json
from muster.agents.tally import Ceiling
from muster.domain.batch import Answered, Dropped, Errored, MemberResult, Shortfall, Tariff
from muster.domain.call import Reply, Timings
from muster.domain.errors import OutcomeUnknown, ProviderFault, WireError

_DROPPED = {"canceled": Dropped(Shortfall.CANCELED), "expired": Dropped(Shortfall.EXPIRED)}


class _Result(msgspec.Struct, gc=False):
    type: str = ""
    message: msgspec.Raw = msgspec.Raw()
    error: msgspec.Raw = msgspec.Raw()


class _Line(msgspec.Struct, gc=False):
    custom_id: str
    result: _Result


class _Message(msgspec.Struct, gc=False):
    type: str
    message: Said


class _Success(msgspec.Struct, gc=False):
    """What nearly every line is, read in one go."""

    custom_id: str
    result: _Message


class _Failure(msgspec.Struct, gc=False):
    """An error in its envelope; bare ones are understood too."""

    error: Trouble | None = None
    type: str = ""
    message: str = ""
    request_id: str | None = None


_success = msgspec.json.Decoder(_Success).decode
_line = reader(_Line, ("result", "message"), ("result", "error"))
_failure = reader(_Failure)


class AnthropicSpelling:
    """How Message Batches are written and read."""

    head = b'{"requests":['
    separator = b","
    tail = b"]}"

    def __init__(self, account: Account) -> None:
        self._account = account

    def member(self, name: str, body: bytes) -> bytes:
        """Write one member."""
        return b'{"custom_id":%b,"params":%b}' % (to_json(name), body)

    def read(self, line: bytes) -> tuple[str, MemberResult] | None:
        """Read one line of results: the member's name and what became of it; None when it cannot be read."""
        try:
            found = _success(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return self._read(line)
        if found.result.type == "succeeded":
            return found.custom_id, Answered(found.result.message)
        return self._read(line)

    def _read(self, line: bytes) -> tuple[str, MemberResult] | None:
        """Read a line that is no plain success; an answer in it is kept as it came."""
        try:
            found = _line(line)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return None
        result = found.result
        if result.type == "succeeded":
            return found.custom_id, Answered(bytes(result.message))
        if result.type == "errored":
            return found.custom_id, Errored(self._error(bytes(result.error)))
        # Of a type that we do not know, nobody knows whether it was paid: `decode` will find no message in it.
        return found.custom_id, _DROPPED.get(result.type) or Answered(line)

    def decode(self, answer: Any, tariff: Tariff, size: int, max_tokens: int, timings: Timings) -> Reply:
        """Read an answer at the price of the batch; raises the error that hides in it."""
        if isinstance(answer, Said):
            return reply_of(answer, tariff.batch, Ceiling(size, max_tokens), timings)
        return decode(answer, tariff.batch, Ceiling(size, max_tokens), self._account, timings)

    def _error(self, body: bytes) -> WireError:
        """Read why a member failed; a kind that we do not know is a fault of the provider, to be tried again."""
        try:
            failure = _failure(body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            failure = _Failure(message=plain(body))
        complaint = without_status(failure.error or Trouble(type=failure.type, message=failure.message))
        if complaint.kind is OutcomeUnknown:
            complaint = replace(complaint, status=500, kind=ProviderFault)
        return unpaid(error_of(replace(complaint, request_id=failure.request_id), self._account))
