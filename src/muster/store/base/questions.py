"""The questions of a store: calls to people, opened without an attempt or money, and answered by a signal."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.entry import Entry, NewSignal, SentAnswer, Signal
from muster.domain.ids import RunId


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOpening:
    """A call that a person is about to be asked."""

    run: RunId
    epoch: int
    key: str
    digest: str
    agent: str
    request: str  # canonical JSON
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTaking:
    """A driver takes the answer to a question, which becomes the reply of the call."""

    run: RunId
    epoch: int
    key: str
    address: str
    at: float
    failure: Mapping[str, Json] | None = None  # with which the call fails when there is no answer; None: it stays open


class QuestionTable(Protocol):
    """The questions of this store: written by the driver of a run, read and answered by the use cases.

    A driver whose epoch is not the stored one gets LeaseLost.
    """

    def ask(self, opening: QuestionOpening) -> Awaitable[float]:
        """Open a call and tell it, or one that failed again; return since when it is open. Idempotent."""

    def settle(self, taking: AnswerTaking) -> Awaitable[Reply | None]:
        """Take the answer and make it the reply, both or neither; None when there is no answer. Idempotent."""

    async def unanswered(self, run: RunId) -> Sequence[Entry]:
        """Return the open questions of a run and of those below it that nobody has answered, in order."""

    async def sent(self, run: RunId, client_id: str) -> SentAnswer | None:
        """Return the answer with a client id to a question of a run, its lineage or those below them, taken or not."""

    def answer(self, run: RunId, key: str, answer: NewSignal) -> Awaitable[Signal]:
        """Store the answer to an open question; raises Conflict for one that is not open, or is answered.

        Sending the same client id again changes nothing.
        """
