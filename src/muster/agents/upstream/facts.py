"""What a body says that decides about its cost: read strictly, from bytes that are passed on as they are. Pure."""

import json
import re
from collections.abc import Iterator
from typing import Any

from muster.agents.payload import decoded
from muster.agents.upstream.dialects import UpstreamDialect
from muster.domain.canonical import JsonObject
from muster.domain.errors import BadArgument
from muster.domain.exchange import WireFacts
from muster.domain.price import ServiceTier

MAX_LIMIT = 10_000_000  # tokens that one answer may have
MAX_ANSWERS = 1_000
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\],:]', re.DOTALL)
# Of these, two in one body are refused: a server may read another than this one does.
_ONCE = frozenset(
    (
        *("model", "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "stream", "stream_options"),
        *("service_tier", "speed", "background", "previous_response_id", "conversation", "tools"),
    )
)
_ELSEWHERE = frozenset(("file_id", "file_url", "vector_store_ids"))  # at any depth
# A picture or a document of few bytes may count many tokens: it is packed, and pages and pixels are what counts.
_UNBOUNDED = frozenset(
    (
        *("item_reference", "file", "input_file", "image", "image_url", "input_image", "document"),
        *("input_audio", "audio", "video", "computer_screenshot", "image_generation_call"),
    )
)
_STANDARD = ("standard_only", "standard", "on_demand")


def read_facts(body: bytes, dialect: UpstreamDialect) -> WireFacts:
    """Return what decides about the cost of a body; raises BadArgument for one that can be read in two ways."""
    fields = _object(body)
    spans = _spans(body)
    model = fields.get("model")
    if not isinstance(model, str) or not model:
        raise BadArgument("must be a text", argument="model")
    options = fields.get("stream_options")
    if options is not None and not isinstance(options, dict):
        raise BadArgument("must be an object", argument="stream_options")
    return WireFacts(
        model=model,
        limit=_limit(fields, dialect),
        answers=_whole(fields, "n", MAX_ANSWERS) or 1,
        tier=_tier(fields),
        stream=_flag(fields, "stream"),
        usage_asked=options is not None and options.get("include_usage") is True,
        options=spans.get("stream_options"),
        hidden=_hidden(fields, dialect),
        server_tool=_server_tool(fields, dialect),
        background=_flag(fields, "background"),
    )


def with_usage(body: bytes, facts: WireFacts) -> bytes:
    """Return the body of a stream that is asked to end with its usage; all else of it stays as it is."""
    if facts.options is None:
        start = body.index(b"{") + 1
        return body[:start] + b'"stream_options":{"include_usage":true},' + body[start:]
    begin, end = facts.options
    told = decoded(body[begin:end]) or {}
    return body[:begin] + json.dumps({**told, "include_usage": True}).encode() + body[end:]


def _object(body: bytes) -> JsonObject:
    try:
        fields = decoded(body)
    except (ValueError, RecursionError):
        raise BadArgument("the body is not valid JSON in UTF-8") from None
    if not isinstance(fields, dict):
        raise BadArgument("the body must be a JSON object")
    return fields


def _spans(body: bytes) -> dict[str, tuple[int, int]]:
    """Return where the values of the outermost fields stand; raises BadArgument for one that may not stand twice."""
    found: dict[str, tuple[int, int]] = {}
    for name, begin, end in _outermost(body):
        if name in found and name in _ONCE:
            raise BadArgument("stands twice in the body", argument=name)
        found[name] = begin, end
    return found


def _outermost(body: bytes) -> Iterator[tuple[str, int, int]]:
    depth, name, begin, last = 0, None, 0, b""
    for token in _TOKEN.finditer(body):
        sign = token[0]
        if sign in b"{[":
            depth += 1
        elif sign in b"}]":
            depth -= 1
        if depth == 1 and sign == b":" and name is None:
            name, begin = json.loads(last), token.end()
        elif name is not None and ((depth == 1 and sign == b",") or (depth == 0 and sign == b"}")):
            yield name, begin, token.start()
            name = None
        last = sign


def _limit(fields: JsonObject, dialect: UpstreamDialect) -> int | None:
    limits = [found for name in dialect.limits if (found := _whole(fields, name, MAX_LIMIT)) is not None]
    return max(limits, default=None)


def _whole(fields: JsonObject, name: str, most: int) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise BadArgument(f"must be a whole number from 0 to {most:,}", argument=name)
    return value


def _flag(fields: JsonObject, name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise BadArgument("must be true or false", argument=name)
    return bool(value)


def _tier(fields: JsonObject) -> str:
    if fields.get("speed") == ServiceTier.FAST:
        return ServiceTier.FAST
    tier = fields.get("service_tier")
    if tier is None:
        return ""
    if not isinstance(tier, str) or not tier.isprintable():
        raise BadArgument("must be a text", argument="service_tier")
    return ServiceTier.DEFAULT if tier in _STANDARD else tier


def _hidden(fields: JsonObject, dialect: UpstreamDialect) -> str:
    """Return the name of a field by which a request has input that is not in its body."""
    outer = next((name for name in dialect.hidden if fields.get(name)), "")
    return outer or next((name for name in _names_elsewhere(fields)), "")


def _names_elsewhere(fields: JsonObject) -> Iterator[str]:
    left: list[Any] = [fields.get("messages"), fields.get("input"), fields.get("system"), fields.get("tools")]
    while left:
        value = left.pop()
        if isinstance(value, list):
            left.extend(value)
        elif isinstance(value, dict):
            for name, inner in value.items():
                if name in _ELSEWHERE and inner:
                    yield name
                elif name == "type" and isinstance(inner, str) and inner in _UNBOUNDED:
                    yield inner
                left.append(inner)


def _server_tool(fields: JsonObject, dialect: UpstreamDialect) -> str:
    """Return the type of a tool that the provider runs itself; one that the client runs costs nothing more."""
    tools = fields.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        kind = tool.get("type") if isinstance(tool, dict) else None
        if isinstance(kind, str) and not dialect.runs_at_client(kind):
            return kind
    return "web_search_options" if fields.get("web_search_options") is not None else ""
