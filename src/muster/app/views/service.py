"""What a server tells about itself, its library and its users as JSON."""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from muster.app.serving.audit import AuditRecord
from muster.app.serving.library import LibraryItem
from muster.app.stores import StoreCopy
from muster.app.views.runs import moment
from muster.domain.batch import Batch
from muster.settings import Settings


def served_view(url: str, settings: Settings) -> dict[str, Any]:
    """Return where a server listens and which store it serves as JSON."""
    return {"url": url, "store": settings.store_place, "tokens": [token.name for token in settings.tokens]}


def health_view(driven: Collection[str] | None, stalled: Sequence[Batch]) -> dict[str, Any]:
    """Return how a server stands as JSON; anybody may read it, so of batches that do not get on only their number."""
    found: dict[str, Any] = {"status": "attention" if stalled else "ok"}
    if stalled:
        found |= {"batches_stalled": dict(Counter(str(batch.state) for batch in stalled)), "next": "muster batch list"}
    return found if driven is None else found | {"driven_here": driven}


def library_view(items: Sequence[LibraryItem]) -> dict[str, Any]:
    """Return what requests may name as JSON; where the files are is nobody else's business."""
    return {"items": [{"kind": str(item.kind), "name": item.name} for item in items]}


def audit_view(record: AuditRecord) -> dict[str, Any]:
    """Return what a user did as JSON."""
    return {
        "seq": record.seq,
        "at": moment(record.at),
        "user": record.user,
        "client": record.client,
        "action": record.action,
        "subject": record.subject,
        "request_id": record.request_id,
        "outcome": record.outcome,
    }


def store_copy_view(copied: StoreCopy) -> dict[str, Any]:
    """Return what was copied of a store as JSON."""
    return {
        "source": copied.source,
        "target": copied.target,
        "rows": copied.rows,
        "tables": [{"name": one.table, "rows": one.rows, "sha256": one.digest} for one in copied.tables],
    }
