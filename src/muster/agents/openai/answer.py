"""Answers of chat completions: replies and failures. Pure; used by live calls, by streams and by batches."""

from collections.abc import Mapping
from typing import Any

from muster.agents.faults import Account, ErrorAnswer, error_of, plain, retry_after, unreadable
from muster.agents.payload import arguments_of, reader, to_json, tokens_of
from muster.agents.usage import Ceiling, Impossible, Stray, charge_of, thinking_of, tier_in
from muster.domain.call import Reply, Stop, Timings, ToolCall, Usage
from muster.domain.errors import AuthRefused, InvalidRequest, OutcomeUnknown, TierFull, WireError
from muster.domain.price import Pricing
from muster.text import typed

UNTIMED = Timings()

_STOPS = {
    "stop": Stop.END,
    "tool_calls": Stop.TOOL_USE,
    "function_call": Stop.TOOL_USE,
    "length": Stop.MAX_TOKENS,
    "content_filter": Stop.REFUSED,
}


class Details(typed.Struct, gc=False):
    """What of the prompt met the cache."""

    cached_tokens: Any = None
    cache_write_tokens: Any = None


class CompletionDetails(typed.Struct, gc=False):
    """What of the output was thinking."""

    reasoning_tokens: Any = None


class OpenAIUsage(typed.Struct, gc=False):
    """Usage as the API spells it, not trusted yet; the prompt's tokens include what the cache read and wrote."""

    prompt_tokens: Any = None
    completion_tokens: Any = None
    prompt_tokens_details: Details | Stray = None
    completion_tokens_details: CompletionDetails | Stray = None


class Function(typed.Struct, gc=False):
    """The function that a tool call names, with its arguments as JSON in a string."""

    name: str | None = None
    arguments: Any = None


class OpenAIToolCall(typed.Struct, gc=False):
    """One tool call, or in a stream a piece of it."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None


class OpenAIMessage(typed.Struct, gc=False):
    """What the model said, or in a stream a piece of it."""

    content: Any = None  # a string; with some servers a list of parts
    refusal: str | None = None
    tool_calls: list[OpenAIToolCall] | None = None
    reasoning_content: Any = None  # thinking, as DeepSeek, vLLM and llama.cpp spell it
    reasoning: Any = None  # the same, as OpenRouter does

    @property
    def thought(self) -> bool:
        """Return whether it has thinking."""
        return bool(self.reasoning_content or self.reasoning)


class Choice(typed.Struct, gc=False):
    """One of the answers; only the first is asked for."""

    message: OpenAIMessage
    finish_reason: str | None = None
    error: Any = None


class Completion(typed.Struct, gc=False):
    """A whole answer, which some servers use to wrap an error too."""

    choices: list[Choice] | None = None
    id: str | None = None
    model: str | None = None
    usage: OpenAIUsage | Stray = None
    service_tier: Any = None
    error: Any = None


_completion = reader(Completion)


def decode(body: bytes, pricing: Pricing, ceiling: Ceiling, account: Account, timings: Timings = UNTIMED) -> Reply:
    """Read a success; one that holds an error is that error, one that cannot be read leaves the outcome unknown."""
    try:
        completion = _completion(body)
    except (typed.DecodeError, UnicodeError):
        raise unreadable("sent an answer that is not a completion", account, body) from None
    if completion.error is not None:
        raise error_of(error_answer_of(completion.error), account)
    if not completion.choices:
        raise unreadable("sent an answer with no choice in it", account, body)
    if completion.choices[0].error is not None:
        raise broken(completion.choices[0].error, account)
    return reply_of(completion, completion.choices[0], pricing, ceiling, timings)


def reply_of(completion: Completion, choice: Choice, pricing: Pricing, ceiling: Ceiling, timings: Timings) -> Reply:
    """Return the first answer as a reply."""
    said = choice.message
    text = text_of(said.content) + (said.refusal or "")
    calls = _calls(said.tool_calls) if said.tool_calls else ()
    served = pricing.tier_told(tier_in(completion.service_tier))
    charge = charge_of(_usage(completion.usage), pricing, ceiling, text, calls, thought=said.thought, served=served)
    return Reply(
        text=text,
        stop=_stop(choice, bool(calls)),
        tool_calls=calls,
        usage=charge.usage,
        cost=charge.cost,
        lane=charge.lane,
        model=completion.model or "",
        id=completion.id or "",
        timings=timings,
        trace=charge.trace,
        tier=served,
    )


def text_of(content: Any) -> str:
    """Join the text of a content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join([text for text in texts if isinstance(text, str)])


