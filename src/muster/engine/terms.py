"""What may be said of calls, tool loops and children, as type checkers see it; and who starts children."""

from collections.abc import Callable, Collection
from typing import Protocol, TypedDict

from muster.agents.base import OnDelta
from muster.domain.budget import Allowance
from muster.domain.canonical import Json
from muster.engine.base.driven_run import ChildOptions
from muster.engine.base.signals import CallInbox


class CallOptions(TypedDict, total=False):
    """What may be said of a call besides what is asked, as `Context.call` explains it."""

    system: str
    timeout: float | None
    stream: bool
    on_delta: OnDelta | None
    shown: Callable[[str], str] | None
    dispatch: str | None
    known: bool
    allowance: Allowance | None
    final_failures: Collection[str]
    inbox: CallInbox | None
    optional: bool


class ToolOptions(TypedDict, total=False):
    """What may be said of a loop of calls, as `Context.tools` explains it."""

    system: str
    max_turns: int
    timeout: float | None


class ChildTerms(TypedDict, total=False):
    """What may be said of a child besides its workload and spec, as `Context.child` explains it."""

    budget_usd: str | float | None
    dispatch: str | None
    timeout: float | None
    optional: bool


class ChildStarter(Protocol):
    """Starts a child run and gives its result."""

    async def __call__(self, key: str, workload: str, spec: Json, options: ChildOptions) -> Json:
        """Drive the child to its end; raises ChildFailed when it does not complete."""
