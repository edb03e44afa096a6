"""The options of `muster task run`, `muster task submit` and `muster fan-out`; quick to load."""

import sys
from dataclasses import dataclass, replace
from typing import Annotated

from muster.cli.line import Bundle, Option
from muster.domain.errors import BadArgument
from muster.pool.order import CONFIRMED_ABOVE, TASK, FanOutOrder, TaskOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskArguments:
    """What commands that submit a task take."""

    order: Annotated[TaskOrder, Bundle(TaskOrder, TASK)]

    def whole(self) -> TaskOrder:
        """Return the order with its prompt, which - reads from standard input."""
        return replace(self.order, prompt=_standard_input()) if self.order.prompt == "-" else self.order


@dataclass(frozen=True, slots=True, kw_only=True)
class FanOutArguments:
    """What `muster fan-out` takes."""

    order: Annotated[FanOutOrder, Bundle(FanOutOrder, TASK)]
    yes: Annotated[bool, Option("--yes", help=f"Start more than {CONFIRMED_ABOVE} tasks without asking.")] = False


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeError:
        raise BadArgument("the prompt is not UTF-8") from None
