"""The error tree, split by what the caller does next.

MusterError
├── TryLater                the same request may succeed later
│   ├── RateLimited         too fast or too many (429)
│   ├── Overloaded          the provider is full (503, 529)
│   ├── ProviderFault       the provider broke and says so (other 5xx)
│   ├── Unreachable         the request never left: refused, no such host, no TLS
│   ├── OutcomeUnknown      it left and no whole answer came: cut, stalled, garbled
│   │   ├── OutOfTime       the same, because its time was over
│   │   └── Undecodable     it came in an encoding that cannot be decoded; not tried again
│   └── Expired             its batch ran out of time before it was processed
├── CallFailed              give up this call; the run may go on
│   ├── InvalidRequest      the provider refuses the request (400, 413, 422)
│   ├── UnknownModel        the provider has no such model (404)
│   ├── Untrusted           the certificate of the server is not valid; nothing was sent
│   ├── RetriesExhausted    every attempt failed; holds the last error
│   ├── BatchCanceled       its batch was canceled before it was processed
│   ├── AgentFailed         a program or CLI agent did not do it; holds what it wrote to standard error
│   │   ├── NotStarted      the program could not be started
│   │   ├── BadExit         it exited with an error, or was killed
│   │   ├── BadOutput       it answered, but not in the shape that was asked for
│   │   ├── TimedOut        its time was over
│   │   ├── Stalled         it said nothing for too long
│   │   └── PermissionAsked it wanted a person's permission
│   └── RecordedFailure     a failure read back from the journal
├── StopRun                 the whole run must stop
│   ├── AuthRefused         the key is missing, wrong or not allowed (401, 403)
│   ├── BudgetExhausted     what is spent plus the most this call can cost is over the cap
│   ├── RunCanceled         somebody canceled it
│   ├── RunTimedOut         its time is over
│   ├── Interrupted         this process was told to stop; the run can be resumed
│   ├── LeftWaiting         its calls wait in batches; any process can go on with it later
│   │   ├── AwaitsSignal    it waits for signals only; whoever drives submitted runs goes on with it
│   │   ├── BatchOverdue    a batch was waited for long enough
│   │   ├── BatchOpen       nobody can say yet whether a batch was created
│   │   └── BatchLost       a batch or its results cannot be read from the provider
│   ├── LeaseLost           another driver has taken the run
│   └── StoreFailed         the store cannot be read or written
├── FixSpec                 the person must change something first
│   ├── BadArgument         a value given on the command line or to a function
│   ├── BadFile             a file that does not parse or does not fit, with its place
│   ├── BadConfiguration    keys, agents, prices, workloads
│   ├── KeyReused           one key was used for two different requests
│   └── ReplayMiss          a replay asked for something that was never recorded
├── ChildFailed             a child run did not complete; its parent may go on
├── BattleFailed            a side of a battle said nothing; it can be resumed
├── CouncilFailed           a council has no result: too few of its members answered; it can be resumed
├── StepFailed              a step of a chain failed, and all its tries with it; the chain can be resumed from it
├── RunFailed               a run did not complete; holds why
├── Overdraft               a run completed and cost more than its budget; what it answered is kept
├── KeyTaken                the journal has an entry under this key already
├── Conflict                somebody else is at it, or it is not in a state for this
│   └── MergeConflict       two branches changed the same lines; holds the files
├── AccessDenied            the user may not do this
├── LimitReached            a limit of the service is reached; later it may be possible
├── QueueFailed             the server of the queue cannot be reached; the store has everything that it had
└── NotFound                no such run, key, file
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, ClassVar


class Paid(StrEnum):
    """How far a failed exchange may have cost money."""

    NO = "no"  # the provider did not charge: it refused, or it never saw the request
    YES = "yes"  # it failed, and said what that cost
    UNKNOWN = "unknown"  # it may have charged: the answer did not arrive whole


CHECK_NETWORK = "check the address (base_url or url); muster doctor shows proxies and certificates"  # a suggestion


class MusterError(Exception):
    """Something went wrong; the class says what to do about it, the message says what and where."""

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 4

    def __init__(self, message: str, *, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.suggestions = suggestions

    def record(self) -> dict[str, Any]:
        """Return the error as JSON, for the journal and the envelope."""
        return {"code": self.code, "message": self.message, "suggestions": [str(way) for way in self.suggestions]}


class WireError(MusterError):
    """A failed exchange with an agent; the root of what agents raise."""

    def __init__(
        self,
        message: str,
        *,
        paid: Paid = Paid.NO,
        status: int | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        suggestions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, suggestions=suggestions)
        self.paid = paid
        self.cost = 0  # microdollars, when `paid` is YES
        self.imputed = False  # a subscription covers the cost
        self.status = status
        self.retry_after = retry_after
        self.request_id = request_id

    def record(self) -> dict[str, Any]:
        """Return the error as JSON with what the wire said."""
        extra = {"paid": str(self.paid), "status": self.status, "request_id": self.request_id}
        return super().record() | {name: value for name, value in extra.items() if value is not None}


class TryLater(WireError):
    """The same request may succeed later."""

    code = "try_later"


class RateLimited(TryLater):
    """The provider says: too fast or too many."""

    code = "rate_limited"


class Overloaded(TryLater):
    """The provider is full."""

    code = "overloaded"


class ProviderFault(TryLater):
    """The provider broke and says so."""

    code = "provider_fault"


class Unreachable(TryLater):
    """The request never left this machine."""

    code = "unreachable"

    def __init__(self, message: str, *, suggestions: tuple[str, ...] = (CHECK_NETWORK,), **rest: Any) -> None:
        super().__init__(message, suggestions=suggestions, **rest)


class OutcomeUnknown(TryLater):
    """The request left and no whole answer came back."""

    code = "outcome_unknown"

    def __init__(self, message: str, *, paid: Paid = Paid.UNKNOWN, **rest: Any) -> None:
        super().__init__(message, paid=paid, **rest)


class OutOfTime(OutcomeUnknown):
    """The request left, and its time was over before the whole answer was there."""

    code = "out_of_time"


class Undecodable(OutcomeUnknown):
    """A success came in an encoding that cannot be decoded; asking again would pay for another."""

    code = "undecodable"


class Expired(TryLater):
    """The batch ran out of time before it came to this call; nothing was charged."""

    code = "expired"


class CallFailed(WireError):
    """This call is given up; the run may go on."""

    code = "call_failed"
    exit_code = 1


class InvalidRequest(CallFailed):
    """The provider refuses the request as it stands."""

    code = "invalid_request"


class UnknownModel(CallFailed):
    """The provider has no such model."""

    code = "unknown_model"
    exit_code = 3


class Untrusted(CallFailed):
    """The certificate of the server is not valid, so nothing was sent to it."""

    code = "untrusted"
    exit_code = 3


class RetriesExhausted(CallFailed):
    """Every attempt failed."""

    code = "retries_exhausted"
    exit_code = 4

    def __init__(self, message: str, *, last: WireError) -> None:
        super().__init__(message, paid=last.paid, status=last.status, request_id=last.request_id)
        self.last = last
        self.suggestions = last.suggestions


class BatchCanceled(CallFailed):
    """The batch was canceled before it came to this call; nothing was charged."""

    code = "batch_canceled"


class AgentFailed(CallFailed):
    """A program or CLI agent did not do what it was asked for."""

    code = "agent_failed"

    def __init__(
        self,
        message: str,
        *,
        log: str = "",
        tool: str | None = None,
        cost: int | None = None,
        imputed: bool = False,
        **rest: Any,
    ) -> None:
        super().__init__(message, **rest)
        self.log = log  # what it wrote to standard error
        self.tool = tool  # the tool that it was at
        self.command: str | None = None  # as it was declared: without the prompt
        self.exit_status: int | None = None  # negative: the signal that ended it
        if cost is not None:  # in microdollars: what it says that it cost
            self.paid, self.cost, self.imputed = Paid.YES, cost, imputed

    def record(self) -> dict[str, Any]:
        """Return the error as JSON with what the program left behind."""
        extra = {
            "tool": self.tool,
            "log": self.log or None,
            "command": self.command,
            "exit_code": self.exit_status,
        }
        return super().record() | {name: value for name, value in extra.items() if value is not None}


class NotStarted(AgentFailed):
    """The program could not be started."""

    code = "not_started"
    exit_code = 3


class BadExit(AgentFailed):
    """The program exited with an error, or was killed."""

    code = "bad_exit"


class BadOutput(AgentFailed):
    """The agent answered, but not in the shape that was asked for."""

    code = "bad_output"
    reply: Any = None  # of a model, which is kept


class TimedOut(AgentFailed):
    """The time of the agent was over; a program was stopped, a person did not answer."""

    code = "timed_out"


class Stalled(AgentFailed):
    """The program said nothing for too long; it was stopped."""

    code = "stalled"


class PermissionAsked(AgentFailed):
    """The program wanted a person's permission, which nobody can give here; it was stopped."""

    code = "permission"

    def __init__(
        self, message: str, *, arguments: Mapping[str, Any] | None = None, session: str = "", **rest: Any
    ) -> None:
        super().__init__(message, **rest)
        self.arguments = arguments  # that it wants to use the tool with, where they are known
        self.session = session  # that can be continued; empty when there is none

    def record(self) -> dict[str, Any]:
        """Return the error as JSON with what it takes to decide, and to continue."""
        extra = {"input": None if self.arguments is None else dict(self.arguments), "session": self.session or None}
        return super().record() | {name: value for name, value in extra.items() if value is not None}


