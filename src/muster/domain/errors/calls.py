"""What goes wrong with one call: what agents raise, and what it may have cost."""

from collections.abc import Mapping
from typing import Any

from muster.domain.errors.base import MusterError, Paid
from muster.domain.errors.runs import StopRun

MAX_ANSWER = 2_000  # characters of an answer, in the record of an error
CHECK_NETWORK = "check the address (base_url or url); muster doctor shows proxies and certificates"  # a suggestion


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
    retryable = True


class RateLimited(TryLater):
    """The provider says: too fast or too many."""

    code = "rate_limited"


class Overloaded(TryLater):
    """The provider is full."""

    code = "overloaded"


class TierFull(TryLater):
    """The tier of service has no place for the request now; nothing was charged."""

    code = "tier_full"


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
    retryable = False


class Expired(TryLater):
    """The batch ran out of time before it came to this call; nothing was charged."""

    code = "expired"


class Respelled(TryLater):
    """The provider wants a field under another name, which is used from now on; nothing was charged."""

    code = "respelled"


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
        self.retryable = last.retryable
        self.suggestions = last.suggestions


class BatchCanceled(CallFailed):
    """The batch was canceled before it came to this call; nothing was charged."""

    code = "batch_canceled"


class ToolTurnsExceeded(CallFailed):
    """The agent called tools more often than it may."""

    code = "tool_turns"


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
    retryable = True


class BadOutput(AgentFailed):
    """The agent answered, but not in the shape that was asked for."""

    code = "bad_output"
    reply: Any = None  # that is not in that shape
    flaw = ""  # what is wrong with it
    answer: str | None = None  # its text

    def record(self) -> dict[str, Any]:
        """Return the error as JSON, with the answer, which may be kept nowhere else."""
        told = {} if self.answer is None else {"flaw": self.flaw, "answer": self.answer[:MAX_ANSWER]}
        return super().record() | told


class TimedOut(AgentFailed):
    """The time of the agent was over; a program was stopped, a person did not answer."""

    code = "timed_out"
    retryable = True


class Stalled(AgentFailed):
    """The program said nothing for too long; it was stopped."""

    code = "stalled"
    retryable = True


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
        ways = tuple(map(str, recorded.get("suggestions") or ()))
        super().__init__(str(recorded.get("message", "failed")), status=recorded.get("status"), suggestions=ways)
        self.recorded = dict(recorded)

    def record(self) -> dict[str, Any]:
        """Return the failure exactly as it was recorded."""
        return self.recorded


class AuthRefused(StopRun, WireError):
    """The key is missing, wrong or not allowed."""

    code = "auth_refused"
    exit_code = 3
