"""The audit log: what users did through servers. `Muster.audit`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from muster.app.base.backend import Backend
from muster.app.runs.options import require_limit
from muster.domain.errors import AccessDenied, BadArgument, LimitReached, MusterError, NotFound, StoreAway, StoreFailed
from muster.store.base import AuditRecord

__all__ = ["AuditRecord", "AuditedAction", "UserActions"]

DONE = "done"
MAX_SUBJECT = 200  # characters of what a request names
BEGIN_SECONDS = 20.0  # for the store to take a record: who asks would not know later whether it was done
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
        self._late: set[asyncio.Future[None]] = set()

    @asynccontextmanager
    async def action(self, name: str, subject: str, *, client: str, request_id: str) -> AsyncIterator[AuditedAction]:
        """Do something inside, which is written down before and completed with what came of it.

        After a crash in between, the record is there with an unknown outcome. What is refused before anything is
        done leaves none. Raises StoreFailed when the store does not take the record: then nothing is done.
        """
        record = AuditRecord(
            at=self._clock.now(),
            user=self._user.name,
            client=client,
            action=name,
            subject=subject[:MAX_SUBJECT],
            request_id=request_id,
        )
        seq, doing = await self._begin(record), AuditedAction(subject)
        self._kill.reach("audit.begun")
        try:
            yield doing
            self._kill.reach("audit.acted")
        except REFUSED:
            await self._store.audit.withdraw(seq)
            raise
        except StoreAway:
            raise  # its outcome cannot be written down now, and who asks is to know at once
        except MusterError as error:
            await self._store.audit.end(seq, doing.subject, error.code)
            raise
        await self._store.audit.end(seq, doing.subject, DONE)

    async def _begin(self, record: AuditRecord) -> int:
        """Write a record down; one that the store takes only after the caller was refused is withdrawn."""
        shortage = await self._store.maintenance.shortage()
        if shortage is not None:
            raise shortage
        writing = asyncio.ensure_future(self._store.audit.begin(record))
        done, _ = await asyncio.wait({writing}, timeout=BEGIN_SECONDS)
        if done:
            return await writing
        late = asyncio.ensure_future(self._withdraw(writing))
        self._late.add(late)
        late.add_done_callback(self._late.discard)
        raise StoreFailed(
            "the store cannot be written to: a write waits for another process, a slow disk or a server that is away",
            suggestions=("nothing was done; try again when /healthz answers 200",),
        )

    async def _withdraw(self, writing: "asyncio.Future[int]") -> None:
        await self._store.audit.withdraw(await writing)

    async def list(self, *, before: int | None = None, limit: int = 100) -> Sequence[AuditRecord]:
        """Return what was done, the newest first; `before` is the number of the last record of the page before."""
        require_limit(limit)
        return await self._store.audit.newest(before, limit)
