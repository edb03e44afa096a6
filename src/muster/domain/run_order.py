"""What every order may say of its run: its name, its tags, its budget, its limits, and how its calls are sent."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

from muster.domain.dispatch import DEFAULT_CONCURRENCY, Dispatch, Fallback, Mode, chosen_dispatch
from muster.domain.doors import EVERYWHERE, LOCAL, Door
from muster.domain.effort import ModelEffort
from muster.domain.errors import BadArgument
from muster.domain.money import MAX_USD
from muster.domain.order import FieldForm, Name, OrderField

RUN, DISPATCH, SAMPLING = "Run", "Dispatch", "Sampling"  # headings
RUN_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
MAX_SECONDS = 86_400 * 30
MAX_TAGS = 100
MAX_CONCURRENCY = 10_000
MAX_TOKENS = 10_000_000
MAX_TEMPERATURE = 100

# All of these are without slots, since an order has several bases. What only lends its fields to orders has no methods
# of its own: to make these takes longer than anything else about a dataclass, and every help loads them.


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class BudgetField:
    """What may be spent."""

    budget_usd: Annotated[
        float | None,
        OrderField(
            help="The budget in dollars, a hard cap.",
            tool="The most that this may cost, in US dollars: a hard limit.",
            option=("--budget",),
            metavar="USD",
            heading=RUN,
            shown="run_usd in muster.toml, else none",
            form=FieldForm.BUDGET,
            above=0,
            max=MAX_USD,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class TimeLimitField:
    """How long it may take."""

    timeout_secs: Annotated[
        float | None,
        OrderField(
            help="Time limit in seconds. Waiting in a queue, in a batch or for a review does not count.",
            tool="How long the work may take, in seconds.",
            option=("--timeout",),
            metavar="S",
            heading=RUN,
            shown="none",
            above=0,
            max=MAX_SECONDS,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class SeedField:
    """What makes a draw repeatable."""

    seed: Annotated[
        int | None,
        OrderField(
            help="The random seed, where it is supported.",
            metavar="N",
            heading=SAMPLING,
            shown="none",
            min=-(2**63),
            max=2**63 - 1,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class SamplingFields(SeedField):
    """How a model writes, where nobody closer to it says so."""

    max_tokens: Annotated[
        int | None,
        OrderField(
            help="Maximum number of tokens in an answer.",
            metavar="N",
            heading=SAMPLING,
            shown="max_tokens of the agent, else 2048",
            min=1,
            max=MAX_TOKENS,
        ),
    ] = None
    temperature: Annotated[
        float | None,
        OrderField(
            help="The sampling temperature.",
            metavar="X",
            heading=SAMPLING,
            shown="set by the agent or the provider",
            min=0,
            max=MAX_TEMPERATURE,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class EffortField:
    """How much the models think that are asked."""

    # Over MCP an agent's name says it, as in NAME+high: the descriptions of tools are read with every request.
    model_effort: Annotated[
        ModelEffort | None,
        OrderField(
            help="How much the models think that are asked; an agent named NAME+EFFORT keeps its own.",
            option_help="How much the models think: none, minimal, low, medium, high, xhigh or max. An agent named "
            "NAME+EFFORT keeps its own.",
            metavar="E",
            heading=SAMPLING,
            shown="set by the agent or the provider",
            doors=EVERYWHERE - {Door.TOOL},
        ),
    ] = None


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class FilesField:
    """What is shown with a question, by paths that are read where it is asked."""

    files: Annotated[
        tuple[Path, ...],
        OrderField(
            help="Show an image (PNG, JPEG, GIF, WebP) or a PDF with the first message; repeatable.",
            form=FieldForm.PATH,
            option=("--file",),
            metavar="FILE",
            doors=LOCAL,
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class RunOrder(BudgetField):
    """The part of an order that is about the run, and the same for every kind of work."""

    id: Annotated[
        str | None,
        OrderField(
            help="The id of the run; the same request with the same id starts nothing.",
            form=FieldForm.ID,
            pattern=RUN_ID,
            doors=frozenset({Door.REQUEST}),
        ),
    ] = None
    name: Annotated[
        Name | None,
        OrderField(
            help="A name for the run.",
            tool="A name of yours, which other tools take in place of the id; the newest of a name counts.",
            metavar="NAME",
            heading=RUN,
        ),
    ] = None
    run_tags: Annotated[
        tuple[Name, ...],
        OrderField(
            help="Tags of the run.",
            option=("--tag",),
            option_help="A tag of the run; repeatable.",
            metavar="T",
            heading=RUN,
            max_length=MAX_TAGS,
        ),
    ] = ()
    dispatch: Annotated[
        Mode,
        OrderField(
            help="Send each call immediately; in the tier flex, which costs less and may refuse; or in batches, which "
            "cost less and take minutes to hours.",
            tool="`batch` costs half at most providers and can take hours.",
            heading=DISPATCH,
        ),
    ] = Mode.LIVE
    fallback: Annotated[
        Fallback,
        OrderField(
            help="What to do with a call that failed in 3 batches or that flex refused: let it fail, or send it live.",
            heading=DISPATCH,
        ),
    ] = Fallback.FAIL
    cache: Annotated[
        bool,
        OrderField(
            help="Use the provider's prompt cache in batches.",
            option=("--no-cache",),
            option_help="Turn off the provider's prompt cache in batches.",
            heading=DISPATCH,
        ),
    ] = True

    @property
    def stored_tags(self) -> tuple[str, ...]:
        """The tags that the run is stored with."""
        return self.run_tags

    @property
    def time_limit(self) -> float | None:
        """The time limit of the run, in seconds."""
        return None


@dataclass(frozen=True, kw_only=True)
class TimedRunOrder(TimeLimitField, RunOrder):
    """The same for kinds of work that have a time limit of their run."""

    @property
    def time_limit(self) -> float | None:
        """The time limit of the run, in seconds."""
        return self.timeout_secs


@dataclass(frozen=True, kw_only=True)
class LimitedRunOrder(TimedRunOrder):
    """The same for kinds of work that set no limits of their own."""

    concurrency: Annotated[
        int,
        OrderField(help="Maximum number of concurrent calls.", metavar="N", heading=RUN, min=1, max=MAX_CONCURRENCY),
    ] = DEFAULT_CONCURRENCY


@dataclass(frozen=True, kw_only=True)
class PlannedRun(BudgetField):
    """What a plan is asked in place of what its run would be."""

    said: ClassVar = {"budget_usd": {"help": "Check whether this budget would be enough.", "shown": "", "heading": ""}}


def dispatch_of(order: RunOrder) -> Dispatch:
    """Return how the calls of an ordered run are sent; raises BadArgument for what has no use there."""
    return chosen_dispatch(order.dispatch, order.fallback, cache=order.cache)


def require_name(name: object) -> None:
    """Refuse names that would stand for something else, and from unchecked programs what is no text."""
    if name is not None and (not isinstance(name, str) or not name.strip() or name == "last" or not name.isprintable()):
        raise BadArgument(f"must be a printable word other than `last`, not {name!r}", argument="name")
