"""Entries of the journal: calls, steps and children with their outcomes, and the attempts of a call.

What is made anew for every call is a tuple: a frozen dataclass takes three times as long to make.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from muster.domain.budget import Level
from muster.domain.call import Reply
from muster.domain.canonical import Json, JsonObject
from muster.domain.ids import RunId
from muster.domain.money import NOTHING, Lane, Microdollars

SHOWN = 5  # keys, to a person
STABLE_KEYS = "a key must not contain a random number, the time, or a place in a set"
ANSWERS = "answer/"  # before the key: channels on which people answer


class EntryKind(StrEnum):
    """What a journal entry remembers."""

    CALL = "call"
    STEP = "step"  # a decision or an effect other than a call
    EMIT = "emit"  # an event that is told once
    CHILD = "child"  # a child run
    SIGNAL = "signal"  # what was received from outside


class EntryState(StrEnum):
    """How a journal entry stands."""

    OPEN = "open"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One remembered call, step, event or child run; a call has a reply, the others a value."""

    run: RunId
    key: str
    kind: EntryKind
    state: EntryState
    digest: str
    attempts: int = 0
    agent: str | None = None
    request: Any = None
    reply: Reply | None = None
    value: Any = None
    error: Mapping[str, Json] | None = None
    reused_from: RunId | None = None
    opened_at: float = 0.0
    settled_at: float | None = None


class AttemptState(StrEnum):
    """How one attempt of a call ended."""

    STARTED = "started"  # money is reserved, the outcome is open
    PARKED = "parked"  # the same, as a member of a batch
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # the provider refused or broke; nothing was charged
    UNSENT = "unsent"  # it was given up before anything left
    CANCELED = "canceled"  # its batch was canceled before it was processed; nothing was charged
    EXPIRED = "expired"  # its batch ran out of time before it was processed; nothing was charged
    UNCERTAIN = "uncertain"  # it may have been charged; booked at its reservation


class AttemptId(NamedTuple):
    """Names one attempt of one call, and the driver's epoch that made it."""

    run: RunId
    key: str
    n: int
    epoch: int


class Opening(NamedTuple):
    """An attempt about to start: what it asks, and the most it can cost at every level."""

    attempt: AttemptId
    digest: str
    agent: str
    request: str  # canonical JSON
    most: Microdollars
    levels: tuple[Level, ...]
    at: float
    first: bool  # the call is not in the journal yet
    reopens: bool = False  # the call had failed before


class Replied(NamedTuple):
    """The attempt brought a reply."""

    reply: Reply


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """The attempt brought an error; the call is tried again, given up, or left open for a later driver."""

    error: Mapping[str, Json]
    uncertain: bool
    again_in: float | None = None
    gives_up: bool = False
    ended_as: AttemptState = AttemptState.FAILED  # when it is not uncertain
    cost: Microdollars = NOTHING  # the same: what the agent says that it cost
    lane: Lane = Lane.BILLED


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsent:
    """The attempt was given up before anything left."""


Outcome = Replied | Failed | Unsent


class Settlement(NamedTuple):
    """An attempt that ended: its outcome, and what it had reserved where."""

    attempt: AttemptId
    outcome: Outcome
    reserved: Microdollars
    levels: tuple[Level, ...]
    at: float
    streamed: bool = False  # text was shown while it was written
    live_cost: Microdollars = NOTHING  # in a batch or the tier flex: what a live call in the standard tier would cost
    position: int | None = None  # of the call in the journal; where it is known it need not be looked for


class Settled(NamedTuple):
    """What became of a settlement."""

    cost: Microdollars
    overdraft: bool = False  # it cost more than was reserved
    late: bool = False  # the attempt had been settled before, as uncertain
    kept: bool = True  # the reply became the call's reply


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedEntries:
    """What a resumed run had stored and did not ask for, while something of its kind was done anew."""

    keys: tuple[str, ...]  # the first of them
    total: int
    repeated: int  # how many of them were done once more under another key: the same request, the same child, a step
    event: ClassVar = "journal.unused"

    def told(self) -> JsonObject:
        """Return what its event tells."""
        return {"keys": list(self.keys), "total": self.total, "repeated": self.repeated}

    def __str__(self) -> str:
        results = "1 stored result was" if self.total == 1 else f"{self.total} stored results were"
        named = ", ".join(repr(key) for key in self.keys[:SHOWN]) + (", …" if self.total > SHOWN else "")
        again = f", and {self.repeated} done again under other keys; {STABLE_KEYS}" if self.repeated else ""
        return f"{results} not used when the run was resumed: {named}{again}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One fact; numbers of one run start at 1 and have no gaps."""

    run: RunId
    seq: int
    kind: str  # "run.started", "call.done", … or what a workload emits
    at: float
    data: Mapping[str, Json]


class Signal(NamedTuple):
    """One durable message from outside: to a run and those it is resumed as, or to a slot."""

    channel: str
    seq: int  # from one, in its channel
    payload: Json
    sender: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSignal:
    """A signal about to be sent; a second one with the same client id is the first one."""

    address: str  # a lineage, "lineage:ID", or "slot:NAME"
    channel: str
    payload: Json
    client_id: str
    at: float
    sender: str = ""
    number: int | None = None  # which it must be in its channel; another one is a conflict


@dataclass(frozen=True, slots=True, kw_only=True)
class SentAnswer:
    """An answer of a person that is stored, and the call that it answers."""

    run: RunId
    key: str
    signal: Signal


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedSignal:
    """What a run waits for: the next signal of a channel, at most until a time."""

    address: str
    channel: str
    until: float | None = None


def answer_channel(key: str) -> str:
    """Return the channel of the answer to a call that a person is asked."""
    return f"{ANSWERS}{key}"


def question_command(run: RunId, key: str) -> str:
    """Return the command that shows a call in full."""
    return f"muster runs show {run} --call {shlex.quote(key)}"


def slot_address(slot: str) -> str:
    """Return the address of a slot, for messages that wait until it works again."""
    return f"slot:{slot}"
