"""Workers put together: alone with the store, or among others with a queue that they share."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from muster.app.base.backend import Backend
from muster.app.kinds import IN_SLOTS
from muster.app.parts.parts import MusterParts
from muster.app.runs.options import require_limit
from muster.app.serving.jobs import JobIntake
from muster.app.serving.limits import QueueCaps
from muster.domain.errors import BadArgument, MusterError
from muster.domain.ids import RunId
from muster.domain.run import Run
from muster.engine.queue.base import QUEUES, RunDelivery
from muster.engine.queue.fleet import FallbackDelivery, FleetDelivery
from muster.engine.queue.turns import DriveCaps
from muster.engine.worker import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """What a worker is to take, and who is told what becomes of it."""

    most: int
    queues: tuple[str, ...]
    caps: DriveCaps | None
    on_end: Callable[[Run], Awaitable[None]]
    on_error: Callable[[RunId, MusterError], None]
    on_note: Callable[[str], None]


def make_worker(
    muster: MusterParts, backend: Backend, options: WorkerOptions, fallback: FallbackDelivery | None
) -> Worker:
    """Return a worker; with a `fallback` it takes only what no other does."""
    require_limit(options.most)
    _require_queues(options.queues)
    backend.workloads.load()
    caps, delivery = options.caps, _delivery(muster, backend, options, fallback)
    if caps is None and backend.queue is not None:
        # However many workers there are, a client has as many runs at work as at a server alone.
        caps = QueueCaps(per_client=muster.settings.serve.jobs_per_client)
    return Worker(
        backend.store,
        backend.engine,
        backend.clock,
        most=options.most,
        leaves_out=IN_SLOTS,  # which need a slot of the pool
        queues=options.queues,
        caps=caps,
        delivery=delivery,
        on_end=options.on_end,
        on_error=options.on_error,
        on_note=options.on_note,
    )


def _delivery(
    muster: MusterParts, backend: Backend, options: WorkerOptions, fallback: FallbackDelivery | None
) -> RunDelivery | None:
    if fallback is not None:
        fallback.on_note = options.on_note
        return fallback
    if backend.queue is None:
        return None
    return FleetDelivery(
        backend.queue.get(),
        backend.store,
        backend.clock,
        queues=options.queues,
        most=options.most,
        accept=JobIntake(muster).accept,
        served=backend.engine.served,
        on_note=options.on_note,
    )


def _require_queues(queues: tuple[str, ...]) -> None:
    unknown = [name for name in queues if name not in QUEUES]
    if unknown or not queues:
        named = f"names {unknown[0]!r}, which is not a queue" if unknown else "names no queue"
        raise BadArgument(named, argument="queues", suggestions=(f"use some of {', '.join(QUEUES)}",))
