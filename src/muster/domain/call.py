"""A call to an agent: the request, and the reply with its usage, cost and quality."""

import hashlib
import json
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from operator import attrgetter
from typing import Any, Generic, TypeVar, dataclass_transform
from unicodedata import category

from muster.domain.canonical import DataT_co, Json, JsonObject, canonical, noun_of
from muster.domain.content import AnswerBlocks
from muster.domain.errors import BadArgument
from muster.domain.exchange import WireAnswer, WireRequest
from muster.domain.media import Media, MediaFile, with_data
from muster.domain.money import NOTHING, Lane, Microdollars, is_cost

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True)
def value(kind: type[T]) -> type[T]:
    """Make a class of values; to freeze each at run time too takes three times as long as to make it."""
    return dataclass(slots=True, kw_only=True, unsafe_hash=True)(kind)


_SURROGATE = re.compile("[\ud800-\udfff]")
# Sequences that move the cursor, set colours or titles (ECMA-48): a terminal shows nothing of them.
_ESCAPE_BEGINS = ("\x1b", "\x9b", "\x9d")
_ESCAPE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]|(?:\x1b[\]PX^_]|\x9d)[^\x07\x1b\x9c]*+(?:\x07|\x1b\\|\x9c)?|\x1b[ -/]*+[0-~]"
)
MIN_CACHED_PREFIX = 4096  # characters: a prefix shorter than some thousand tokens is not cached by any provider
MAX_KEY = 512  # characters
# Categories of which no character shows anything by itself: control, format (U+200B, marks of direction), half a
# surrogate pair, unassigned, private use, separators, and marks (accents, selectors), which need a base to stand on.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zs", "Zl", "Zp", "Mn", "Mc", "Me"})
# Letters and symbols that show nothing: fillers of Hangul, the empty pattern of Braille, blank hieroglyphs, the null
# notehead, and what stands for an object or a character that was lost.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\ufffc\ufffd\U00013441\U00013442\U0001d159")


class Role(StrEnum):
    """Who speaks in a conversation."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"  # the result of a tool, in answer to a tool call


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One use of a tool, as the agent asked for it."""

    id: str
    name: str
    arguments: Mapping[str, Json] = field(default_factory=dict)
    result: str | None = None  # what it gave, when the agent used the tool by itself
    failed: bool = False  # the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn of a conversation."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()  # of an assistant
    tool_call_id: str | None = None  # of a tool: which call this answers
    # Of an assistant: the answer as its provider gave it, to be passed back. Of a user: texts, images and documents in
    # their order; `text` is then the texts, joined.
    content: AnswerBlocks | tuple[str | Media, ...] | None = None

    def __post_init__(self) -> None:
        """Fill in the text of a message that is given as its parts; raise BadArgument where that cannot be."""
        if self.content is not None and not isinstance(self.content, AnswerBlocks):
            parts = _parts_of(self.role, self.content)
            object.__setattr__(self, "content", parts)
            object.__setattr__(self, "text", "\n\n".join(part for part in parts if isinstance(part, str)))

    @property
    def blocks(self) -> AnswerBlocks | None:
        """The answer of an assistant as its provider gave it."""
        return self.content if isinstance(self.content, AnswerBlocks) else None

    @property
    def parts(self) -> tuple[str | Media, ...]:
        """What a user said with images or documents, in order; nothing of all other messages."""
        return self.content if isinstance(self.content, tuple) else ()

    @property
    def media(self) -> tuple[Media, ...]:
        """The images and documents in it."""
        return tuple(part for part in self.parts if isinstance(part, Media))


def _parts_of(role: Role, content: object) -> tuple[str | Media, ...]:
    parts = tuple(content) if isinstance(content, list | tuple) else ()
    if role is not Role.USER or not parts or not all(isinstance(part, str | Media) for part in parts):
        raise BadArgument(
            "the content of a message must be texts, images and documents of the user",
            argument="content",
            suggestions=('write muster.message("What is this?", muster.image("photo.png"))',),
        )
    return parts


