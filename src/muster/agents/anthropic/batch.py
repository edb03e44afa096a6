"""Models of Anthropic, asked through Message Batches."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

from muster.agents.anthropic import answer, wire
from muster.agents.anthropic.answer import AnthropicMessage, Trouble, decode, reply_of, thought, without_status
from muster.agents.anthropic.live import VERSION
from muster.agents.base import BatchUpload
from muster.agents.batch_client import JSON, ProviderClient, listed_since, member_pricing
from muster.agents.faults import Account, error_of, fingerprint, plain, unpaid, unreadable
from muster.agents.http.client import BatchHttp, RequestBody
from muster.agents.http.request import join
from muster.agents.payload import reader, to_json
from muster.agents.usage import Ceiling
from muster.domain.agent import Timeouts
from muster.domain.batch import (
    Answered,
    BatchEndpoint,
    BatchLimits,
    BatchProgress,
    Dropped,
    Errored,
    ListedBatch,
    MemberResult,
    Phase,
    Shortfall,
    Tariff,
)
from muster.domain.call import Reply, Request, Timings
from muster.domain.errors import OutcomeUnknown, ProviderFault, WireError
from muster.text import typed

KIND = "anthropic"
LIMITS = BatchLimits(requests=100_000, bytes=256_000_000)
KEPT = "1h"  # members of a batch are answered within hours, not minutes, of each other
PAGE = 100

_PATH = "/v1/messages/batches"


def encode(request: Request, model: str, *, cache: bool, geo: str = "") -> bytes:
    """Write the parameters of a member; what its request says of the cache goes before what the batch says."""
    marked = replace(request, cache=KEPT) if cache and request.cache is None else request
    return wire.encode(marked, model, geo=geo)


class AnthropicBatches:
    """Message Batches under one account; all its models share them."""

    limits = LIMITS
    labels_batches = False
    uploads_file = False

    def __init__(self, *, key: str, variable: str, base_url: str, http: BatchHttp, account: str | None = None) -> None:
        base_url = join(base_url, "")
        owner = Account(place=f"the batches at {base_url}", variable=variable, key=key)
        headers = {"x-api-key": key, "anthropic-version": VERSION}
        self.endpoint = BatchEndpoint(
            kind=KIND, base_url=base_url, account=account or fingerprint(base_url, key), variable=variable
        )
        self.format = AnthropicBatchFormat(owner)
        self._client = ProviderClient(base_url=base_url, account=owner, headers=headers, http=http, fault=answer.fault)

    async def submit(self, upload: BatchUpload, timeouts: Timeouts) -> str:
        """Create the batch, once, and give the provider's id."""
        body = RequestBody(upload.size, upload.pieces())
        return created_of(await self._client.upload(_PATH, body, JSON, timeouts), self._client.account)

    async def poll(self, provider_id: str, timeouts: Timeouts) -> BatchProgress:
        """Return the progress of a batch."""
        return progress_of(await self._client.get(_path(provider_id), timeouts), self._client.account)

    def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Return the bytes of the results as they arrive."""
        return self._client.stream(source, timeouts)

    async def cancel(self, provider_id: str, timeouts: Timeouts) -> None:
        """Ask the provider to stop; one that has ended is left alone."""
        await self._client.cancel(f"{_path(provider_id)}/cancel", lambda: self.poll(provider_id, timeouts), timeouts)

    def find(self, since: float, timeouts: Timeouts) -> AsyncIterator[ListedBatch]:
        """Return the account's batches that were created since then, the newest first."""

        async def fetch_page(after: str) -> tuple[Sequence[ListedBatch], bool]:
            query = f"?limit={PAGE}" + (f"&after_id={quote(after, safe='')}" if after else "")
            return page_of(await self._client.get(_PATH + query, timeouts), self._client.account)

        return listed_since(fetch_page, since)


def _path(provider_id: str) -> str:
    return f"{_PATH}/{quote(provider_id, safe='')}"


Moment = Annotated[datetime, typed.Meta(tz=True)]


class _MessageCounts(typed.Struct, gc=False):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        return self.processing + self.succeeded + self.errored + self.canceled + self.expired


class _Created(typed.Struct, gc=False):
    id: Annotated[str, typed.Meta(min_length=1)]


class _MessageBatch(typed.Struct, gc=False):
    processing_status: str
    request_counts: _MessageCounts | None = None
    results_url: str | None = None
    created_at: Moment | None = None
    ended_at: Moment | None = None

    @property
    def ended(self) -> bool:
        return self.processing_status == "ended"


