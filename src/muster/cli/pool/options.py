"""The options of `muster task run`, `muster task submit` and `muster fan-out`; quick to load."""

from dataclasses import dataclass
from typing import Annotated

from muster.cli.line import Bundle, Option
from muster.pool.order import CONFIRMED_ABOVE, TASK, FanOutOrder, TaskOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskArguments:
    """What commands that submit a task take."""

    order: Annotated[TaskOrder, Bundle(TaskOrder, TASK)]


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutArguments:
    """What `muster fan-out` takes."""

    order: Annotated[FanOutOrder, Bundle(FanOutOrder, TASK)]
    yes: Annotated[bool, Option("--yes", help=f"Start more than {CONFIRMED_ABOVE} tasks without asking.")] = False
