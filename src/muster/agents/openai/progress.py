"""Batches and files as OpenAI shows them: uploaded, created, looked at, listed. Pure."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec

from muster.agents.account import Account
from muster.agents.faults import MOST_MESSAGE, unpaid, unreadable
from muster.domain.batch import Found, Phase, Progress, Shortfall

LABEL = "muster_batch"

_SHORTFALLS = {  # of the statuses in which a batch has ended
    "completed": Shortfall.NONE,
    "expired": Shortfall.EXPIRED,
    "cancelled": Shortfall.CANCELED,
}
_OVER = {*_SHORTFALLS, "failed"}


class _Named(msgspec.Struct, gc=False):
    id: Annotated[str, msgspec.Meta(min_length=1)]


class _Counts(msgspec.Struct, gc=False):
    total: int = 0
    completed: int = 0
    failed: int = 0


class _Trouble(msgspec.Struct, gc=False):
    message: str | None = None
    code: str | None = None
    line: int | None = None


class _Troubles(msgspec.Struct):
    data: list[_Trouble] | None = None


class _Batch(msgspec.Struct):
    status: str
    request_counts: _Counts | None = None
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


class _Listed(_Batch, kw_only=True):
    id: str
    created_at: float
    input_file_id: str | None = None
    metadata: Any = None


class _Page(msgspec.Struct):
    data: list[_Listed]
    has_more: bool = False


_named = msgspec.json.Decoder(_Named).decode
_batch = msgspec.json.Decoder(_Batch).decode
_page = msgspec.json.Decoder(_Page).decode


def id_of(body: bytes, what: str, account: Account) -> str:
    """Give the id of what was created; without one we do not know whether it was."""
    try:
        return _named(body).id
    except (msgspec.DecodeError, UnicodeError):
        raise unreadable(f"took a {what} and gave no id for it", account, body) from None


def progress_of(body: bytes, account: Account) -> tuple[Progress, Sequence[str]]:
    """Read how a batch stands, and the files that hold its results."""
    try:
        batch = _batch(body)
    except (msgspec.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is no batch", account, body)) from None
    counts = batch.request_counts
    ended = batch.status in _SHORTFALLS
    answered = counts.completed if ended and counts is not None else None
    progress = Progress(
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


def page_of(body: bytes, account: Account) -> tuple[Sequence[Found], bool]:
    """Read one page of the list, and whether there is another."""
    try:
        page = _page(body)
    except (msgspec.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is no list of batches", account, body)) from None
    return [_found(batch) for batch in page.data], page.has_more


def _found(batch: _Listed) -> Found:
    label = batch.metadata.get(LABEL) if isinstance(batch.metadata, dict) else None
    return Found(
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
