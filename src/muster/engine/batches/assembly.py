"""A batcher put together from its steps: sending, following, collecting, resolving."""

from pathlib import Path

from muster.domain.agent import Timeouts
from muster.domain.batch import BatchState
from muster.engine.batches.base import Asker, BatchServices
from muster.engine.batches.batcher import Batcher
from muster.engine.batches.collect import Collector
from muster.engine.batches.dismiss import Dismisser
from muster.engine.batches.follow import Follower, Poller, Step
from muster.engine.batches.parked_calls import Waiters
from muster.engine.batches.resolve import BatchResolver, Claims
from muster.engine.batches.results import own_folder
from muster.engine.batches.send import Sender
from muster.engine.batches.turns import TakesTurns

TIMEOUTS = Timeouts(call=60.0)
CREATE_TIMEOUTS = Timeouts(call=600.0)  # the provider may have to look at a quarter of a gigabyte


def make_batcher(services: BatchServices, spool: Path) -> Batcher:
    """Make the batcher of this process."""
    waiters, asker = Waiters(), Asker(services.clock, services.random, services.patience)
    folder = own_folder(spool, services.driver, services.is_gone, services.clock.now())
    dismisser = Dismisser(store=services.store, clock=services.clock, waiters=waiters)
    claims = Claims(services)
    resolver = BatchResolver(services, claims=claims, asker=asker)
    poller = Poller(services, asker=asker, dismisser=dismisser)
    collector = Collector(services, asker=asker, dismisser=dismisser, waiters=waiters, spool=folder)
    steps: dict[BatchState, Step] = {
        BatchState.PLANNED: Sender(services, claims=claims, dismisser=dismisser, resolver=resolver),
        BatchState.SENT: resolver,
        BatchState.RUNNING: TakesTurns(poller, services, claims),
        BatchState.ENDED: TakesTurns(collector, services, claims),
    }
    by_hand: dict[BatchState, Step] = {
        BatchState.PLANNED: steps[BatchState.PLANNED],
        BatchState.SENT: BatchResolver(services, claims=claims, asker=asker, by_hand=True),
        BatchState.RUNNING: TakesTurns(poller, services, claims, by_hand=True),
        BatchState.ENDED: TakesTurns(collector, services, claims, by_hand=True),
    }
    follower = Follower(
        store=services.store,
        clock=services.clock,
        waiters=waiters,
        steps=steps,
        by_hand=by_hand,
        deadline=services.patience.deadline,
        observe=services.observe,
    )
    return Batcher(
        services,
        claims=claims,
        follower=follower,
        waiters=waiters,
        dismisser=dismisser,
        poller=poller,
    )
