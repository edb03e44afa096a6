"""What people say about verdicts: whether they were right."""

from dataclasses import dataclass
from enum import StrEnum

from muster.domain.errors import BadArgument
from muster.domain.ids import RunId


class Opinion(StrEnum):
    """What a person thinks of a verdict."""

    RIGHT = "right"  # the person would have said the same
    WRONG = "wrong"  # the person would have said the opposite
    BORDERLINE = "borderline"  # one can say either


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """One person's opinion of one verdict; a later one of the same person takes its place."""

    run: RunId
    case: str
    subject: str
    epoch: int
    opinion: Opinion
    at: float
    note: str = ""
    by: str = ""  # who says so, if they want that known


def opinion_of(word: str) -> Opinion:
    """Read an opinion."""
    try:
        return Opinion(word)
    except ValueError:
        raise BadArgument(f"the opinion must be one of {', '.join(Opinion)}, not {word!r}") from None