class RecordedFailure(CallFailed):
    """A failure read back from the journal, as it was recorded."""

    code = "recorded_failure"

    def __init__(self, recorded: Mapping[str, Any]) -> None:
        super().__init__(str(recorded.get("message", "failed")), status=recorded.get("status"))
        self.recorded = dict(recorded)

    def record(self) -> dict[str, Any]:
        """Return the failure exactly as it was recorded."""
        return self.recorded


class StopRun(MusterError):
    """The whole run must stop."""

    code = "stopped"


class AuthRefused(StopRun, WireError):
    """The key is missing, wrong or not allowed."""

    code = "auth_refused"
    exit_code = 3


class BudgetExhausted(StopRun):
    """What is spent plus the most this call can cost is over a cap."""

    code = "budget"
    exit_code = 1

    def __init__(self, message: str, *, level: str = "", suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message, suggestions=suggestions)
        self.level = level  # of the budget

    def record(self) -> dict[str, Any]:
        """Return the error with the level that refused."""
        return super().record() | {"level": self.level}


class RunCanceled(StopRun):
    """Somebody canceled the run."""

    code = "canceled"
    exit_code = 1


class RunTimedOut(StopRun):
    """The time of the run is over."""

    code = "timeout"
    exit_code = 1


class Interrupted(StopRun):
    """This process was told to stop; the run can be resumed."""

    code = "interrupted"


