"""How a run is done, apart from what it does, and new runs made from that. Pure."""

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from types import UnionType
from typing import Any, TypeVar

from muster.domain.budget import Budgets
from muster.domain.canonical import plain_json
from muster.domain.dispatch import DEFAULT_CONCURRENCY, LIVE, Dispatch
from muster.domain.errors import BadArgument
from muster.domain.flaw import FieldFlaw
from muster.domain.ids import RunId
from muster.domain.media import Media
from muster.domain.money import Microdollars
from muster.domain.order import DeclaredField, order_fields, value_flaws
from muster.domain.rules import CURRENT_RULES
from muster.domain.run import NewRun, Origin, Reuse, Run
from muster.domain.run_order import MAX_CONCURRENCY, LimitedRunOrder, RunOrder, dispatch_of, require_name
from muster.text.words import choice_error

MAX_ROWS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Name, tags, budget, time limit, concurrency, and whether agents are asked live or in batches.

    The `media` are the images and documents that its spec names, with their bytes.
    """

    name: str | None = None
    is_only: bool = False  # its user has no other run of that name
    tags: tuple[str, ...] = ()
    budget: Microdollars | None = None
    timeout: float | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    dispatch: Dispatch = LIVE
    media: tuple[Media, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        """Refuse what no run can be started with."""
        if not (_is(self.concurrency, int) and 1 <= self.concurrency <= MAX_CONCURRENCY):
            raise BadArgument(
                f"must be between 1 and {MAX_CONCURRENCY:,}, not {self.concurrency}", argument="concurrency"
            )
        if self.timeout is not None and not (_is(self.timeout, int | float) and 0 < self.timeout < math.inf):
            raise BadArgument(f"must be more than 0 seconds, not {_spelled(self.timeout)}", argument="timeout")
        if not all(_is(tag, str) for tag in self.tags):
            wrong = next(tag for tag in self.tags if not _is(tag, str))
            raise BadArgument(f"must be a string, not {wrong!r}", argument="tag")
        require_name(self.name)
        if flaws := list(self._flaws()):
            raise BadArgument.of(flaws)

    def _flaws(self) -> Iterator[FieldFlaw]:
        """Yield what is beyond the bounds that every door has."""
        for argument, given in (("name", self.name), ("tags", self.tags), ("timeout", self.timeout)):
            if given:
                known = _declared()[argument]
                yield from value_flaws(given, known.kind, known.declared, argument)


@cache
def _declared() -> Mapping[str, DeclaredField]:
    """Return what is declared of the fields of a run, by the arguments of Python."""
    known = {one.name: one for one in order_fields(LimitedRunOrder)}
    return {"name": known["name"], "tags": known["run_tags"], "timeout": known["timeout_secs"]}


def terms_of(order: RunOrder, dispatch: Dispatch | None = None) -> dict[str, Any]:
    """Return what an order says of its run, by the names of arguments."""
    limits = {"concurrency": order.concurrency} if isinstance(order, LimitedRunOrder) else {}
    return {
        "budget_usd": order.budget_usd,
        "name": order.name,
        "tags": order.stored_tags,
        "timeout": order.time_limit,
        "dispatch": dispatch_of(order) if dispatch is None else dispatch,
        **limits,
    }


def _is(value: object, kind: type | UnionType) -> bool:
    """Return whether a value is of a type, whatever its annotation promised: programs are not always checked."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _spelled(number: object) -> str:
    return f"{number:g}" if isinstance(number, int | float) else repr(number)


def require_reference(reference: str) -> None:
    """Refuse what is not the name of anything."""
    if not _is(reference, str):
        raise BadArgument(f"a reference must be a string, not {reference!r}")


def require_limit(limit: int) -> None:
    """Refuse a number of rows that is none."""
    if not _is(limit, int) or not 1 <= limit <= MAX_ROWS:
        raise BadArgument(f"must be between 1 and {MAX_ROWS:,}, not {limit!r}", argument="limit")


def require_count(number: int) -> None:
    """Refuse a number of rows that is less than none."""
    if not _is(number, int) or not 0 <= number <= MAX_ROWS:
        raise BadArgument(f"a number of rows must be between 0 and {MAX_ROWS:,}, not {number!r}")


def require_moment(moment: float, name: str = "since") -> float:
    """Refuse a moment that is not a number of seconds since 1970."""
    if not _is(moment, int | float) or not math.isfinite(moment):
        raise BadArgument(f"must be a time in seconds, as of time.time(), not {moment!r}", argument=name)
    return moment


State = TypeVar("State", bound=StrEnum)


def state_of(kind: type[State], name: str) -> State:
    """Return the state with a name."""
    if name not in list(kind):
        raise BadArgument(choice_error(tuple(kind), name), argument="state")
    return kind(name)


def only_of(options: RunOptions, origin: Origin | None = None) -> RunOptions:
    """Return the options of a run that is the only one of its name; raises BadArgument where that cannot be."""
    if options.name is None or origin is not None:
        raise BadArgument("needs a name, and no origin", argument="resume", suggestions=('add name="nightly"',))
    return replace(options, is_only=True)


def new_run(
    id_: RunId,
    at: float,
    workload: str,
    spec: Any,
    options: RunOptions,
    *,
    submitted: bool = False,
    origin: Origin | None = None,
    rules: int = CURRENT_RULES,
) -> NewRun:
    """Return a run of a workload; with an origin it takes over what another run remembers."""
    return NewRun(
        id=id_,
        workload=workload,
        spec=plain_json(spec, "the spec of the run"),
        created_at=at,
        name=options.name,
        is_only=options.is_only,
        tags=options.tags,
        seed=random.SystemRandom().getrandbits(31),
        cap=options.budget,
        timeout=options.timeout,
        concurrency=options.concurrency,
        submitted=submitted,
        dispatch=options.dispatch,
        origin=origin,
        rules=rules,
        media=options.media,
    )


def descendant(
    id_: RunId,
    at: float,
    run: Run,
    reuse: Reuse,
    *,
    cap: Microdollars | None,
    fork_key: str | None = None,
    budgets: Budgets | None = None,
) -> NewRun:
    """Return a run that comes from another; it has a budget of its own, unless it continues one."""
    return NewRun(
        id=id_,
        workload=run.workload,
        spec=run.spec,
        created_at=at,
        name=run.name,
        tags=run.tags,
        seed=run.seed,
        cap=cap,
        timeout=run.timeout,
        concurrency=run.concurrency,
        dispatch=run.dispatch,
        origin=Origin(run=run.id, reuse=reuse, fork_key=fork_key),
        budgets=budgets,
        rules=run.rules,
    )
