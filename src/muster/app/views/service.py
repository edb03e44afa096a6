"""What a server tells about itself, its library and its users."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from muster.app.base.stores import StoreCopy
from muster.app.parts.audit import AuditRecord
from muster.app.parts.library import LibraryItem, LibraryKind
from muster.domain.batch import Batch, BatchState
from muster.domain.money import Microdollars, to_usd
from muster.settings import Settings
from muster.text.views import UNSET, UnsetType, View, instant


class ServedView(View):
    """Where a server listens and which store it serves."""

    url: str
    store: str
    tokens: Sequence[str]


class HealthView(View):
    """How a server stands; of batches that do not get on only their number, since anybody may read it."""

    status: Literal["ok", "attention"]
    batches_stalled: Mapping[BatchState, int] | UnsetType = UNSET
    next: str | UnsetType = UNSET
    driven_here: Sequence[str] | UnsetType = UNSET


class NamedAgentView(View):
    """An agent that requests may name, and whether it is a person."""

    name: str
    human: bool


class AgentsView(View):
    """The agents that requests may name, and the budget of a run without one."""

    agents: Sequence[NamedAgentView]
    run_budget_usd: float | None


class LibraryItemView(View):
    """A suite, a chain or the policy of a council that requests may name."""

    kind: LibraryKind
    name: str


class LibraryView(View):
    """What requests may name; where the files are is nobody else's business."""

    items: Sequence[LibraryItemView]


class AuditRecordView(View):
    """What a user did."""

    seq: int
    at: str
    user: str | None
    client: str
    action: str
    subject: str
    request_id: str
    outcome: str


class AuditPageView(View):
    """A page of what users did, the newest first."""

    records: Sequence[AuditRecordView]
    next: int | None


class CopiedTableView(View):
    """What was copied of one table."""

    name: str
    rows: int
    sha256: str


class StoreCopyView(View):
    """What was copied of a store."""

    source: str
    target: str
    rows: int
    tables: Sequence[CopiedTableView]


def served_view(url: str, settings: Settings) -> ServedView:
    """Return where a server listens and which store it serves."""
    return ServedView(url=url, store=settings.store_place, tokens=[token.name for token in settings.tokens])


def health_view(driven: Collection[str] | None, stalled: Sequence[Batch]) -> HealthView:
    """Return how a server stands."""
    return HealthView(
        status="attention" if stalled else "ok",
        batches_stalled=Counter(batch.state for batch in stalled) if stalled else UNSET,
        next="muster batch list" if stalled else UNSET,
        driven_here=UNSET if driven is None else list(driven),
    )


def agents_view(agents: Sequence[str], people: Collection[str], cap: Microdollars | None) -> AgentsView:
    """Return the agents that requests may name."""
    named = [NamedAgentView(name=name, human=name in people) for name in agents]
    return AgentsView(agents=named, run_budget_usd=None if cap is None else to_usd(cap))


def library_view(items: Sequence[LibraryItem]) -> LibraryView:
    """Return what requests may name."""
    return LibraryView(items=[LibraryItemView(kind=item.kind, name=item.name) for item in items])


def audit_view(record: AuditRecord) -> AuditRecordView:
    """Return what a user did."""
    return AuditRecordView(
        seq=record.seq,
        at=instant(record.at),
        user=record.user,
        client=record.client,
        action=record.action,
        subject=record.subject,
        request_id=record.request_id,
        outcome=record.outcome,
    )


def audit_page_view(records: Sequence[AuditRecord], limit: int) -> AuditPageView:
    """Return a page of at most so many records."""
    after = records[-1].seq if len(records) == limit else None
    return AuditPageView(records=[audit_view(record) for record in records], next=after)


def store_copy_view(copied: StoreCopy) -> StoreCopyView:
    """Return what was copied of a store."""
    return StoreCopyView(
        source=copied.source,
        target=copied.target,
        rows=copied.rows,
        tables=[CopiedTableView(name=table.table, rows=table.rows, sha256=table.digest) for table in copied.tables],
    )
