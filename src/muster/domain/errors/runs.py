"""What ends a run, or leaves it waiting, and how a run that did not complete is told of."""

from collections.abc import Mapping
from typing import Any

from muster.domain.errors.base import BadConfiguration, MusterError


class StopRun(MusterError):
    """The whole run must stop."""

    code = "stopped"


class AgentUnusable(StopRun, BadConfiguration):
    """An agent that a run asks is not known, or lacks its key or its price: every further call of it would too."""

    code = BadConfiguration.code
    exit_code = BadConfiguration.exit_code

    agent = ""

    @classmethod
    def of(cls, error: BadConfiguration, agent: str) -> "AgentUnusable":
        """Return what an error about the configuration of an agent means for a run."""
        stop = cls(error.message, suggestions=error.suggestions, flaws=error.flaws)
        stop.agent = agent
        return stop

    def record(self) -> dict[str, Any]:
        """Return the error with its agent, by which the parent of a run knows it from other wrong settings."""
        return super().record() | {"agent": self.agent}


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


class StoreAway(StoreFailed):
    """The server of the store does not answer; it may do so later."""


class StoreUnreachable(StoreAway):
    """Nobody takes connections at the address of the store, or not yet: its server may be starting."""


def store_closed(way: str = "do it inside of: async with muster.open() as m") -> StoreFailed:
    """Return the error for whoever uses a store after it was closed."""
    return StoreFailed("the store is closed, as its Muster is", suggestions=(way,))


class ChildFailed(MusterError):
    """A child run did not complete."""

    code = "child_failed"
    exit_code = 1

    def __init__(
        self,
        message: str,
        *,
        run: str = "",
        reason: str = "",
        cause: str = "",
        stop: StopRun | None = None,
        suggestions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, suggestions=suggestions)
        self.run = run  # the id of the child
        self.reason = reason  # the code of why the child ended
        self.cause = cause  # the same in words, without the run
        self.stop = stop  # what the child met, if it stops its parent too


class BattleFailed(MusterError):
    """A side of a battle said nothing, so that the other has nothing to answer."""

    code = "battle_failed"
    exit_code = 1


class CouncilFailed(MusterError):
    """Too few members of a council answered, before it had any result."""

    code = "council_failed"
    exit_code = 1


class ToolError(MusterError):
    """A function that an agent uses as a tool could not do what it was called for; the agent is told the message."""

    code = "tool_error"


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
