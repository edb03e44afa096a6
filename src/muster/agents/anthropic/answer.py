"""Answers of Anthropic's Messages API: replies and failures. Pure; used by live calls, by streams and by batches."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.agents.faults import Account, ErrorAnswer, error_of, plain, retry_after, unreadable
from muster.agents.payload import arguments_of, reader, tokens_of
from muster.agents.usage import Ceiling, Impossible, Stray, charge_of, geo_in, thinking_of, tier_in
from muster.domain.call import Reply, Stop, Timings, ToolCall, Usage
from muster.domain.canonical import JsonObject
from muster.domain.content import AnswerBlock, AnswerBlocks, BlockKind
from muster.domain.errors import AuthRefused, OutcomeUnknown, WireError
from muster.domain.price import Pricing, ServiceTier
from muster.domain.provider import ANTHROPIC
from muster.text import typed

UNTIMED = Timings()

_STOPS = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.SEQUENCE,
    "tool_use": Stop.TOOL_USE,
    "max_tokens": Stop.MAX_TOKENS,
    "model_context_window_exceeded": Stop.MAX_TOKENS,
    "refusal": Stop.REFUSED,
}

READ = ("text", "tool_use")  # blocks that say all in the text and the tool calls of a reply
_KINDS = {
    "text": BlockKind.TEXT,
    "tool_use": BlockKind.TOOL_CALL,
    "thinking": BlockKind.THINKING,
    "redacted_thinking": BlockKind.REDACTED,
}

# The status that goes with each kind of error, for errors that come without one: in a stream, or inside a success.
_STATUSES = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


class CacheWrites(typed.Struct, gc=False):
    """Tokens written to the cache, by how long they are kept."""

    ephemeral_5m_input_tokens: Any = None
    ephemeral_1h_input_tokens: Any = None


class OutputDetails(typed.Struct, gc=False):
    """What of the output was thinking."""

    thinking_tokens: Any = None


class AnthropicUsage(typed.Struct, gc=False):
    """Usage as the API spells it; none of it is trusted before `_usage` has looked at it."""

    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation: CacheWrites | Stray = None
    output_tokens_details: OutputDetails | Stray = None
    service_tier: Any = None
    speed: Any = None
    inference_geo: Any = None


class Block(typed.Struct, gc=False):
    """One block of content; only text and uses of tools are read, so the fields of other kinds may be anything."""

    type: str
    text: Any = None
    id: Any = None
    name: Any = None
    input: Any = None


class AnthropicMessage(typed.Struct, gc=False):
    """A message of the model."""

    content: list[Block]
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    usage: AnthropicUsage | Stray = None


class Trouble(typed.Struct, gc=False):
    """The inside of an error envelope."""

    type: str = ""
    message: str = ""


class Envelope(typed.Struct, gc=False):
    """An error, wrapped as the API wraps all of them."""

    error: Trouble
    request_id: str | None = None


_said = reader(AnthropicMessage)
_envelope = reader(Envelope)


def decode(
    body: bytes,
    pricing: Pricing,
    ceiling: Ceiling,
    account: Account,
    timings: Timings = UNTIMED,
    model: str = "",
    provider: str = ANTHROPIC,
) -> Reply:
    """Read a success of a model; one that holds an error is that error, one that cannot be read leaves it unknown."""
    try:
        said = _said(body)
        raw = typed.decode(body)["content"] if thought(said) else None
        return reply_of(said, pricing, ceiling, timings, raw=raw, model=model, provider=provider)
    except (typed.DecodeError, UnicodeError):
        trouble = trouble_in(body)
    if trouble is None:
        raise unreadable("sent an answer that is not a message", account, body)
    raise error_of(without_status(trouble), account)


def thought(said: AnthropicMessage) -> bool:
    """Return whether a message has more than text and uses of tools."""
    return any(block.type not in READ for block in said.content)


def reply_of(
    said: AnthropicMessage,
    pricing: Pricing,
    ceiling: Ceiling,
    timings: Timings,
    *,
    raw: Sequence[JsonObject] | None = None,
    model: str = "",
    provider: str = ANTHROPIC,
) -> Reply:
    """Return a message of the model as a reply, with its `raw` blocks where text and uses of tools are not all."""
    text, calls = _content(said.content)
    served = pricing.tier_told(_served(said.usage))
    charge = charge_of(
        _usage(said.usage),
        pricing,
        ceiling,
        text,
        calls,
        thought=raw is not None,
        served=served,
        geo=geo_in(said.usage.inference_geo) if isinstance(said.usage, AnthropicUsage) else "",
    )
    return Reply(
        text=text,
        stop=_STOPS.get(said.stop_reason or "", Stop.OTHER),
        tool_calls=calls,
        usage=charge.usage,
        cost=charge.cost,
        lane=charge.lane,
        model=said.model or "",
        id=said.id or "",
        timings=timings,
        trace=charge.trace,
        content=_blocks(raw, provider, model or said.model or "") if raw else None,
        tier=served,
    )


def _served(counts: AnthropicUsage | Stray) -> str:
    """Return the tier that served, as a price list calls it."""
    if not isinstance(counts, AnthropicUsage):
        return ""
    if counts.speed == ServiceTier.FAST:
        return ServiceTier.FAST
    return tier_in(counts.service_tier)


def _blocks(raw: Sequence[JsonObject], provider: str, model: str) -> AnswerBlocks:
    blocks = tuple([AnswerBlock(kind=_kind(one), raw=one, thinking=_thinking(one)) for one in raw])
    return AnswerBlocks(provider=provider, model=model, blocks=blocks)


def _kind(raw: JsonObject) -> BlockKind:
    return _KINDS.get(str(raw.get("type")), BlockKind.OTHER)


def _thinking(raw: JsonObject) -> str:
    said = raw.get("thinking") if raw.get("type") == "thinking" else None
    return said if isinstance(said, str) else ""


def fault(status: int, headers: Mapping[str, str], body: bytes, account: Account) -> WireError:
    """Return the error for an answer whose status is no success."""
    trouble = trouble_in(body)
    return error_of(
        ErrorAnswer(
            status=status,
            text=trouble.message if trouble else plain(body),
            retry_after=retry_after(headers),
            request_id=headers.get("request-id"),
            kind=AuthRefused if trouble and trouble.type == "billing_error" else None,
        ),
        account,
    )


def trouble_in(body: bytes) -> Trouble | None:
    """Find the error in an envelope."""
    try:
        return _envelope(body).error
    except (typed.DecodeError, UnicodeError):
        return None


def without_status(trouble: Trouble) -> ErrorAnswer:
    """Complete an error that came inside a success; of a kind that we do not know, the outcome is unknown."""
    status = _STATUSES.get(trouble.type)
    text = trouble.message or trouble.type
    return ErrorAnswer(status=status or 200, text=text, kind=None if status else OutcomeUnknown)


def _content(blocks: list[Block]) -> tuple[str, tuple[ToolCall, ...]]:
    if len(blocks) == 1 and blocks[0].type == "text" and isinstance(blocks[0].text, str):
        return blocks[0].text, ()  # nearly every answer is this, and all calls wait while one is read
    text = "".join([block.text for block in blocks if block.type == "text" and isinstance(block.text, str)])
    return text, tuple([_call(block) for block in blocks if block.type == "tool_use"])


def _call(block: Block) -> ToolCall:
    return ToolCall(id=str(block.id), name=str(block.name), arguments=arguments_of(block.input))


def _usage(counts: AnthropicUsage | Stray) -> Usage | Impossible | None:
    """Read a usage; None when it does not say what went in and out."""
    if counts is None:
        return None
    if not isinstance(counts, AnthropicUsage) or (tokens := _tokens(counts)) is None:
        return Impossible.USAGE
    if counts.input_tokens is None or counts.output_tokens is None:
        return None
    sent, wrote, read, written, minutes, hour = tokens
    details = counts.output_tokens_details
    return Usage(
        input=sent,
        output=wrote,
        cache_read=read,
        cache_write=max(0, (written or hour + minutes) - hour),
        cache_write_1h=hour,
        thinking=thinking_of(details.thinking_tokens, wrote) if isinstance(details, OutputDetails) else 0,
    )


def _tokens(counts: AnthropicUsage) -> tuple[int, ...] | None:
    kept = counts.cache_creation
    if not isinstance(kept, CacheWrites | None):
        return None
    return tokens_of(
        counts.input_tokens,
        counts.output_tokens,
        counts.cache_read_input_tokens,
        counts.cache_creation_input_tokens,
        kept and kept.ephemeral_5m_input_tokens,
        kept and kept.ephemeral_1h_input_tokens,
    )
