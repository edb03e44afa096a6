"""The three ways to talk with a program: what goes in, and how what comes out is read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from muster.agents.program import chat, execution, plain
from muster.agents.program.answer import Answer
from muster.agents.program.envelope import context_of
from muster.agents.program.envelope import encode as encode_context
from muster.agents.program.execution import last_words
from muster.domain.call import Request
from muster.domain.money import Microdollars

Mode = Literal["exec", "plain", "chat"]
LastWords = tuple[str, Microdollars | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request in the words of one mode; reading is pure, and raises BadOutput."""

    input: bytes
    read: Callable[[bytes], Answer]
    last_words: Callable[[bytes], LastWords]  # of a program that failed: its own words for it, and what it cost


def pose(mode: Mode, request: Request, agent: str, seconds: float) -> Question:
    """Put a request in the words of a mode; raises InvalidRequest when there are none for it."""
    match mode:
        case "exec":
            context = context_of(request, agent, seconds)
            read = partial(execution.decode, context=context)
            return Question(input=encode_context(context, agent), read=read, last_words=last_words)
        case "chat":
            return Question(input=chat.encode(request, agent), read=chat.decode, last_words=last_words)
        case "plain":
            return Question(input=plain.encode(request), read=plain.decode, last_words=_silent)


def _silent(_: bytes) -> LastWords:
    return "", None
