"""The envelope that CLI agents put around an answer: {"type": "result", "result": …} with cost, usage and session."""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.agents.amounts import count_of, microdollars_of
from muster.agents.bill import OWN_LIMITS
from muster.agents.program.answer import counts
from muster.domain.call import Usage
from muster.domain.canonical import Json
from muster.domain.money import Microdollars

_SHOWN = 500
_SIGNS = ("result", "is_error", "subtype")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEnvelope:
    """One envelope; what is said in a wrong way is taken as not said, since its spelling is not ours."""

    result: Json
    failed: bool
    words: str  # what it says of itself, shortened for a message
    cost: Microdollars | None
    usage: Usage
    session: str
    turns: int


def is_envelope(value: Mapping[str, Json]) -> bool:
    """Whether an object is the envelope of a provider."""
    return value.get("type") == "result" and any(sign in value for sign in _SIGNS)


def read_envelope(value: Mapping[str, Json]) -> ProviderEnvelope:
    """Read an envelope."""
    session, failed = value.get("session_id"), value.get("is_error") is True
    cost = microdollars_of(value.get("total_cost_usd"))
    sure = not failed or value.get("subtype") in OWN_LIMITS  # else nothing was counted of what may have been paid
    return ProviderEnvelope(
        result=value.get("result"),
        failed=failed,
        words=_words(value),
        cost=cost if cost or sure else None,
        usage=counts(value.get("usage")),
        session=session if isinstance(session, str) else "",
        turns=count_of(value.get("num_turns")) or 0,
    )


def _words(value: Mapping[str, Json]) -> str:
    errors = value.get("errors")
    listed = [error for error in errors if isinstance(error, str)] if isinstance(errors, list) else []
    said = (value.get("result"), "; ".join(listed), value.get("subtype"))
    words = [text.strip() for text in said if isinstance(text, str) and text.strip()]
    return words[0][:_SHOWN] if words else "no reason was given"
