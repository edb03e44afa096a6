"""Putting the pool together with everything that takes a batch from one state to the next."""

from pathlib import Path
from random import Random

from muster.agents.base import Directory
from muster.domain.agent import Timeouts
from muster.domain.batch import BatchState
from muster.domain.run import Driver
from muster.engine.clock import Clock
from muster.engine.collecting import Collector
from muster.engine.dismissing import Dismisser
from muster.engine.following import Follower, Step
from muster.engine.killpoints import KillPoints
from muster.engine.parking import Waiters
from muster.engine.patience import Patience
from muster.engine.polling import Poller
from muster.engine.pool import Pool
from muster.engine.resolving import Resolver
from muster.engine.sending import Sender
from muster.engine.spool import own_folder
from muster.engine.trying import Asker
from muster.store.base import Store

TIMEOUTS = Timeouts(call=60.0)  # of questions; for what goes up or comes down only silence counts
CREATE_TIMEOUTS = Timeouts(call=600.0)  # the provider may have to look at a quarter of a gigabyte


def make_pool(
    *,
    store: Store,
    directory: Directory,
    clock: Clock,
    random: Random,
    kill: KillPoints,
    driver: Driver,
    spool: Path,
    patience: Patience,
    timeouts: Timeouts = TIMEOUTS,
    create_timeouts: Timeouts = CREATE_TIMEOUTS,
) -> Pool:
    """Make the pool of this process."""
    waiters, asker = Waiters(), Asker(clock, random, patience)
    dismisser = Dismisser(store=store, clock=clock, waiters=waiters)
    resolver = Resolver(
        store=store,
        directory=directory,
        clock=clock,
        random=random,
        patience=patience,
        driver=driver,
        timeouts=timeouts,
        asker=asker,
    )
    sender = Sender(
        store=store,
        directory=directory,
        clock=clock,
        random=random,
        kill=kill,
        patience=patience,
        driver=driver,
        timeouts=create_timeouts,
        dismisser=dismisser,
        resolver=resolver,
    )
    poller = Poller(
        store=store,
        directory=directory,
        clock=clock,
        random=random,
        kill=kill,
        patience=patience,
        timeouts=timeouts,
        asker=asker,
        dismisser=dismisser,
    )
    collector = Collector(
        store=store,
        directory=directory,
        clock=clock,
        kill=kill,
        patience=patience,
        timeouts=timeouts,
        asker=asker,
        dismisser=dismisser,
        resolver=resolver,
        waiters=waiters,
        spool=own_folder(spool),
    )
    steps: dict[BatchState, Step] = {
        BatchState.PLANNED: sender,
        BatchState.SENT: resolver,
        BatchState.RUNNING: poller,
        BatchState.ENDED: collector,
    }
    follower = Follower(store=store, clock=clock, waiters=waiters, steps=steps, deadline=patience.deadline)
    return Pool(
        store=store,
        clock=clock,
        random=random,
        kill=kill,
        patience=patience,
        follower=follower,
        waiters=waiters,
        dismisser=dismisser,
        poller=poller,
    )
