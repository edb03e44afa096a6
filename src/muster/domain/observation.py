"""What the engine tells an observer while it works: runs, calls, attempts and batches that begin and end.

This is telemetry, not the truth: an observation may be made before its fact is durable, and a process that dies makes
none. What happened stands in the journal, the ledger and the events.
"""

from collections.abc import Callable
from typing import NamedTuple

from muster.domain.agent import Profile
from muster.domain.batch import Batch
from muster.domain.call import Reply, Request
from muster.domain.entry import AttemptId, Outcome
from muster.domain.ids import BatchId, RunId
from muster.domain.run import Run


class RunBegan(NamedTuple):
    """This process has claimed a run and drives it."""

    run: Run  # as it was before the claim
    epoch: int  # of the claim


class RunEnded(NamedTuple):
    """This process drives a run no longer: it is over, waits without a driver, or was interrupted."""

    run: Run  # as it now is; with an error as it was when it began
    error: BaseException | None = None  # why it could not be let go of: another driver has it, or the store failed


class CallBegan(NamedTuple):
    """A workload asks an agent; a second call under the same key that joins the first is not told."""

    run: RunId
    key: str
    profile: Profile  # of the agent
    request: Request


class CallEnded(NamedTuple):
    """A call is over: with a reply, which may come from the journal, with an error, or with neither: canceled."""

    run: RunId
    key: str
    outcome: Reply | Exception | None


class AttemptBegan(NamedTuple):
    """The money of an attempt is reserved; it is about to be sent, or stands in a batch."""

    attempt: AttemptId
    waited: float = 0.0  # seconds for its place and its money, or until its batch was made
    batch: BatchId | None = None


class AttemptEnded(NamedTuple):
    """An attempt has its outcome; None when this process no longer waits for its batch, or another one settled it.

    Of a call that was refused before it got into a batch this is told without a beginning.
    """

    attempt: AttemptId
    outcome: Outcome | None


class BatchBegan(NamedTuple):
    """This process begins to follow a batch: one that it has just made, or one that it found in the store."""

    batch: BatchId


class BatchEnded(NamedTuple):
    """This process follows a batch no longer: it is over, or an error or the end of the process came before that."""

    batch: BatchId
    found: Batch | None  # as it ended; None when it did not
    error: Exception | None = None


Observation = RunBegan | RunEnded | CallBegan | CallEnded | AttemptBegan | AttemptEnded | BatchBegan | BatchEnded

# Called in the event loop, between two steps of a run: it must be quick, wait for nothing and raise nothing.
Observer = Callable[[Observation], None]
