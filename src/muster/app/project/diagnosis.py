"""What a check of a machine found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What one check found: ok, note or broken."""

    subject: str
    state: str
    words: str
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkDiagnosis(Diagnosis):
    """How connections leave this machine; without the names and passwords of proxies."""

    proxies: Mapping[str, str | None]  # by the scheme of what is reached through them
    direct: tuple[str, ...]  # hosts that NO_PROXY excepts, as it says
    certificates: tuple[str, ...]  # the file and the folders with those that are trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorReport:
    """Everything that was found."""

    findings: Sequence[Diagnosis]
    network: NetworkDiagnosis | None = None  # None when the settings cannot be read

    @property
    def all(self) -> tuple[Diagnosis, ...]:
        """Return what was found, the network last."""
        return (*self.findings, *(() if self.network is None else (self.network,)))

    @property
    def broken(self) -> tuple[Diagnosis, ...]:
        """Return what keeps runs from working."""
        return tuple(found for found in self.all if found.state == "broken")
