"""What every order may say of its run: its name, its tags, its budget, and how its calls are sent."""

from dataclasses import dataclass
from typing import Annotated

from muster.domain.order import REMOTE, WIRE, Door, Name, OrderField
from muster.domain.run import Fallback, Mode

RUN_ID = r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}"
MAX_USD = 1_000_000
MAX_SECONDS = 86_400 * 30
MAX_TAGS = 100


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class RunOrder:
    """The part of an order that is about the run, and the same for every kind of work."""

    id: Annotated[
        str | None,
        OrderField(
            help="The id of the run; the same request with the same id starts nothing.",
            pattern=RUN_ID,
            doors=frozenset({Door.REQUEST}),
        ),
    ] = None
    name: Annotated[
        Name | None,
        OrderField(
            help="A name for the run.",
            tool="A name of yours, which other tools take in place of the id; the newest of a name counts.",
            doors=REMOTE,
        ),
    ] = None
    run_tags: Annotated[tuple[Name, ...], OrderField(help="Tags of the run.", max_length=MAX_TAGS, doors=WIRE)] = ()
    budget_usd: Annotated[
        float | None,
        OrderField(
            help="The budget in dollars, a hard cap.",
            tool="The most that this may cost, in US dollars: a hard limit.",
            above=0,
            max=MAX_USD,
            doors=REMOTE,
        ),
    ] = None
    dispatch: Annotated[
        Mode,
        OrderField(
            help="Send each call immediately, or in batches, which cost less and take minutes to hours.",
            doors=WIRE,
        ),
    ] = Mode.LIVE
    fallback: Annotated[
        Fallback,
        OrderField(
            help="What to do with a call that failed in 3 batches: let it fail, or send it live.",
            doors=WIRE,
        ),
    ] = Fallback.FAIL
    cache: Annotated[bool, OrderField(help="Use the provider's prompt cache in batches.", doors=WIRE)] = True
