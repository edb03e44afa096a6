"""Answers of the Responses API: replies and failures. Pure; used by live calls, by streams and by batches."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from muster.agents.faults import Account, error_of, unreadable
from muster.agents.openai.answer import broken, error_answer_of
from muster.agents.payload import arguments_of, reader, tokens_of
from muster.agents.usage import Ceiling, Impossible, Stray, charge_of, thinking_of, tier_in
from muster.domain.call import Reply, Stop, Timings, ToolCall, Usage
from muster.domain.canonical import JsonObject
from muster.domain.content import AnswerBlock, AnswerBlocks, BlockKind
from muster.domain.errors import AuthRefused, InvalidRequest, Paid, RateLimited, WireError
from muster.domain.price import Pricing
from muster.domain.wire import WireName
from muster.text import typed

UNTIMED = Timings()

_STOPS = {"max_output_tokens": Stop.MAX_TOKENS, "content_filter": Stop.REFUSED}  # of answers that are incomplete
_ENDED = ("completed", "incomplete", None)  # statuses of an answer that holds something; some servers leave it out
_KINDS = {"message": BlockKind.TEXT, "function_call": BlockKind.TOOL_CALL, "reasoning": BlockKind.THINKING}
_READ = ("message", "function_call")  # items that say all in the text and the tool calls of a reply

# Errors of a response that failed for what was asked: the same request would fail again.
_REFUSALS = frozenset(
    {
        "invalid_prompt", "data_residency_mismatch", "bio_policy", "misalignment_policy_violation", "invalid_image",
        "invalid_image_format", "invalid_base64_image", "invalid_image_url", "image_too_large", "image_too_small",
        "image_parse_error", "image_content_policy_violation", "invalid_image_mode", "image_file_too_large",
        "unsupported_image_media_type", "empty_image_file", "failed_to_download_image", "image_file_not_found",
    }
)  # fmt: skip


class CachedDetails(typed.Struct, gc=False):
    """What of the input met the cache."""

    cached_tokens: Any = None
    cache_write_tokens: Any = None


class ReasoningDetails(typed.Struct, gc=False):
    """What of the output was reasoning."""

    reasoning_tokens: Any = None


class ResponsesUsage(typed.Struct, gc=False):
    """Usage as the API spells it, not trusted yet; the input's tokens include what the cache read and wrote."""

    input_tokens: Any = None
    output_tokens: Any = None
    input_tokens_details: CachedDetails | Stray = None
    output_tokens_details: ReasoningDetails | Stray = None


class OutputItem(typed.Struct, gc=False):
    """One item of the output; only messages and function calls are read, so the fields of others may be anything."""

    type: str = ""
    content: Any = None  # of a message: its parts
    phase: Any = None  # of a message: whether it is the answer, or a comment on the way to it
    id: Any = None
    call_id: Any = None
    name: Any = None
    arguments: Any = None


class ModelResponse(typed.Struct, gc=False):
    """A whole answer, and what became of it."""

    output: list[OutputItem] | None = None
    id: str | None = None
    model: str | None = None
    status: str | None = None
    usage: ResponsesUsage | Stray = None
    service_tier: Any = None
    error: Any = None
    incomplete_details: Any = None


class _RawOutput(typed.Struct, gc=False):
    output: list[JsonObject] = typed.field(default_factory=list)


_response = reader(ModelResponse)
_raw_output = reader(_RawOutput)


def decode(
    body: bytes,
    pricing: Pricing,
    ceiling: Ceiling,
    account: Account,
    timings: Timings = UNTIMED,
    model: str = "",
) -> Reply:
    """Read a success of a model; one that holds an error is that error, one that cannot be read leaves it unknown."""
    try:
        response = _response(body)
    except (typed.DecodeError, UnicodeError):
        raise unreadable("sent an answer that is not a response", account, body) from None
    if response.error is not None:
        begun = response.id is not None
        raise failed(response, account) if begun else error_of(error_answer_of(response.error), account)
    if response.output is None or response.status not in _ENDED:
        raise unreadable("sent an answer that is not a finished response", account, body)
    raw = _raw_output(body).output if reasoned(response.output) else None
    return reply_of(response, pricing, ceiling, timings, raw=raw, model=model)


def reasoned(items: Sequence[OutputItem]) -> bool:
    """Return whether items say more than the text and the tool calls of a reply can hold."""
    return any(item.type not in _READ or item.phase is not None for item in items)


