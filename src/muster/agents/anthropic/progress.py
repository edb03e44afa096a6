"""Message Batches as Anthropic shows them: created, looked at, listed. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import msgspec

from muster.agents.account import Account
from muster.agents.faults import unpaid, unreadable
from muster.domain.batch import Found, Phase, Progress

Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class _Counts(msgspec.Struct, gc=False):
    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        return self.processing + self.succeeded + self.errored + self.canceled + self.expired


class _Created(msgspec.Struct, gc=False):
    id: Annotated[str, msgspec.Meta(min_length=1)]


class _Batch(msgspec.Struct, gc=False):
    processing_status: str
    request_counts: _Counts | None = None
    results_url: str | None = None
    created_at: Moment | None = None
    ended_at: Moment | None = None

    @property
    def ended(self) -> bool:
        return self.processing_status == "ended"


class _Listed(_Batch, gc=False, kw_only=True):
    id: str
    created_at: Moment


class _Page(msgspec.Struct):
    data: list[_Listed]
    has_more: bool = False


_created = msgspec.json.Decoder(_Created).decode
_batch = msgspec.json.Decoder(_Batch).decode
_page = msgspec.json.Decoder(_Page).decode


def created_of(body: bytes, account: Account) -> str:
    """Give the id of a batch that was created; without one we do not know whether it was."""
    try:
        return _created(body).id
    except (msgspec.DecodeError, UnicodeError):
        raise unreadable("took a batch and gave no id for it", account, body) from None


def progress_of(body: bytes, account: Account) -> Progress:
    """Read how a batch stands."""
    try:
        batch = _batch(body)
    except (msgspec.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is no batch", account, body)) from None
    counts = batch.request_counts
    return Progress(
        phase=Phase.ENDED if batch.ended else Phase.RUNNING,
        word=batch.processing_status,
        total=None if counts is None else counts.total,
        # Before the end all counts but one stay 0, whatever was done.
        done=counts.total - counts.processing if counts is not None and batch.ended else None,
        sources=(batch.results_url,) if batch.ended and batch.results_url else (),
        took=_took(batch) if batch.ended else None,
    )


def _took(batch: _Batch) -> float | None:
    if batch.created_at is None or batch.ended_at is None:
        return None
    return max(0.0, (batch.ended_at - batch.created_at).total_seconds())


def page_of(body: bytes, account: Account) -> tuple[Sequence[Found], bool]:
    """Read one page of the list, and whether there is another."""
    try:
        page = _page(body)
    except (msgspec.DecodeError, UnicodeError):
        raise unpaid(unreadable("sent something that is no list of batches", account, body)) from None
    return [_found(batch) for batch in page.data], page.has_more


def _found(batch: _Listed) -> Found:
    return Found(
        id=batch.id,
        created_at=batch.created_at.timestamp(),
        requests=batch.request_counts.total if batch.request_counts is not None else None,
        ended=batch.ended,
    )
