"""What is asked and what is said, whatever the protocol; and the seam between the two."""

from dataclasses import dataclass
from typing import Protocol

from muster.domain.call import Message, Role, Usage
from muster.domain.canonical import Json
from muster.domain.script import Line


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A place in the prompt up to which it may be kept in the provider's cache."""

    prefix: bytes  # names everything before the mark
    tokens: int  # of that prefix
    hour: bool = False  # kept an hour, not five minutes


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
    model: str
    line: Line
    usage: Usage
    stop_sequence: str | None = None
    stream_usage: bool = False
    batch: bool = False  # said in a batch


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

    def read(self, body: dict[str, Json]) -> Ask:
        """Understand a request, or raise Refused as the provider would."""

    def whole(self, said: SimAnswer) -> bytes:
        """Spell an answer."""

    def events(self, said: SimAnswer) -> list[bytes]:
        """Spell an answer as the events of a stream."""

    def error(self, refused: SimRefusal, request_id: str) -> bytes:
        """Spell an error."""


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


def text_of(block: dict[str, Json], where: str) -> str:
    """Return the text of a block; blocks that hold none (pictures, tools asked for) count as empty."""
    if block["type"] == "tool_result":
        return text_in(block.get("content") or "", f"{where}.content")
    if block["type"] != "text":
        return ""
    if not isinstance(block.get("text"), str):
        raise SimRefusal(400, f"{where}.text: Input should be a valid string", param=where)
    return str(block["text"])