def failed(response: ModelResponse, account: Account) -> WireError:
    """Return the error of a response that was accepted and failed; nobody says that such a response is free."""
    code = response.error.get("code") if isinstance(response.error, dict) else None
    reported = error_answer_of(response.error)
    if code == "rate_limit_exceeded":
        reported = replace(reported, status=429, kind=RateLimited)
    elif code in _REFUSALS:
        reported = replace(reported, status=400, kind=InvalidRequest)
    elif reported.kind is not AuthRefused:
        return broken(response.error, account)
    error = error_of(reported, account)
    error.paid = Paid.UNKNOWN
    return error


def reply_of(
    response: ModelResponse,
    pricing: Pricing,
    ceiling: Ceiling,
    timings: Timings,
    *,
    raw: Sequence[JsonObject] | None = None,
    model: str = "",
) -> Reply:
    """Return a response as a reply, with its `raw` items where text and tool calls are not all."""
    items = response.output or []
    text, refusal = _said(items)
    calls = tuple([_call(item, place) for place, item in enumerate(items) if item.type == "function_call"])
    served = pricing.tier_told(tier_in(response.service_tier))
    charge = charge_of(
        _usage(response.usage), pricing, ceiling, text + refusal, calls, thought=bool(raw), served=served
    )
    return Reply(
        text=text + refusal,
        stop=Stop.REFUSED if refusal else _stop(response, bool(calls)),
        tool_calls=calls,
        usage=charge.usage,
        cost=charge.cost,
        lane=charge.lane,
        model=response.model or "",
        id=response.id or "",
        timings=timings,
        trace=charge.trace,
        content=_blocks(raw, model or response.model or "") if raw else None,
        tier=served,
    )


def _said(items: Sequence[OutputItem]) -> tuple[str, str]:
    """Return the text and the refusal of the messages; comments on the way count only where no other text is."""
    messages = [item for item in items if item.type == "message"]
    answers = [item for item in messages if item.phase != "commentary"] or messages
    parts = [part for item in answers if isinstance(item.content, list) for part in item.content]
    return _joined(parts, "output_text", "text"), _joined(parts, "refusal", "refusal")


def _joined(parts: Sequence[Any], kind: str, field: str) -> str:
    texts = [part.get(field) for part in parts if isinstance(part, dict) and part.get("type") == kind]
    return "".join([text for text in texts if isinstance(text, str)])


def _call(item: OutputItem, place: int) -> ToolCall:
    name = item.call_id or item.id or f"call_{place}"
    return ToolCall(id=str(name), name=str(item.name or ""), arguments=arguments_of(item.arguments))


def _stop(response: ModelResponse, calls: bool) -> Stop:
    if response.status == "incomplete":
        details = response.incomplete_details
        return _STOPS.get(str(details.get("reason")) if isinstance(details, dict) else "", Stop.OTHER)
    if response.status is None:
        return Stop.OTHER
    return Stop.TOOL_USE if calls else Stop.END


def _blocks(raw: Sequence[JsonObject], model: str) -> AnswerBlocks:
    blocks = [AnswerBlock(kind=_kind(item), raw=item, thinking=_thinking(item)) for item in raw]
    return AnswerBlocks(provider=WireName.RESPONSES.blocks, model=model, blocks=tuple(blocks))


def _kind(raw: JsonObject) -> BlockKind:
    return _KINDS.get(str(raw.get("type")), BlockKind.OTHER)


def _thinking(raw: JsonObject) -> str:
    """Return the reasoning that can be read: the summary, or with some servers all of it."""
    if raw.get("type") != "reasoning":
        return ""
    summary, content = raw.get("summary"), raw.get("content")
    parts = [*(summary if isinstance(summary, list) else ()), *(content if isinstance(content, list) else ())]
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "\n\n".join([text for text in texts if isinstance(text, str) and text])


def _usage(counts: ResponsesUsage | Stray) -> Usage | Impossible | None:
    """Read a usage; None when it does not say what went in and out."""
    if counts is None:
        return None
    if not isinstance(counts, ResponsesUsage) or (tokens := _tokens(counts)) is None:
        return Impossible.USAGE
    if counts.input_tokens is None or counts.output_tokens is None:
        return None
    sent, wrote, read, written = tokens
    details = counts.output_tokens_details
    return Usage(
        input=max(0, sent - read - written),
        output=wrote,
        cache_read=read,
        cache_write=written,
        thinking=thinking_of(details.reasoning_tokens, wrote) if isinstance(details, ReasoningDetails) else 0,
    )


def _tokens(counts: ResponsesUsage) -> tuple[int, ...] | None:
    details = counts.input_tokens_details
    if not isinstance(details, CachedDetails | None):
        return None
    return tokens_of(
        counts.input_tokens,
        counts.output_tokens,
        details and details.cached_tokens,
        details and details.cache_write_tokens,
    )
