"""The audit log: what users did through servers. `Muster.audit`."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muster.app.backend import Backend
from muster.app.runs.options import require_limit
from muster.domain.errors import AccessDenied, BadArgument, LimitReached, MusterError, NotFound
from muster.store.base import AuditRecord

__all__ = ["AuditRecord", "AuditedAction", "UserActions"]

DONE = "done"
MOST_SUBJECT = 200  # characters of what a request names
REFUSED = (BadArgument, NotFound, AccessDenied, LimitReached)  # errors that come before anything is done


@dataclass(slots=True)
class AuditedAction:
    """Something that a user does; what it is done to may be known better, or only, afterwards."""

    subject: str  # such as the id of a run


class UserActions:
    """Remembers what users of servers started, reviewed and canceled."""

    def __init__(self, backend: Backend) -> None:
        self._store, self._clock, self._user = backend.store, backend.clock, backend.user
        self._kill = backend.kill

    @asynccontextmanager
    async def action(self, name: str, subject: str, *, client: str, request_id: str) -> AsyncIterator[AuditedAction]:
        """Do something inside, which is written down before and completed with what came of it.

        After a crash in between, the record is there with an unknown outcome. What is refused before anything is
        done leaves none.
        """
        record = AuditRecord(
            at=self._clock.now(),
            user=self._user.name,
            client=client,
            action=name,
            subject=subject[:MOST_SUBJECT],
            request_id=request_id,
        )
        seq, doing = await self._store.audit.begin(record), AuditedAction(subject)
        self._kill.reach("audit.begun")
        try:
            yield doing
            self._kill.reach("audit.acted")
        except REFUSED:
            await self._store.audit.withdraw(seq)
            raise
        except MusterError as error:
            await self._store.audit.end(seq, doing.subject, error.code)
            raise
        await self._store.audit.end(seq, doing.subject, DONE)

    async def list(self, *, before: int | None = None, limit: int = 100) -> Sequence[AuditRecord]:
        """Return what was done, the newest first; `before` is the number of the last record of the page before."""
        require_limit(limit)
        return await self._store.audit.newest(before, limit)