class _ListedMessageBatch(_MessageBatch, gc=False, kw_only=True):
    id: str
    created_at: Moment


class _MessageBatchPage(typed.Struct):
    data: list[_ListedMessageBatch]
    has_more: bool = False


_created = typed.Decoder(_Created).decode
_batch = typed.Decoder(_MessageBatch).decode
_page = typed.Decoder(_MessageBatchPage).decode


def created_of(body: bytes, account: Account) -> str:
    """Return the id of a batch that was created; without one we do not know whether it was."""
    try:
        return _created(body).id
    except (typed.DecodeError, UnicodeError):
        raise unreadable("accepted a batch and returned no id for it", account, body) from None


def progress_of(body: bytes, account: Account) -> BatchProgress:
    """Read how a batch stands."""
    try:
        batch = _batch(body)
    except (typed.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is not a batch", account, body)) from None
    counts = batch.request_counts
    return BatchProgress(
        phase=Phase.ENDED if batch.ended else Phase.RUNNING,
        word=batch.processing_status,
        total=None if counts is None else counts.total,
        # Before the end all counts but one stay 0, whatever was done.
        done=counts.total - counts.processing if counts is not None and batch.ended else None,
        sources=(batch.results_url,) if batch.ended and batch.results_url else (),
        took=_took(batch) if batch.ended else None,
    )


def _took(batch: _MessageBatch) -> float | None:
    if batch.created_at is None or batch.ended_at is None:
        return None
    return max(0.0, (batch.ended_at - batch.created_at).total_seconds())


def page_of(body: bytes, account: Account) -> tuple[Sequence[ListedBatch], bool]:
    """Read one page of the list, and whether there is another."""
    try:
        page = _page(body)
    except (typed.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is not a list of batches", account, body)) from None
    return [_found(batch) for batch in page.data], page.has_more


def _found(batch: _ListedMessageBatch) -> ListedBatch:
    return ListedBatch(
        id=batch.id,
        created_at=batch.created_at.timestamp(),
        requests=batch.request_counts.total if batch.request_counts is not None else None,
        ended=batch.ended,
    )


_DROPPED = {"canceled": Dropped(Shortfall.CANCELED), "expired": Dropped(Shortfall.EXPIRED)}


class _Result(typed.Struct, gc=False):
    type: str = ""
    message: typed.Raw = typed.Raw()
    error: typed.Raw = typed.Raw()


class _MessageLine(typed.Struct, gc=False):
    custom_id: str
    result: _Result


class _Message(typed.Struct, gc=False):
    type: str
    message: AnthropicMessage


class _Success(typed.Struct, gc=False):
    """What nearly every line is, read in one go."""

    custom_id: str
    result: _Message


class _Failure(typed.Struct, gc=False):
    """An error in its envelope; bare ones are understood too."""

    error: Trouble | None = None
    type: str = ""
    message: str = ""
    request_id: str | None = None


_success = typed.Decoder(_Success).decode
_line = reader(_MessageLine, ("result", "message"), ("result", "error"))
_failure = reader(_Failure)


class AnthropicBatchFormat:
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
        except (typed.DecodeError, UnicodeError, RecursionError):
            return self._read(line)
        if found.result.type == "succeeded" and not thought(found.result.message):
            return found.custom_id, Answered(found.result.message)
        return self._read(line)

    def _read(self, line: bytes) -> tuple[str, MemberResult] | None:
        """Read a line that is no plain success; an answer in it is kept as it came."""
        try:
            found = _line(line)
        except (typed.DecodeError, UnicodeError, RecursionError):
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
        if isinstance(answer, AnthropicMessage):
            return reply_of(answer, member_pricing(tariff), Ceiling(size, max_tokens), timings)
        return decode(answer, member_pricing(tariff), Ceiling(size, max_tokens), self._account, timings)

    def _error(self, body: bytes) -> WireError:
        """Read why a member failed; a kind that we do not know is a fault of the provider, to be tried again."""
        try:
            failure = _failure(body)
        except (typed.DecodeError, UnicodeError, RecursionError):
            failure = _Failure(message=plain(body))
        reported = without_status(failure.error or Trouble(type=failure.type, message=failure.message))
        if reported.kind is OutcomeUnknown:
            reported = replace(reported, status=500, kind=ProviderFault)
        return unpaid(error_of(replace(reported, request_id=failure.request_id), self._account))
