"""Models behind chat completions, asked through batches: OpenAI and every compatible server that has them.

The client of the batch API, and the pure format of members and results, spelled as in live calls.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from muster.agents.base import BatchUpload
from muster.agents.batch_client import ProviderClient, free_of_charge, listed_since, member_pricing
from muster.agents.faults import MOST_MESSAGE, Account, error_of, fingerprint, unpaid, unreadable
from muster.agents.http.client import BatchHttp, RequestBody
from muster.agents.http.request import join
from muster.agents.openai.answer import Completion, decode, error_answer_of, fault, reply_of
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
from muster.domain.call import Reply, Timings
from muster.domain.errors import AuthRefused, InvalidRequest, ProviderFault, RateLimited, UnknownModel, WireError
from muster.text import typed

KIND = "openai"
LIMITS = BatchLimits(requests=50_000, bytes=200_000_000)
WINDOW = "24h"  # the only one there is
PAGE = 100


def scope_of(model: str) -> str:
    """Return what must be the same in one batch: the endpoint and the model."""
    return f"{ENDPOINT} {model}"


class OpenAIBatches:
    """Batches of one model under one account."""

    limits = LIMITS
    labels_batches = True
    uploads_file = True

    def __init__(
        self, *, key: str, variable: str, base_url: str, scope: str, http: BatchHttp, account: str | None = None
    ) -> None:
        base_url = join(base_url, "")
        owner = Account(place=f"the batches at {base_url}", variable=variable, key=key)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self.endpoint = BatchEndpoint(
            kind=KIND, base_url=base_url, account=account or fingerprint(base_url, key), variable=variable, scope=scope
        )
        self.format = OpenAIBatchFormat(owner)
        self._client = ProviderClient(base_url=base_url, account=owner, headers=headers, http=http, fault=fault)

    async def submit(self, upload: BatchUpload, timeouts: Timeouts) -> str:
        """Create the batch, once, and give the provider's id."""
        file = upload.file
        if file is None:
            file = await self._upload(upload, timeouts)
            await upload.on_file(file)
        create = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": WINDOW,
            "metadata": {LABEL: upload.id},
        }
        return id_of(await self._client.post("/batches", to_json(create), timeouts), "batch", self._client.account)

    async def poll(self, provider_id: str, timeouts: Timeouts) -> BatchProgress:
        """Return the progress of a batch."""
        progress, files = progress_of(await self._client.get(_path(provider_id), timeouts), self._client.account)
        paths = [f"/files/{quote(name, safe='')}/content" for name in files]
        return replace(progress, sources=tuple([self._client.address(path) for path in paths]))

    def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Return the bytes of one file of results as they arrive."""
        return self._client.stream(source, timeouts)

    async def cancel(self, provider_id: str, timeouts: Timeouts) -> None:
        """Ask the provider to stop; one that has ended is left alone."""
        await self._client.cancel(f"{_path(provider_id)}/cancel", lambda: self.poll(provider_id, timeouts), timeouts)

    def find(self, since: float, timeouts: Timeouts) -> AsyncIterator[ListedBatch]:
        """Return the account's batches that were created since then, the newest first."""

        async def fetch_page(after: str) -> tuple[Sequence[ListedBatch], bool]:
            query = f"?limit={PAGE}" + (f"&after={quote(after, safe='')}" if after else "")
            return page_of(await self._client.get(f"/batches{query}", timeouts), self._client.account)

        return listed_since(fetch_page, since)

    async def _upload(self, upload: BatchUpload, timeouts: Timeouts) -> str:
        body, kind = form_of(upload)
        with free_of_charge():  # a file costs nothing, and one that nobody knows of harms nobody
            return id_of(await self._client.upload("/files", body, kind, timeouts), "file", self._client.account)


def _path(provider_id: str) -> str:
    return f"/batches/{quote(provider_id, safe='')}"


_FORM = """\
--{boundary}\r
content-disposition: form-data; name="purpose"\r
\r
batch\r
--{boundary}\r
content-disposition: form-data; name="file"; filename="{name}.jsonl"\r
content-type: application/octet-stream\r
\r
"""


def form_of(upload: BatchUpload) -> tuple[RequestBody, str]:
    """Return a batch as a form with its input file, and the content type that goes with it."""
    # JSON lines hold no bare line break before two dashes, so no boundary can occur in them.
    name = f"muster-{upload.id}"
    body = RequestBody(
        upload.size,
        upload.pieces(),
        before=_FORM.format(boundary=name, name=name).encode(),
        after=f"\r\n--{name}--\r\n".encode(),
    )
    return body, f"multipart/form-data; boundary={name}"


