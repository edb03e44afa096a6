"""A process that we started: enough to find it again after a crash, and to take no other for it."""

from dataclasses import dataclass

from muster.domain.run import Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedProcess:
    """One process of a driver, or with no number all that carry its token and a further part."""

    token: str  # carried in the environment of the process and of all its descendants
    driver: Driver
    at: float
    pid: int | None = None
    started: str | None = None  # the boot and the tick, so that a later process with this number is another one
    agent: str = ""
