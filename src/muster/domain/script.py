"""Scripted answers: rules that match a conversation, or an echo; the same conversation always gets the same answer."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from muster.domain.call import Message, Role, Stop, ToolCall, Usage

BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One scripted answer; `{text}` in it stands for the last text that was sent."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    stop: Stop = Stop.END
    thinking: int | None = None  # tokens of thinking before it, at a server that thinks; None: by the request
    redacted: bool = False  # that thinking is not to be read


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Gives its line when everything it names matches; what it leaves out matches anything."""

    line: Line
    model: str = "*"  # a glob
    text: str = ""  # a regular expression, searched in the last text that was sent
    turn: int | None = None  # 1 for the first answer in the conversation

    def matches(self, model: str, text: str, turn: int) -> bool:
        """Return whether this rule speaks for such a conversation."""
        return (
            fnmatchcase(model, self.model)
            and self.turn in (None, turn)
            and (not self.text or re.search(self.text, text) is not None)
        )


ECHO = Line(text="{text}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """Rules in order; the first that matches speaks, else `otherwise`."""

    rules: tuple[Rule, ...] = ()
    otherwise: Line = ECHO
    thinking: bool | None = None  # whether the server of this script thinks; None: as it was started

    def answer(self, model: str, messages: Sequence[Message], max_tokens: int) -> Line:
        """Return the answer to a conversation, cut to `max_tokens`."""
        text = next((message.text for message in reversed(messages) if message.role is not Role.ASSISTANT), "")
        turn = 1 + sum(message.role is Role.ASSISTANT for message in messages)
        line = next((rule.line for rule in self.rules if rule.matches(model, text, turn)), self.otherwise)
        return cut(replace(line, text=line.text.replace("{text}", text)), max_tokens)


def count_tokens(text: str) -> int:
    """Count tokens the way the rehearsal does: four bytes each, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


def usage_of(messages: Sequence[Message], system: str, line: Line) -> Usage:
    """Count what went in and out, never more tokens than bytes were sent."""
    sent = count_tokens(system) + sum(count_tokens(message.text) for message in messages)
    tools = sum(count_tokens(call.name) + count_tokens(str(dict(call.arguments))) for call in line.tool_calls)
    return Usage(input=max(1, sent), output=max(1, count_tokens(line.text) + tools))


def cut(line: Line, max_tokens: int) -> Line:
    """Return an answer cut to so many tokens."""
    if count_tokens(line.text) <= max_tokens:
        return line
    kept = line.text.encode("utf-8", "surrogatepass")[: max_tokens * BYTES_PER_TOKEN].decode("utf-8", "ignore")
    return replace(line, text=kept, tool_calls=(), stop=Stop.MAX_TOKENS)
