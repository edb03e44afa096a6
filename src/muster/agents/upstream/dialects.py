"""What foreign programs may ask for: the addresses of each API, and how a body there says what it may cost.

Everything that is not listed here is refused: what cannot be reserved is not passed on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from muster.domain.provider import ANTHROPIC, OPENAI


class AnswerForm(StrEnum):
    """The form in which a request asks and is answered."""

    MESSAGES = "messages"
    CHAT = "chat"
    RESPONSES = "responses"
    EMBEDDINGS = "embeddings"
    FREE = "free"  # nothing is written in answer, and nothing is charged


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamDialect:
    """One address of an API."""

    form: AnswerForm
    method: str = "POST"
    limits: tuple[str, ...] = ()  # fields that bound an answer
    hidden: tuple[str, ...] = ()  # fields that bring input which is not in the body
    client_tools: re.Pattern[str] | None = None  # types of tools that the client runs

    def runs_at_client(self, tool: str) -> bool:
        """Return whether a tool of a type is run by the client; of what is not known that is not taken for granted."""
        return self.client_tools is None or self.client_tools.fullmatch(tool) is not None


_ANTHROPIC_TOOLS = re.compile(r"custom|bash_\d+|computer_\d+|memory_\d+|text_editor_\d+|tool_search_tool_\w+")
_MESSAGES = UpstreamDialect(
    form=AnswerForm.MESSAGES,
    limits=("max_tokens",),
    hidden=("container", "mcp_servers"),
    client_tools=_ANTHROPIC_TOOLS,
)
_CHAT = UpstreamDialect(
    form=AnswerForm.CHAT,
    limits=("max_tokens", "max_completion_tokens"),
    client_tools=re.compile(r"function|custom"),
)
_RESPONSES = UpstreamDialect(
    form=AnswerForm.RESPONSES,
    limits=("max_output_tokens",),
    hidden=("previous_response_id", "conversation", "prompt"),
    client_tools=re.compile(r"function|custom|local_shell|shell|apply_patch|namespace"),
)
_FREE = UpstreamDialect(form=AnswerForm.FREE)
_LIST = UpstreamDialect(form=AnswerForm.FREE, method="GET")
_DIALECTS: Mapping[str, Mapping[str, UpstreamDialect]] = {
    ANTHROPIC: {
        "/v1/messages": _MESSAGES,
        "/v1/messages/count_tokens": _FREE,
        "/v1/models": _LIST,
    },
    OPENAI: {
        "/v1/chat/completions": _CHAT,
        "/v1/responses": _RESPONSES,
        "/v1/responses/input_tokens": _FREE,
        "/v1/embeddings": UpstreamDialect(form=AnswerForm.EMBEDDINGS),
        "/v1/models": _LIST,
    },
}
_MODEL = re.compile(r"/v1/models/[A-Za-z0-9._:@/-]{1,200}")


def dialect_of(api: str, method: str, path: str) -> UpstreamDialect | None:
    """Return what is asked for at an address; None where nothing is, or not with this method."""
    known = _DIALECTS[api].get(path)
    if known is None and _MODEL.fullmatch(path) and ".." not in path:
        known = _LIST
    return known if known is not None and known.method == method else None