LABEL = "muster_batch"

_SHORTFALLS = {  # of the statuses in which a batch has ended
    "completed": Shortfall.NONE,
    "expired": Shortfall.EXPIRED,
    "cancelled": Shortfall.CANCELED,
}
_OVER = {*_SHORTFALLS, "failed"}


class _Named(typed.Struct, gc=False):
    id: Annotated[str, typed.Meta(min_length=1)]


class _RequestCounts(typed.Struct, gc=False):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Trouble(typed.Struct, gc=False):
    message: str | None = None
    code: str | None = None
    line: int | None = None


class _Troubles(typed.Struct):
    data: list[_Trouble] | None = None


class _BatchObject(typed.Struct):
    status: str
    request_counts: _RequestCounts | None = None
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: _Troubles | None = None
    created_at: float | None = None
    completed_at: float | None = None
    expired_at: float | None = None
    cancelled_at: float | None = None

    @property
    def took(self) -> float | None:
        """Seconds from the creation to the end."""
        ended = self.completed_at or self.expired_at or self.cancelled_at
        return None if ended is None or self.created_at is None else max(0.0, ended - self.created_at)


class _ListedBatchObject(_BatchObject, kw_only=True):
    id: str
    created_at: float
    input_file_id: str | None = None
    metadata: Any = None


class _BatchObjectPage(typed.Struct):
    data: list[_ListedBatchObject]
    has_more: bool = False


_named = typed.Decoder(_Named).decode
_batch = typed.Decoder(_BatchObject).decode
_page = typed.Decoder(_BatchObjectPage).decode


def id_of(body: bytes, what: str, account: Account) -> str:
    """Return the id of what was created; without one we do not know whether it was."""
    try:
        return _named(body).id
    except (typed.DecodeError, UnicodeError):
        raise unreadable(f"accepted a {what} and returned no id for it", account, body) from None


def progress_of(body: bytes, account: Account) -> tuple[BatchProgress, Sequence[str]]:
    """Read how a batch stands, and the files that hold its results."""
    try:
        batch = _batch(body)
    except (typed.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is not a batch", account, body)) from None
    counts = batch.request_counts
    ended = batch.status in _SHORTFALLS
    answered = counts.completed if ended and counts is not None else None
    progress = BatchProgress(
        phase=_phase(batch.status),
        word=batch.status,
        total=None if counts is None else counts.total,
        done=None if counts is None else counts.completed + counts.failed,
        shortfall=_SHORTFALLS.get(batch.status, Shortfall.NONE),
        answered=answered,
        took=batch.took if ended else None,
        message=account.scrub(_reasons(batch.errors))[:MOST_MESSAGE] if batch.status == "failed" else "",
    )
    named = batch.output_file_id or not answered  # else the file of the answers is still to come
    return progress, [name for name in (batch.output_file_id, batch.error_file_id) if ended and named and name]


def page_of(body: bytes, account: Account) -> tuple[Sequence[ListedBatch], bool]:
    """Read one page of the list, and whether there is another."""
    try:
        page = _page(body)
    except (typed.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is not a list of batches", account, body)) from None
    return [_found(batch) for batch in page.data], page.has_more


def _found(batch: _ListedBatchObject) -> ListedBatch:
    label = batch.metadata.get(LABEL) if isinstance(batch.metadata, dict) else None
    return ListedBatch(
        id=batch.id,
        created_at=batch.created_at,
        requests=(batch.request_counts.total or None) if batch.request_counts else None,  # 0 until it was validated
        ended=batch.status in _OVER,
        file=batch.input_file_id,
        label=label if isinstance(label, str) else None,
    )


def _phase(status: str) -> Phase:
    if status == "failed":
        return Phase.FAILED
    return Phase.ENDED if status in _SHORTFALLS else Phase.RUNNING


def _reasons(errors: _Troubles | None) -> str:
    found = (errors.data if errors else None) or ()
    return "; ".join([_reason(trouble) for trouble in found]) or "no reason given"


def _reason(trouble: _Trouble) -> str:
    where = "" if trouble.line is None else f"line {trouble.line}: "
    return where + (trouble.message or trouble.code or "no reason given")


ENDPOINT = "/v1/chat/completions"

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

    def __init__(self, account: Account) -> None:
        self._account = account

    def member(self, name: str, body: bytes) -> bytes:
        """Write one member."""
        return b'{"custom_id":%b,"method":"POST","url":"/v1/chat/completions","body":%b}' % (to_json(name), body)

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
