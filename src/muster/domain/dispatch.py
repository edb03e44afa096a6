"""How the calls of a run are sent: live or in batches, what becomes of those that fail, and how many at a time.

Every order names these, and so does every help: this module loads nothing else of a run.
"""

from dataclasses import dataclass
from enum import StrEnum

from muster.domain.advice import ArgumentAdvice
from muster.domain.errors import BadArgument

DEFAULT_CONCURRENCY = 20  # calls of a run at a time


class Mode(StrEnum):
    """How calls reach a provider."""

    LIVE = "live"
    FLEX = "flex"  # live, in a tier of service that costs less and may refuse
    BATCH = "batch"


MODES = "live, flex or batch"


def mode_of(word: str) -> Mode:
    """Read how calls are to be sent."""
    try:
        return Mode(word)
    except ValueError:
        raise BadArgument(f"must be {MODES}, not {word!r}", argument="dispatch") from None


class Fallback(StrEnum):
    """What becomes of a call that failed in batch after batch, or that the tier flex did not answer."""

    FAIL = "fail"
    LIVE = "live"  # it is sent live, in the standard tier


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """How a run's calls are sent, and how patient it is with batches."""

    mode: Mode = Mode.LIVE
    fallback: Fallback = Fallback.FAIL
    batches: int = 3  # in how many batches one call is tried
    cache: bool = True  # mark long prefixes that members share for the provider's cache


LIVE = Dispatch()


def chosen_dispatch(mode: Mode, fallback: Fallback = Fallback.FAIL, *, cache: bool = True) -> Dispatch:
    """Return how calls are sent; raises BadArgument for what has no use where they are sent so."""
    if not cache and mode is not Mode.BATCH:
        raise BadArgument(
            "applies to batches, and every call of this run is live",
            argument="cache",
            suggestions=(ArgumentAdvice("dispatch", "batch"),),
        )
    if fallback is not Fallback.FAIL and mode is Mode.LIVE:
        raise BadArgument(
            "applies to batches and flex, and every call of this run is live",
            argument="fallback",
            suggestions=(ArgumentAdvice("dispatch", "batch"), ArgumentAdvice("dispatch", "flex")),
        )
    return Dispatch(mode=mode, fallback=fallback, cache=cache)
