"""What is heard of a conversation with Claude Code, from the frames that it writes; of each only what is needed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from muster.agents.faults import kind_of
from muster.agents.local import MAX_CALLS, MAX_NAME, MAX_RESULT, MAX_SESSION, TOO_MANY, kept_arguments
from muster.agents.payload import count_of, microdollars_of
from muster.agents.usage import Stray
from muster.domain.call import ToolCall, Usage
from muster.domain.canonical import Json, JsonObject
from muster.domain.errors import OutcomeUnknown
from muster.domain.money import Microdollars
from muster.text import typed

Frame = Mapping[str, Any]

ANSWER_TOOL = "StructuredOutput"  # no tool, but how it gives an answer as data
SYNTHETIC = "<synthetic>"  # the model of messages that it writes by itself


class ClaudeConversation:
    """Listens to frames; whoever reads them asks whether it is over."""

    def __init__(
        self,
        on_delta: Callable[[str], None] | None = None,
        *,
        keyed: bool = True,
        scrub: Callable[[str], str] = str,
    ) -> None:
        self._on_delta = on_delta
        self._scrub = scrub  # takes secrets out: any command that it runs can see it
        self._keyed = keyed  # it has a key that stays the same; a login may be renewed
        self._calls: dict[str, ToolCall] = {}
        self.result: ClaudeResult | None = None
        self.unread: str = ""  # why nothing is read after the last frame
        self.initialized = False  # it has answered the SDK; the question follows at once
        self.begun = False  # it works on the question
        self.spoke = False  # something was said
        self.answered = False  # by the API: from then on it costs money
        self.unclear = False  # the API was asked again after something else than a refusal: that may have been paid
        self.asked: str | None = None  # the tool that it wants permission for
        self.asked_arguments: Mapping[str, Json] | None = None  # what it wants to use that tool with
        self.session = ""
        self.key_refused: int | None = None  # the status with which the API refused its key
        self.model = ""
        self.id = ""  # of the last message

    @property
    def over(self) -> bool:
        """Return whether nothing more has to be heard."""
        return self.result is not None or bool(self.unread) or self.key_refused is not None

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools that were used, in order."""
        return tuple(call for call in self._calls.values() if call.name != ANSWER_TOOL)

    @property
    def tool(self) -> str | None:
        """The tool that is in use."""
        return next((call.name for call in reversed(self._calls.values()) if call.result is None), None)

    def receive(self, frame: Frame) -> None:
        """Take one frame; kinds that are not known here say nothing."""
        if isinstance(session := frame.get("session_id"), str):
            self.session = session[:MAX_SESSION]
        match frame.get("type"):
            case "control_response":
                self.initialized = True
            case "control_request":
                self._receive_request(_mapping(frame.get("request")))
            case "stream_event":
                self._receive_event(frame)
            case "assistant":
                self._receive_message(_mapping(frame.get("message")), helper=bool(frame.get("parent_tool_use_id")))
            case "user":
                self._receive_results(_mapping(frame.get("message")))
            case "system":
                self._receive_system(frame)
            case "result":
                self._receive_result(frame)

    def _receive_request(self, request: Frame) -> None:
        if request.get("subtype") == "can_use_tool" and self.asked is None:
            self.asked = _name(request.get("tool_name"))
            self.asked_arguments = kept_arguments(_mapping(request.get("input")))

    def _receive_event(self, frame: Frame) -> None:
        self.answered = True
        delta = _mapping(_mapping(frame.get("event")).get("delta"))
        text = delta.get("text")
        # What a helper of its own says is no part of the answer.
        if delta.get("type") != "text_delta" or not isinstance(text, str) or frame.get("parent_tool_use_id"):
            return
        self.spoke = True
        if self._on_delta is not None:
            self._on_delta(text)

    def _receive_message(self, message: Frame, *, helper: bool) -> None:
        self.spoke = True
        if message.get("model") != SYNTHETIC:
            self.answered = True
            if not helper:
                self.model, self.id = _name(message.get("model", "")), _name(message.get("id", ""))
        for block in _blocks(message):
            if block.get("type") == "tool_use":
                self._receive_use(block)

    def _receive_use(self, block: Frame) -> None:
        id_ = _name(block.get("id"))
        if id_ not in self._calls and len(self._calls) >= MAX_CALLS:
            self.unread = TOO_MANY
            return
        arguments = kept_arguments(_mapping(block.get("input")))
        self._calls[id_] = ToolCall(id=id_, name=_name(block.get("name")), arguments=arguments)

    def _receive_results(self, message: Frame) -> None:
        for block in _blocks(message):
            call = self._calls.get(_name(block.get("tool_use_id")))
            if block.get("type") == "tool_result" and call is not None:
                text = self._scrub(_text(block.get("content")))[:MAX_RESULT]
                self._calls[call.id] = replace(call, result=text, failed=block.get("is_error") is True)

    def _receive_system(self, frame: Frame) -> None:
        self.begun = self.begun or frame.get("subtype") == "init"
        if frame.get("subtype") != "api_retry":
            return
        status = frame.get("error_status")
        self.unclear = self.unclear or not _is_refusal(status)
        # A key that is refused is refused the next time too, and it would try for minutes.
        if self._keyed and status in (401, 403):
            self.key_refused = int(status)

    def _receive_result(self, frame: Frame) -> None:
        found, before = read_result(frame), self.result
        self.result = found if found is None or before is None else found.after(before)
        if self.result is None:
            self.unread = "its result is not of the shape that this version knows"


