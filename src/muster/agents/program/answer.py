"""What a program answered, before anybody knows what it left in its log."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.agents.amounts import count_of
from muster.domain.call import Stop, ToolCall, Usage
from muster.domain.canonical import Json
from muster.domain.money import Microdollars

_UNCOUNTED = Usage()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer, read from the output."""

    text: str
    data: Json = None
    stop: Stop = Stop.END
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = _UNCOUNTED
    cost: Microdollars | None = None  # None: it did not say
    session: str = ""
    turns: int = 0


def counts(usage: Json) -> Usage:
    """Read the tokens that were used, as far as they are said."""
    said: Mapping[str, Json] = usage if isinstance(usage, dict) else {}
    return Usage(
        input=count_of(said.get("input_tokens")) or 0,
        output=count_of(said.get("output_tokens")) or 0,
        cache_read=count_of(said.get("cache_read_input_tokens")) or 0,
        cache_write=count_of(said.get("cache_creation_input_tokens")) or 0,
    )
