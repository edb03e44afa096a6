"""The audit log: what users did through servers. `Muster.audit`."""

from collections.abc import Sequence

from muster.app.backend import Backend
from muster.app.runs.options import require_limit
from muster.store.base import AuditRecord

__all__ = ["AuditRecord", "UserActions"]


class UserActions:
    """Remembers what users of servers started, reviewed and canceled."""

    def __init__(self, backend: Backend) -> None:
        self._store, self._clock, self._user = backend.store, backend.clock, backend.user

    async def note(self, action: str, subject: str, *, client: str, request_id: str) -> None:
        """Remember that the user did something to a run, or to something else that has a name."""
        await self._store.audit.add(
            AuditRecord(
                at=self._clock.now(),
                user=self._user.name,
                client=client,
                action=action,
                subject=subject,
                request_id=request_id,
            )
        )

    async def list(self, *, before: int | None = None, limit: int = 100) -> Sequence[AuditRecord]:
        """Return what was done, the newest first; `before` is the number of the last record of the page before."""
        require_limit(limit)
        return await self._store.audit.newest(before, limit)
