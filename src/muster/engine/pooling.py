"""Putting the pool together with everything that takes a batch from one state to the next."""

from pathlib import Path

from muster.domain.agent import Timeouts
from muster.domain.batch import BatchState
from muster.engine.claims import Claims
from muster.engine.collecting import Collector
from muster.engine.dismissing import Dismisser
from muster.engine.following import Follower, Step
from muster.engine.parking import Waiters
from muster.engine.polling import Poller
from muster.engine.pool import Pool
from muster.engine.resolving import Resolver
from muster.engine.sending import Sender
from muster.engine.spool import own_folder
from muster.engine.tools import Tools
from muster.engine.trying import Asker

TIMEOUTS = Timeouts(call=60.0)
CREATE_TIMEOUTS = Timeouts(call=600.0)  # the provider may have to look at a quarter of a gigabyte


def make_pool(tools: Tools, spool: Path) -> Pool:
    """Make the pool of this process."""
    waiters, asker = Waiters(), Asker(tools.clock, tools.random, tools.patience)
    folder = own_folder(spool, tools.driver, tools.is_gone, tools.clock.now())
    dismisser = Dismisser(store=tools.store, clock=tools.clock, waiters=waiters)
    claims = Claims(tools)
    resolver = Resolver(tools, claims=claims, asker=asker)
    poller = Poller(tools, asker=asker, dismisser=dismisser)
    steps: dict[BatchState, Step] = {
        BatchState.PLANNED: Sender(tools, claims=claims, dismisser=dismisser, resolver=resolver),
        BatchState.SENT: resolver,
        BatchState.RUNNING: poller,
        BatchState.ENDED: Collector(tools, asker=asker, dismisser=dismisser, waiters=waiters, spool=folder),
    }
    follower = Follower(
        store=tools.store, clock=tools.clock, waiters=waiters, steps=steps, deadline=tools.patience.deadline
    )
    return Pool(tools, claims=claims, follower=follower, waiters=waiters, dismisser=dismisser, poller=poller)