def fault(status: int, headers: Mapping[str, str], body: bytes, account: Account) -> WireError:
    """Return the error for an answer whose status is no success."""
    try:
        trouble = typed.decode(body)
    except (typed.DecodeError, UnicodeError):
        trouble = plain(body)
    if isinstance(trouble, dict):
        trouble = trouble.get("error") or trouble.get("detail") or trouble
    return error_of(
        ErrorAnswer(
            status=status,
            text=_words(trouble),
            retry_after=retry_after(headers),
            request_id=headers.get("x-request-id"),
            kind=_kind(trouble, status),
        ),
        account,
    )


def error_answer_of(trouble: Any) -> ErrorAnswer:
    """Complete an error that came inside a success; when it names no status, the outcome is unknown."""
    code = trouble.get("code") if isinstance(trouble, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 200
    kind = _kind(trouble, status) or (OutcomeUnknown if status == 200 else None)
    return ErrorAnswer(status=status, text=_words(trouble), kind=kind)


def broken(trouble: Any, account: Account) -> OutcomeUnknown:
    """Return the error of a model that failed after it had begun, so that tokens may be charged."""
    error = error_of(error_answer_of(trouble), account)
    return OutcomeUnknown(error.message, status=error.status)


def _kind(trouble: Any, status: int) -> type[WireError] | None:
    if not isinstance(trouble, dict):
        return None
    if "insufficient_quota" in (trouble.get("code"), trouble.get("type")):
        return AuthRefused  # comes as a 429, but no waiting brings credit back: the run must stop
    if status == 429 and "resource_unavailable" in (trouble.get("code"), trouble.get("type")):
        return TierFull
    metadata = trouble.get("metadata")
    if status == 403 and isinstance(metadata, dict) and "reasons" in metadata:
        return InvalidRequest  # OpenRouter: this text was flagged; the key is fine
    return None


def _words(trouble: Any) -> str:
    message = trouble.get("message") if isinstance(trouble, dict) else trouble
    return message if isinstance(message, str) else to_json(trouble).decode()


def _stop(choice: Choice, calls: bool) -> Stop:
    if choice.message.refusal:
        return Stop.REFUSED
    stop = _STOPS.get(choice.finish_reason or "", Stop.OTHER)
    return Stop.TOOL_USE if calls and stop is Stop.END else stop  # some servers say "stop" with tool calls


def _calls(uses: list[OpenAIToolCall]) -> tuple[ToolCall, ...]:
    return tuple([_call(use, place) for place, use in enumerate(uses) if use.function is not None])


def _call(use: OpenAIToolCall, place: int) -> ToolCall:
    function = use.function or Function()
    return ToolCall(id=use.id or f"call_{place}", name=function.name or "", arguments=arguments_of(function.arguments))


def _usage(counts: OpenAIUsage | Stray) -> Usage | Impossible | None:
    """Read a usage; None when it does not say what went in and out."""
    if counts is None:
        return None
    if not isinstance(counts, OpenAIUsage) or (tokens := _tokens(counts)) is None:
        return Impossible.USAGE
    if counts.prompt_tokens is None or counts.completion_tokens is None:
        return None
    sent, wrote, read, written = tokens
    details = counts.completion_tokens_details
    return Usage(
        input=max(0, sent - read - written),
        output=wrote,
        cache_read=read,
        cache_write=written,
        thinking=thinking_of(details.reasoning_tokens, wrote) if isinstance(details, CompletionDetails) else 0,
    )


def _tokens(counts: OpenAIUsage) -> tuple[int, ...] | None:
    details = counts.prompt_tokens_details
    if not isinstance(details, Details | None):
        return None
    return tokens_of(
        counts.prompt_tokens,
        counts.completion_tokens,
        details and details.cached_tokens,
        details and details.cache_write_tokens,
    )
