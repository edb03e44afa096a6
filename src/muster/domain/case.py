"""How a case of a suite ends."""

from enum import StrEnum


class Status(StrEnum):
    """How a case ended."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # the agent, or a check, could not do its work
    TIMED_OUT = "timed_out"
    FLAKY = "flaky"  # some epochs passed, some did not; of a case, never of one epoch
    UNJUDGED = "unjudged"  # nobody could say: no check fits, or the judge failed
    SKIPPED = "skipped"
    WAITING = "waiting"  # its run waits for a batch, or is at work; of a case in a report, never of a result
