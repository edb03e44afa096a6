"""A conversation as it really went: what was asked and answered in the calls of one case, turn by turn."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.domain.call import Reply
from muster.domain.entry import Entry

FAILURE = "failure"


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One use of a tool."""

    name: str
    arguments: str  # as JSON text
    result: str | None = None  # where the agent used it by itself
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Something that was said; `role` is "failure" for a call that brought no answer."""

    role: str
    text: str
    uses: tuple[Use, ...] = ()


def turns(entries: Sequence[Entry]) -> tuple[Turn, ...]:
    """Tell the calls of one case as one conversation: every request repeats what was said before it."""
    said: list[Turn] = []
    for entry in entries:
        request = entry.request if isinstance(entry.request, Mapping) else {}
        asked = [_asked(message) for message in request.get("messages", ())]
        if not said and request.get("system"):
            said.append(Turn(role="system", text=str(request["system"])))
        opening = sum(turn.role == "system" for turn in said[:1])
        said += asked[max(0, len(said) - opening) :]
        said += _outcome(entry)
    return tuple(said)


def last_answer(entries: Sequence[Entry]) -> str:
    """Give the last thing that the agent said."""
    replies = (entry.reply.text for entry in reversed(entries) if entry.reply is not None)
    return next(replies, "")


def _outcome(entry: Entry) -> Iterator[Turn]:
    if entry.reply is not None:
        yield _answered(entry.reply)
    elif entry.error is not None:
        yield Turn(role=FAILURE, text=str(entry.error.get("message", "the call failed")))


def _answered(reply: Reply) -> Turn:
    uses = tuple(
        Use(name=call.name, arguments=_spelled(call.arguments), result=call.result, failed=call.failed)
        for call in reply.tool_calls
    )
    return Turn(role="assistant", text=reply.text, uses=uses)


def _asked(message: Mapping[str, Any]) -> Turn:
    uses = tuple(
        Use(name=str(call.get("name", "")), arguments=_spelled(call.get("arguments")))
        for call in message.get("tool_calls", ())
    )
    return Turn(role=str(message.get("role", "")), text=str(message.get("text", "")), uses=uses)


def _spelled(arguments: Any) -> str:
    return json.dumps(arguments, ensure_ascii=False, indent=2)