def message(*parts: str | Media) -> Message:
    """Return what a user says, with images and documents where they belong."""
    if all(isinstance(part, str) for part in parts):
        return Message(role=Role.USER, text="\n\n".join(map(str, parts)))
    return Message(role=Role.USER, content=parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool that the agent may use."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


_CONTENT = attrgetter("content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked; `volatile` goes to agents that have a place for it, and is no part of the identity."""

    messages: tuple[Message, ...]
    system: str = ""
    tools: tuple[Tool, ...] = ()
    max_tokens: int | None = None
    usual_tokens: int | None = None  # what max_tokens is for such a question where nobody names it; is not sent itself
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    cache: str | None = None  # "5m" or "1h": mark the shared prefix for the provider's cache
    shared: int = 0  # so many characters at the beginning of the first message belong to that prefix
    # The answer is to be JSON that fits this JSON Schema: another answer is an error of a program or a CLI agent, and
    # the `data_error` of a model's reply.
    schema: Mapping[str, Any] | None = None
    context: Mapping[str, Json] | None = None  # the same question as data, for programs of the exec protocol
    environment: Mapping[str, str] | None = None  # variables for this call, of programs and CLI agents; no secrets
    settings: Mapping[str, Json] | None = None  # of the agent, for this call: model, tools, effort, budget_usd, …
    volatile: Mapping[str, Json] = field(default_factory=dict)
    wire: WireRequest | None = None  # the request of a foreign program, which is passed on as it is; nothing else then

    def __post_init__(self) -> None:
        """Refuse numbers that no agent can be asked with."""
        if self.max_tokens is not None and not _is_number(self.max_tokens, 1):
            raise BadArgument(f"must be 1 or more, not {self.max_tokens!r}", argument="max_tokens")
        if self.temperature is not None and not _is_number(self.temperature, 0):
            raise BadArgument(f"must be 0 or more, not {self.temperature!r}", argument="temperature")

    def attach(self, volatile: Mapping[str, Json]) -> "Request":
        """Return the request with more in its volatile part; objects of the same name are joined."""
        joined = dict(self.volatile)
        for name, value in volatile.items():
            before = joined.get(name)
            joined[name] = {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value
        return replace(self, volatile=joined)

    @property
    def has_blocks(self) -> bool:
        """Return whether an earlier answer in it is given as its provider gave it."""
        return AnswerBlocks in map(type, map(_CONTENT, self.messages))

    @property
    def has_media(self) -> bool:
        """Return whether it shows images or documents."""
        return tuple in map(type, map(_CONTENT, self.messages))  # every call asks eight times: without a generator

    @property
    def media(self) -> tuple[Media, ...]:
        """The images and documents in it, as often as they are shown."""
        return tuple(media for message in self.messages for media in message.media)

    @property
    def prompt(self) -> str:
        """The last thing that the user said."""
        spoken = (message.text for message in reversed(self.messages) if message.role is Role.USER)
        return next(spoken, "")


def _is_number(value: object, least: int) -> bool:
    return isinstance(value, int | float) and least <= value < math.inf


def ask(text: str, *, system: str = "") -> Request:
    """Make the simplest request: one message from the user."""
    return Request(messages=(Message(role=Role.USER, text=text),), system=system)


def without_data(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Return messages whose images and documents are references."""
    return tuple(
        replace(each, content=tuple(part.reference if isinstance(part, MediaFile) else part for part in each.parts))
        if each.media
        else each
        for each in messages
    )


def with_files(request: Request, files: Mapping[str, bytes]) -> Request:
    """Return a request whose images and documents have their bytes, which are given by digest."""
    messages = tuple(
        replace(each, content=tuple(_filled(part, files) for part in each.parts)) if each.media else each
        for each in request.messages
    )
    return replace(request, messages=messages)


def _filled(part: str | Media, files: Mapping[str, bytes]) -> str | Media:
    return with_data(part, files[part.digest]) if isinstance(part, Media) else part


def request_of(given: "Asked") -> Request:
    """Return what is asked as a request; raises BadArgument for what is none."""
    if isinstance(given, str):
        return ask(given)
    if isinstance(given, Request):
        return given
    if isinstance(given, list | tuple) and given and all(isinstance(part, str | Media) for part in given):
        return Request(messages=(message(*given),))
    raise BadArgument(
        f"a request must be a text, a list of texts and images, or a muster.Request, not {noun_of(given)}",
        suggestions=("write values into the text: json.dumps(…)",),
    )


Asked = str | Sequence[str | Media] | Request  # what may be asked: a text, texts with images, or a request


def require_agent(name: object) -> None:
    """Raise BadArgument for what cannot be the name of an agent."""
    if not isinstance(name, str):
        raise BadArgument(f"must be the name of an agent, not {name!r}", argument="agent")


def says_something(text: str) -> bool:
    """Return whether a text has a character that can be seen, in a terminal too."""
    shown = _ESCAPE.sub("", text) if any(begin in text for begin in _ESCAPE_BEGINS) else text
    return has_visible_character(shown)


def has_visible_character(text: str) -> bool:
    """Return whether a text has a character that can be seen, be it in a sequence for terminals."""
    return any(_is_seen(character) for character in text)


def _is_seen(character: str) -> bool:
    return not (character in _BLANK or category(character) in _HIDDEN)


class Stop(StrEnum):
    """Why an agent stopped writing."""

    END = "end"  # the agent was done
    SEQUENCE = "sequence"  # it met one of the stop sequences
    TOOL_USE = "tool_use"  # it wants tools used
    MAX_TOKENS = "max_tokens"  # it was cut
    REFUSED = "refused"  # it, or a filter before it, declined
    OTHER = "other"  # a reason this version does not know


class Quality(StrEnum):
    """What a reply is worth before anybody judges it."""

    GOOD = "good"
    CUT = "cut"
    REFUSED = "refused"
    EMPTY = "empty"
    UNFINISHED = "unfinished"  # nobody said that it is whole: no reason, an error, an unknown one, tools without a call


@value
class Usage:
    """Tokens as the provider counted them; `input` leaves out what the cache read or wrote."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0  # kept five minutes
    cache_write_1h: int = 0
    thinking: int = 0  # of the output

    @property
    def all_input(self) -> int:
        """All tokens that went in, cached or not."""
        return self.input + self.cache_read + self.cache_write + self.cache_write_1h


@value
class Timings:
    """Seconds: waiting for a place, for money or in a batch, until the first token, on the wire."""

    waited: float = 0.0
    first_token: float | None = None
    wire: float = 0.0

    @property
    def shown(self) -> float:
        """What a person is told: the time on the wire, or of a member of a batch how long that took."""
        return self.wire or self.waited


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What an agent that is a program left behind besides its answer."""

    session: str = ""  # what to name to go on with the same conversation
    turns: int = 0
    log: str = ""  # what it wrote to standard error; a long one without its middle
    exit: int = 0  # the code it ended with, where others than 0 are an answer too
    note: str = ""  # what was odd about it: it had to be stopped after its answer


@value
class Reply(Generic[DataT_co]):
    """What an agent answered, all text blocks joined; `data` is JSON, or of the type that was asked for."""

    text: str
    stop: Stop = Stop.END
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    cost: Microdollars = NOTHING
    lane: Lane = Lane.BILLED  # uncertain without a cost: the engine books the whole reservation
    model: str = ""
    id: str = ""  # the provider's name for it
    timings: Timings = Timings()
    attempt: int = 1
    data: DataT_co = None  # type: ignore[assignment]  # the answer as JSON that fits the schema of the request
    data_error: str = ""  # why the answer of a model is not such JSON
    trace: Trace | None = None
    content: AnswerBlocks | None = None  # where text and tool calls do not say all of it, as with thinking
    tier: str = ""  # of service that served it, where its provider says
    wire: WireAnswer | None = None  # of an exchange: what its client was given

    @property
    def quality(self) -> Quality:
        """Return whether a reply is good, cut, refused, empty, or possibly incomplete."""
        if self.stop is not Stop.END:
            if self.stop is Stop.REFUSED:
                return Quality.REFUSED
            if self.stop is Stop.MAX_TOKENS:
                return Quality.CUT
            if self.stop is Stop.OTHER or (self.stop is Stop.TOOL_USE and not self.tool_calls):
                return Quality.UNFINISHED
        return Quality.GOOD if self.tool_calls or says_something(self.text) else Quality.EMPTY

    def quality_given(self, declared: Collection[str]) -> Quality:
        """Return the quality as the end of a turn: calls of tools that nobody declared are no answer."""
        if self.quality is not Quality.GOOD or not self.tool_calls or says_something(self.text):
            return self.quality
        return Quality.GOOD if any(call.name in declared for call in self.tool_calls) else Quality.EMPTY

    def booked(self, reserved: Microdollars) -> "Reply[DataT_co]":
        """Return the reply as it is booked: with no cost that can be right, it costs its reservation, uncertain."""
        if is_cost(self.cost) and (self.cost or self.lane is not Lane.UNCERTAIN):
            return self
        return replace(self, cost=reserved, lane=Lane.UNCERTAIN)

    def finished(self, attempt: int, waited: float, wire: float) -> "Reply[DataT_co]":
        """Return the reply with what only the engine knows of it."""
        return Reply(
            text=self.text,
            stop=self.stop,
            tool_calls=self.tool_calls,
            usage=self.usage,
            cost=self.cost,
            lane=self.lane,
            model=self.model,
            id=self.id,
            timings=Timings(waited=waited, first_token=self.timings.first_token, wire=wire),
            attempt=attempt,
            data=self.data,
            data_error=self.data_error,
            trace=self.trace,
            content=self.content,
            tier=self.tier,
            wire=self.wire,
        )


def message_of(reply: "Reply[object]") -> Message:
    """Return a reply as the turn of a conversation that goes on, with the blocks that its provider wants back."""
    return Message(role=Role.ASSISTANT, text=reply.text, tool_calls=reply.tool_calls, content=reply.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What makes two calls the same: who is asked, and what, without the volatile part."""

    digest: str
    text: str  # the request as canonical JSON
    half: str = ""  # where half of a surrogate pair is, which is not Unicode and no provider takes; empty: nowhere


def identify(agent: str, request: Request) -> Identity:
    """Name a call by what it asks of whom."""
    text = canonical(request_json(request))
    name = hashlib.sha256(agent.encode() + b"\n" + text).hexdigest()
    try:
        return Identity(digest=name, text=text.decode())
    except UnicodeDecodeError:  # half a character is written as an escape, which every store takes
        value = json.loads(text.decode("utf-8", "surrogatepass"))
        return Identity(
            digest=name,
            text=json.dumps(value, sort_keys=True, separators=(",", ":")),
            half=_half(value) or "the request",
        )


def _half(value: Json, place: str = "") -> str:
    """Return the place of the first text with half of a surrogate pair; empty when there is none."""
    if isinstance(value, str):
        return place if _SURROGATE.search(value) else ""
    found: list[str] = []
    if isinstance(value, Mapping):
        found += [_half(name, f"a name in {place or 'the request'}") for name in value]
        found += [_half(part, f"{place}.{name}".removeprefix(".")) for name, part in value.items()]
    elif isinstance(value, list):
        found += [_half(part, f"{place}[{index}]") for index, part in enumerate(value)]
    return next(filter(None, found), "")


def request_json(request: Request) -> JsonObject:
    """Return the lasting part of a request as JSON, defaults left out so that new fields never change old digests."""
    found: JsonObject = {"messages": [message_json(message) for message in request.messages]}
    if request.tools:
        found["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
    if request.stop:
        found["stop"] = list(request.stop)
    if request.shared:
        found["shared"] = request.shared
    if request.environment:
        found["environment"] = dict(request.environment)
    if request.settings:
        found["settings"] = dict(request.settings)
    for name in ("system", "max_tokens", "temperature", "top_p", "seed", "cache", "schema", "context"):
        value = getattr(request, name)
        if value is not None and value != "":
            found[name] = value
    if request.wire is not None:
        found["wire"] = request.wire.told()
    return found


def message_json(message: Message) -> JsonObject:
    """Return a message as JSON."""
    found: JsonObject = {"role": str(message.role), "text": message.text}
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    if message.blocks is not None:  # the blocks themselves are kept with the reply that they come from
        found["content"] = message.blocks.digest
    elif message.parts:  # and the bytes of images and documents beside the journal
        found["content"] = [part.told() if isinstance(part, Media) else part for part in message.parts]
    return found


def require_key(key: str) -> None:
    """Refuse what cannot name a thing in a run."""
    if not isinstance(key, str):
        raise BadArgument(f"a key must be a text, not {key!r}", suggestions=('write it as text: key=f"item/{number}"',))
    if not key or len(key) > MAX_KEY or not key.isprintable():
        raise BadArgument(
            f"{key[:60]!r} is not a valid key",
            suggestions=(f"use 1 to {MAX_KEY} printable characters, such as case/17",),
        )