class LeftWaiting(StopRun):
    """The run's calls wait in batches; any process can go on with it later."""

    code = "left_waiting"


class AwaitsSignal(LeftWaiting):
    """The run waits for nothing but signals; whoever drives submitted runs goes on with it when one arrives."""

    code = "awaiting_signal"


class BatchOverdue(LeftWaiting):
    """A batch was waited for long enough; its results can be fetched later."""

    code = "batch_overdue"


class BatchOpen(LeftWaiting):
    """Nobody can say yet whether a batch was created."""

    code = "batch_open"


class BatchLost(LeftWaiting):
    """A batch or its results cannot be read from the provider."""

    code = "batch_lost"


class LeaseLost(StopRun):
    """Another driver has taken the run."""

    code = "lease_lost"


class StoreFailed(StopRun):
    """The store cannot be read or written."""

    code = "store"


class FixSpec(MusterError):
    """The person must change something first."""

    code = "fix"
    exit_code = 2


class BadArgument(FixSpec):
    """A value given on the command line or to a function does not do.

    With `argument` the message is a predicate, and the sentence begins with the name of that argument: an edge puts the
    name that its users know in place of it.
    """

    code = "bad_argument"

    def __init__(self, message: str, *, argument: str = "", suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(f"{argument} {message}" if argument else message, suggestions=suggestions)
        self.argument, self.predicate = argument, message

    def renamed(self, argument: str) -> "BadArgument":
        """Return the same error about an argument of another name."""
        return BadArgument(self.predicate, argument=argument, suggestions=self.suggestions)


class BadFile(FixSpec):
    """A file does not parse or does not fit."""

    code = "bad_file"

    def __init__(
        self,
        path: str,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        suggestions: tuple[str, ...] = (),
    ) -> None:
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        super().__init__(f"{place}: {message}", suggestions=suggestions)
        self.path, self.line, self.column = path, line, column


class BadConfiguration(FixSpec):
    """Keys, agents, prices or workloads are not set up for this."""

    code = "configuration"
    exit_code = 3


class KeyReused(FixSpec):
    """One key was used for two different requests in one run."""

    code = "key_reused"


class ReplayMiss(FixSpec):
    """A replay asked for something that was never recorded."""

    code = "replay_miss"
    exit_code = 1


class ChildFailed(MusterError):
    """A child run did not complete."""

    code = "child_failed"
    exit_code = 1

    def __init__(
        self, message: str, *, run: str = "", reason: str = "", cause: str = "", suggestions: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, suggestions=suggestions)
        self.run = run  # the id of the child
        self.reason = reason  # the code of why the child ended
        self.cause = cause  # the same in words, without the run


class BattleFailed(MusterError):
    """A side of a battle said nothing, so that the other has nothing to answer."""

    code = "battle_failed"
    exit_code = 1


class CouncilFailed(MusterError):
    """Too few members of a council answered, before it had any result."""

    code = "council_failed"
    exit_code = 1


class StepFailed(MusterError):
    """A step of a chain failed, and all its tries with it."""

    code = "step_failed"
    exit_code = 1


def needs_higher_budget(reason: str | None, error: Mapping[str, Any] | None) -> bool:
    """Return whether a run that ended needs a higher total of its own; a day's or a server's budget is not its own."""
    above = ("day:", "user:", "server:", "pool:", "part:", "call")
    return reason == BudgetExhausted.code and not str((error or {}).get("level", "")).startswith(above)


def resume_command(run: str, reason: str | None, error: Mapping[str, Any] | None) -> str:
    """Return the command that resumes a run; one that exhausted its budget needs a higher total."""
    return f"muster runs resume {run}" + (" --budget USD" if needs_higher_budget(reason, error) else "")


_STATE_VERBS = {
    "completed": "completed",
    "failed": "failed",
    "canceled": "was canceled",
    "timeout": "timed out",
    "interrupted": "was interrupted",
}


def state_verb(state: str) -> str:
    """Return the predicate of a sentence about a run in a state: "failed", "was canceled", "is running"."""
    return _STATE_VERBS.get(state, f"is {state}")


def after_run(run: str, message: str) -> str:
    """Return a message as the end of a sentence that names the run: its id is not repeated, nor that it ended."""
    if message.startswith(f"run {run} was "):
        return ""
    message = message.replace(f"run {run} exceeded its time limit of", "its time limit is")
    return ": " + message.replace(f"budget of run {run}", "its budget")


def did_you_mean(near: Sequence[str]) -> tuple[str, ...]:
    """Return the suggestion of names that are like one that is not known; nothing when none is."""
    return (f"did you mean {' or '.join(near)}?",) if near else ()


class RunFailed(MusterError):
    """A run did not complete; `reason` is the code of what ended it."""

    code = "run_failed"
    exit_code = 1

    def __init__(self, run: str, state: str, reason: str | None, error: Mapping[str, Any] | None) -> None:
        why = after_run(run, str((error or {}).get("message") or reason or "no reason recorded"))
        resume = () if state == "completed" else (f"continue with: {resume_command(run, reason, error)}",)
        super().__init__(
            f"run {run} {state_verb(state)}{why}", suggestions=(*(error or {}).get("suggestions", ()), *resume)
        )
        self.run, self.state, self.reason, self.error = run, state, reason, error

    def record(self) -> dict[str, Any]:
        """Return the error under the code of its cause."""
        return super().record() | {"code": self.reason or self.code}


class Conflict(MusterError):
    """Somebody else is at it, or it is not in a state for this."""

    code = "conflict"


class MergeConflict(Conflict):
    """Two branches changed the same lines; nothing was merged."""

    code = "merge_conflict"
    exit_code = 1

    def __init__(self, message: str, *, files: tuple[str, ...], suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message, suggestions=suggestions)
        self.files = files

    def record(self) -> dict[str, Any]:
        """Return the error with the files that need a person."""
        return super().record() | {"files": list(self.files)}


class Overdraft(MusterError):
    """An agent reported a higher cost than its call had reserved, and the run completed over a budget."""

    code = "overdraft"
    exit_code = 1
    result: Any = None  # of the run, or the reply to the question

    @classmethod
    def of(cls, record: Mapping[str, Any], result: Any) -> "Overdraft":
        """Return the error that a run was stored with, and what the run came to in spite of it."""
        message = str(record.get("message", "budget exceeded"))
        error = cls(message, suggestions=tuple(record.get("suggestions", ())))
        error.result = result
        return error


class KeyTaken(MusterError):
    """The journal has an entry under this key already."""

    code = "key_taken"


class AccessDenied(MusterError):
    """The user may not do this."""

    code = "forbidden"
    exit_code = 3


class LimitReached(MusterError):
    """A limit of the service is reached; the same may be possible after some seconds."""

    code = "limit"

    def __init__(self, message: str, *, retry_after: float, suggestions: tuple[str, ...] = ()) -> None:
        super().__init__(message, suggestions=suggestions)
        self.retry_after = retry_after


class QueueFailed(MusterError):
    """The server of the queue cannot be reached; the store has everything that it had."""

    code = "queue"


class NotFound(MusterError):
    """There is no such thing."""

    code = "not_found"
    exit_code = 5


def exit_code_of(error: MusterError) -> int:
    """Return the exit code for an error; a run that failed exits as its cause would."""
    if isinstance(error, RunFailed):
        return _exit_codes(MusterError).get(error.reason or "", error.exit_code)
    return error.exit_code


def _exit_codes(root: type[MusterError]) -> dict[str, int]:
    found = {root.code: root.exit_code}
    for kind in root.__subclasses__():
        found |= _exit_codes(kind)
    return found
