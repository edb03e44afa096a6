"""What is asked and what is said, whatever the protocol; and the seam between the two."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from muster.domain.call import Message, Role, Usage
from muster.domain.canonical import Json
from muster.domain.script import Line, usage_of

DEFAULT_TIER, FLEX, PRIORITY, FAST = "default", "flex", "priority", "fast"
TIERS = (DEFAULT_TIER, FLEX, PRIORITY, FAST)
GLOBAL, US, NO_GEO = "global", "us", "not_available"
GEOS = (GLOBAL, US)  # where inference may take place (Anthropic)
PROJECT_TIERS = (DEFAULT_TIER, FLEX, PRIORITY)  # of requests that name none


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place in the prompt up to which it may be kept in the provider's cache."""

    prefix: bytes  # names everything before the mark
    tokens: int  # of that prefix
    hour: bool = False  # kept an hour, not five minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingPlan:
    """How a request wants its model to think, and what became of the thinking that it brought back."""

    effort: str | None = None  # None: the model does not think
    most: int | None = None  # tokens, where the request has a budget for thinking alone
    shown: bool = False  # a summary is part of the answer
    prefix: bytes = b""  # names all that stands before the answer
    previous: bytes = b""  # names the thinking before it
    kept: int = 0  # tokens of the thinking that came back
    returned: int = 0
    missing: int = 0  # answers of this turn that used tools and came back without their thinking
    mismatched: int = 0  # thinking that was made somewhere else
    refusal: "SimRefusal | None" = None  # why it is not answered


@dataclass(frozen=True, slots=True, kw_only=True)
class Thought:
    """What a model thought before an answer."""

    tokens: int
    text: str  # the summary; empty where it is not shown
    seal: str
    redacted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A request that makes sense."""

    model: str
    messages: tuple[Message, ...]
    max_tokens: int
    system: str = ""
    stop: tuple[str, ...] = ()
    stream: bool = False
    stream_usage: bool = False  # the stream ends with its usage (OpenAI)
    marks: tuple[Mark, ...] = ()
    media: int = 0  # tokens of images and documents
    context: int | None = None  # tokens that its model reads; more are refused by a server that thinks
    tier: str | None = None  # the tier of service that it names
    tiers: tuple[str, ...] = TIERS  # that its provider has
    names_tier: bool = False  # so the answer names it too (OpenAI)
    fast: bool = False  # in the fast mode (Anthropic)
    geo: str | None = None  # where inference is to take place; None leaves it to the workspace
    has_geo: bool = False  # inference of its model can be kept in a place, which costs more
    body: Mapping[str, Json] = field(default_factory=dict)  # of requests whose answer repeats parts of them
    plan: ThinkingPlan | None = None  # None: the server does not think

    @property
    def spoken(self) -> tuple[Message, ...]:
        """The conversation without what a client adds for the model after the last turn; rules look at it."""
        last = len(self.messages)
        while last > 1 and self.messages[last - 1].role is Role.SYSTEM:
            last -= 1
        return self.messages[:last]

    @property
    def text(self) -> str:
        """The last text that was sent, which faults look at."""
        return next((message.text for message in reversed(self.spoken) if message.role is not Role.ASSISTANT), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class SimAnswer:
    """An answer, with all that a protocol needs to spell it."""

    number: int  # of the request at this server
    digest: str  # of the request
    ask: Ask
    line: Line
    usage: Usage
    stop_sequence: str | None = None
    batch: bool = False  # said in a batch
    thought: Thought | None = None
    tier: str = DEFAULT_TIER  # that served it
    geo: str = NO_GEO  # where inference took place


class SimRefusal(Exception):
    """A request that gets an error; each protocol has its own envelope for it."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after


class WireProtocol(Protocol):
    """A provider's protocol: pure functions, shared by every request."""

    request_id_header: str
    wants_key: bool

    def read(self, body: dict[str, Json]) -> Ask:
        """Understand a request, or raise SimRefusal as the provider would."""

    def plan(self, body: dict[str, Json], *, batch: bool) -> ThinkingPlan:
        """Decide how a request that was understood is thought about; raises SimRefusal for what its model refuses."""

    def whole(self, said: SimAnswer) -> bytes:
        """Spell an answer."""

    def events(self, said: SimAnswer) -> list[bytes]:
        """Spell an answer as the events of a stream."""

    def error(self, refused: SimRefusal, request_id: str) -> bytes:
        """Spell an error."""


class CountingProtocol(WireProtocol, Protocol):
    """A protocol with a free endpoint that counts what goes in."""

    def count(self, body: dict[str, Json]) -> bytes:
        """Spell how many tokens go in with a request."""


def sent_tokens(ask: Ask) -> int:
    """Count the tokens that go in."""
    kept = 0 if ask.plan is None else ask.plan.kept
    return usage_of(ask.messages, ask.system, Line()).input + ask.media + kept


def reasoning_tokens(said: SimAnswer) -> int:
    """Count the thinking before an answer."""
    return 0 if said.thought is None else said.thought.tokens


def pieces(text: str) -> list[str]:
    """Cut a text for streaming: small pieces, but never more than forty."""
    size = max(12, -(-len(text) // 40))
    return [text[start : start + size] for start in range(0, len(text), size)]


def blocks_of(content: Json, where: str) -> list[dict[str, Json]]:
    """Return content as blocks, or refuse it with its place."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list):
        raise SimRefusal(400, f"{where}: Input should be a valid string or list", param=where)
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise SimRefusal(400, f"{where}.{index}.type: Field required", param=where)
    return content


def text_in(content: Json, where: str) -> str:
    """Return the text of a whole content."""
    if isinstance(content, str):
        return content
    return "".join(text_of(block, where) for block in blocks_of(content, where))


def text_of(block: Mapping[str, Json], where: str) -> str:
    """Return the text of a block; blocks that hold none (pictures, tools asked for) count as empty."""
    if block["type"] == "tool_result":
        return text_in(block.get("content") or "", f"{where}.content")
    if block["type"] != "text":
        return ""
    if not isinstance(block.get("text"), str):
        raise SimRefusal(400, f"{where}.text: Input should be a valid string", param=where)
    return str(block["text"])
