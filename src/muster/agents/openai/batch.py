"""Models of OpenAI and of every compatible server that has batches, asked through them: the client of the batch API."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import quote

from muster.agents.base import BatchUpload
from muster.agents.batch_client import ProviderClient, free_of_charge, listed_since
from muster.agents.faults import MAX_MESSAGE, Account, fingerprint, unpaid, unreadable
from muster.agents.http.client import BatchHttp, RequestBody
from muster.agents.http.request import join
from muster.agents.openai.answer import fault
from muster.agents.openai.batch_format import ENDPOINT, format_of
from muster.agents.payload import to_json
from muster.domain.agent import Timeouts
from muster.domain.batch import BatchEndpoint, BatchLimits, BatchProgress, ListedBatch, Phase, Shortfall
from muster.text import typed

KIND = "openai"
LIMITS = BatchLimits(requests=50_000, bytes=200_000_000)
WINDOW = "24h"  # the only one there is
PAGE = 100


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
        self.format = format_of(scope, owner)
        self._client = ProviderClient(base_url=base_url, account=owner, headers=headers, http=http, fault=fault)

    async def submit(self, upload: BatchUpload, timeouts: Timeouts) -> str:
        """Create the batch, once, and give the provider's id."""
        file = upload.file
        if file is None:
            file = await self._upload(upload, timeouts)
            await upload.on_file(file)
        create = {
            "input_file_id": file,
            "endpoint": self.endpoint.scope.partition(" ")[0] or ENDPOINT,
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
        message=account.scrub(_reasons(batch.errors))[:MAX_MESSAGE] if batch.status == "failed" else "",
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
