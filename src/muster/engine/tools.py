"""What everything that takes a batch from one state to the next shares."""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from muster.agents.base import Directory
from muster.domain.agent import Timeouts
from muster.domain.run import Driver
from muster.engine.clock import Clock
from muster.engine.killpoints import KillPoints
from muster.engine.patience import Patience
from muster.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """The tools of one process for its batches."""

    store: Store
    directory: Directory
    clock: Clock
    random: Random
    kill: KillPoints
    driver: Driver
    is_gone: Callable[[Driver], bool]  # whether a driver is certainly dead
    patience: Patience
    timeouts: Timeouts  # of questions; for what goes up or comes down only silence counts
    create_timeouts: Timeouts
