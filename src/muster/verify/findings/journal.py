"""A verification as it stands in the journal: what is verified, by whom, and under which keys everything is kept.

waves                       the snapshot: which files, what was left out, how many pages
waves/files/N               one page of sources: what is sent of each file, without its secrets
wave/W/AGENT/CHUNK, …/repair    a call to a model about one chunk of the files
wave/W/AGENT/command        a checker
wave/W/AGENT/place/…        what was looked up on disk for a checker
wave/W/report               what a wave came to
waves/clearing              which markers are to be cleared
waves/cleared               which of them were
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from muster.domain.money import NOTHING, Microdollars
from muster.text.thresholds import ThresholdResult
from muster.verify.declaration.verification import Kind
from muster.verify.findings.finding import Counts, Finding, Merged, Rejected

SNAPSHOT = "waves"
CLEARING = "waves/clearing"
CLEARED = "waves/cleared"
MAX_FINDINGS = 5_000  # of one agent that are kept whole; all of them are counted
NONE = Counts()


class Ending(StrEnum):
    """What became of an agent in a wave."""

    PASSED = "passed"
    FAILED = "failed"  # a threshold does not hold
    BROKEN = "broken"  # no report that counts: not parsed, timed out, expired, not all of the files
    IDLE = "idle"  # no file is for it


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReport:
    """What one agent came to in a wave, over all chunks."""

    agent: str
    wave: int
    ending: Ending
    kind: Kind = Kind.MODEL
    why: str = ""  # one sentence, empty when it passed
    counts: Counts = NONE
    findings: tuple[Finding, ...] = ()  # the worst first; at most MAX_FINDINGS
    rejected: tuple[Rejected, ...] = ()  # the same
    score: float | None = None  # the lowest of all chunks
    parts: Mapping[str, float] = field(default_factory=dict)  # each the lowest of all chunks
    coverage: float | None = None  # percent, weighed by lines
    thresholds: tuple[ThresholdResult, ...] = ()
    chunks: int = 0  # that it was to look at
    answered: int = 0  # of which there is a report
    repaired: int = 0
    failures: tuple[str, ...] = ()  # why there is none of the others, each said once
    codes: Mapping[str, int] = field(default_factory=dict)  # of the failures, with how many there are
    model: str = ""
    seconds: float = 0.0  # the longest call
    cost: Microdollars = NOTHING
    keys: tuple[str, ...] = ()  # of its calls in the journal, at most a thousand


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveReport:
    """What a wave came to."""

    wave: int
    passed: bool
    agents: tuple[AgentReport, ...]
    merged: tuple[Merged, ...] = ()  # findings of all its agents, duplicates as one; the worst first
    counts: Counts = NONE  # of the merged ones
    thresholds: tuple[
        ThresholdResult, ...
    ] = ()  # over all agents of this and of earlier waves, as far as they can be known
    why: str = ""
    started_at: float = 0.0
    ended_at: float = 0.0


def files_key(page: int) -> str:
    """Name a page of sources."""
    return f"waves/files/{page}"


def call_key(wave: int, agent: str, chunk: str) -> str:
    """Name a call to an agent about a chunk."""
    return f"wave/{wave}/{agent}/{chunk}"


def wave_prefix(wave: int) -> str:
    """Return what all keys of a wave begin with."""
    return f"wave/{wave}/"


def report_key(wave: int) -> str:
    """Name the report of a wave."""
    return f"wave/{wave}/report"