def _is_refusal(status: Json) -> bool:
    """Return whether a status says that the API did not answer, and charged nothing."""
    return type(status) is int and 400 <= status < 600 and not issubclass(kind_of(status), OutcomeUnknown)


def _name(value: Json) -> str:
    return str(value)[:MAX_NAME]


def _mapping(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _blocks(message: Frame) -> Iterator[JsonObject]:
    content = message.get("content")
    if isinstance(content, list):
        yield from (block for block in content if isinstance(block, dict))


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(str(block.get("text", "")) for block in content if isinstance(block, dict))


class ClaudeCacheWrites(typed.Struct, frozen=True):
    """Tokens written to the cache, by how long they are kept."""

    ephemeral_1h_input_tokens: Any = None


class ClaudeUsage(typed.Struct, frozen=True):
    """Tokens of this call, as the API spells them."""

    input_tokens: Any = None
    output_tokens: Any = None
    cache_creation_input_tokens: Any = None
    cache_read_input_tokens: Any = None
    cache_creation: ClaudeCacheWrites | Stray = None


class ClaudeModelUsage(typed.Struct, frozen=True, rename="camel"):
    """What one model had of the cost."""

    cost_usd: Any = typed.field(default=None, name="costUSD")


class ClaudeResult(typed.Struct, frozen=True):
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
    model_usage_since_last_result: dict[str, ClaudeModelUsage] | None = None  # of this call alone
    usage: ClaudeUsage | Stray = None
    earlier: Usage = Usage()  # tokens of results before this one

    def after(self, before: "ClaudeResult") -> "ClaudeResult":
        """Return this result as the end of a conversation that went on after another: its answer is both of them."""
        shares = [one.model_usage_since_last_result for one in (before, self)]
        return typed.replace(
            self,
            result="\n\n".join(text for text in (before.result, self.result) if text),
            structured_output=before.structured_output if self.structured_output is None else self.structured_output,
            num_turns=before.num_turns + self.num_turns,
            model_usage_since_last_result=_joined(shares),
            earlier=before.tokens,
        )

    @property
    def why(self) -> str:
        """Return what went wrong, in its own words."""
        told = "; ".join(error for error in self.errors or () if isinstance(error, str))
        return (told or self.result or "").strip()

    def cost(self, *, resumed: bool) -> Microdollars | None:
        """Return what this call cost by its own account, rounded up; None when it does not say."""
        shares = self.model_usage_since_last_result
        if resumed and shares is not None:
            return microdollars_of(0, *(share.cost_usd for share in shares.values()))
        return microdollars_of(self.total_cost_usd)

    @property
    def tokens(self) -> Usage:
        """Return the tokens of this call; a count that cannot be right is 0."""
        counts = self.usage if isinstance(self.usage, ClaudeUsage) else ClaudeUsage()
        kept = counts.cache_creation if isinstance(counts.cache_creation, ClaudeCacheWrites) else ClaudeCacheWrites()
        hour = count_of(kept.ephemeral_1h_input_tokens) or 0
        return Usage(
            input=self.earlier.input + (count_of(counts.input_tokens) or 0),
            output=self.earlier.output + (count_of(counts.output_tokens) or 0),
            cache_read=self.earlier.cache_read + (count_of(counts.cache_read_input_tokens) or 0),
            cache_write=self.earlier.cache_write + max(0, (count_of(counts.cache_creation_input_tokens) or 0) - hour),
            cache_write_1h=self.earlier.cache_write_1h + hour,
        )


def _joined(shares: Sequence[Mapping[str, ClaudeModelUsage] | None]) -> dict[str, ClaudeModelUsage] | None:
    """Return the shares of models in several results; None when one of the results does not tell them."""
    found = {f"{number}/{model}": share for number, told in enumerate(shares) for model, share in (told or {}).items()}
    return None if any(told is None for told in shares) else found


def read_result(frame: Json) -> ClaudeResult | None:
    """Read a frame as a result; None when it is not of the shape of one."""
    try:
        return typed.convert(frame, ClaudeResult)
    except typed.ValidationError:
        return None
