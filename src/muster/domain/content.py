"""What an answer is made of, as its provider gave it: blocks that must come back unchanged when the talk goes on."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Protocol

from muster.domain.canonical import JsonObject, canonical


class BlockKind(StrEnum):
    """What a block of an answer is."""

    TEXT = "text"
    TOOL_CALL = "tool_call"
    THINKING = "thinking"
    REDACTED = "redacted"  # thinking that only the provider can read
    OTHER = "other"  # kept as it came


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class AnswerBlock:
    """One block: what it is, the thinking that can be read in it, and itself as it came."""

    kind: BlockKind
    raw: JsonObject
    thinking: str = ""


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class AnswerBlocks:
    """The blocks of an answer, and where they belong: a provider takes back only what it gave, at the same place."""

    provider: str  # and form of its API, where it has several: "anthropic", "openai/responses"
    model: str  # that was asked
    blocks: tuple[AnswerBlock, ...]
    prefix: str = ""  # digest of what stood before the answer

    @property
    def digest(self) -> str:
        """Return what stands for them in the identity of a request."""
        return hashlib.sha256(canonical([block.raw for block in self.blocks])).hexdigest()

    @property
    def thinking(self) -> str:
        """Return the thinking that can be read."""
        return "\n\n".join(block.thinking for block in self.blocks if block.thinking)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsentBlocks:
    """Thinking of earlier answers that is not sent along, since it belongs to another conversation or model."""

    agent: str
    reason: str
    event: ClassVar[str] = "agent.blocks_unsent"

    def told(self) -> JsonObject:
        """Return what its event tells."""
        return {"agent": self.agent, "reason": self.reason}

    def __str__(self) -> str:
        return f"{self.agent} does not get the thinking of earlier answers back: {self.reason}"


class AgentNote(Protocol):
    """Something about an agent that a person should know; it is told once in a run."""

    event: ClassVar[str]

    @property
    def agent(self) -> str:
        """The agent that it is about."""

    def told(self) -> JsonObject:
        """Return what its event tells."""
