"""The last frame of a conversation: what it came to, and what it cost. Pure."""

from typing import Any

import msgspec

from muster.agents.amounts import count_of, microdollars_of
from muster.agents.tally import Stray
from muster.domain.call import Usage
from muster.domain.canonical import Json
from muster.domain.money import Microdollars


class Kept(msgspec.Struct, frozen=True):
    """Tokens written to the cache, by how long they are kept."""

    ephemeral_1h_input_tokens: Any = None


class Counts(msgspec.Struct, frozen=True):
    """Tokens of this call, as the API spells them."""

    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation: Kept | Stray = None


class Share(msgspec.Struct, frozen=True, rename="camel"):
    """What one model had of the cost."""

    cost_usd: Any = msgspec.field(default=None, name="costUSD")


class Result(msgspec.Struct, frozen=True):
    """How a conversation ended."""

    subtype: str
    is_error: bool = False
    result: str | None = None
    structured_output: Any = None
    session_id: str = ""
    num_turns: int = 0
    stop_reason: str | None = None
    errors: list[Any] | None = None
    api_error_status: int | None = None
    total_cost_usd: Any = None  # of the whole session, in all its calls
    model_usage_since_last_result: dict[str, Share] | None = None  # of this call alone
    usage: Counts | Stray = None

    @property
    def why(self) -> str:
        """Say what went wrong, in its own words."""
        told = "; ".join(error for error in self.errors or () if isinstance(error, str))
        return (told or self.result or "").strip()

    def cost(self, *, resumed: bool) -> Microdollars | None:
        """Give what this call cost by its own account, rounded up; None when it does not say."""
        shares = self.model_usage_since_last_result
        if resumed and shares is not None:
            return microdollars_of(0, *(share.cost_usd for share in shares.values()))
        return microdollars_of(self.total_cost_usd)

    @property
    def tokens(self) -> Usage:
        """Return the tokens of this call; a count that cannot be right is 0."""
        counts = self.usage if isinstance(self.usage, Counts) else Counts()
        kept = counts.cache_creation if isinstance(counts.cache_creation, Kept) else Kept()
        hour = count_of(kept.ephemeral_1h_input_tokens) or 0
        return Usage(
            input=count_of(counts.input_tokens) or 0,
            output=count_of(counts.output_tokens) or 0,
            cache_read=count_of(counts.cache_read_input_tokens) or 0,
            cache_write=max(0, (count_of(counts.cache_creation_input_tokens) or 0) - hour),
            cache_write_1h=hour,
        )


def read_result(frame: Json) -> Result | None:
    """Read a frame as a result; None when it is not of the shape of one."""
    try:
        return msgspec.convert(frame, Result)
    except msgspec.ValidationError:
        return None
