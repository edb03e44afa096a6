"""A suite run as it stands in the journal: what was read in, who is tested, and under which keys everything is kept.

suite                   the snapshot: which suites, prompts, how many cases and pages
suite/cases/N           one page of cases
suite/answers           recorded answers by case, when those are scored
case/ID/@SUBJECT/E/T    a call to the agent under test: epoch E, turn T
case/ID/@SUBJECT/E/judge/JUDGE/S, …/repair      calls to the judge: sample S
case/ID/@SUBJECT/E/process                     the command of the process evaluator
scoring/TAG/environment    versions at run time
scoring/TAG/N/V            one page of results in version V; TAG names how it was judged, so that a run can be judged
                           anew. Only a page that holds something mendable may have a newer version.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.domain.canonical import Json
from muster.domain.verdict import Status

SNAPSHOT = "suite"
ANSWERS = "suite/answers"
# Tried again by whoever resumes the run: agents that failed, and judges.
MENDABLE = frozenset({Status.ERROR, Status.TIMED_OUT, Status.UNJUDGED})
PAGE = 100  # cases, or results, in one entry of the journal at most


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteInfo:
    """One suite that was read in."""

    name: str
    file: str
    digest: str  # SHA-256 of all its cases as they were resolved
    prompt: str | None = None  # the system prompt under test that stands beside it
    cases: int = 0
    bundle: Mapping[str, Json] = field(default_factory=dict)  # bundle_id, risk_tier and the like


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A system prompt under test that was named on its own."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything that was read from files before the first call, but for the cases themselves."""

    suites: tuple[SuiteInfo, ...]
    prompts: tuple[Prompt, ...] = ()
    cases: int = 0
    pages: int = 0
    asked: int = 0  # the cases, each counted with everyone who is tested on it


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Who is tested: an agent, maybe under a prompt of its own."""

    agent: str  # empty when recorded answers are scored
    prompt: str = ""  # the name of a prompt; empty: the one beside the suite

    @property
    def label(self) -> str:
        """The name that stands in keys and reports."""
        agent = self.agent or "recorded"
        return f"{agent}+{self.prompt}" if self.prompt else agent


def cases_key(page: int) -> str:
    """Name a page of cases."""
    return f"suite/cases/{page}"


def case_key(case: str, subject: str, epoch: int) -> str:
    """Name one case under one subject in one epoch; everything done for it stands below."""
    return f"case/{case}/@{subject}/{epoch}"  # the sign keeps the end of an id and the beginning of a name apart


def results_key(tag: str, page: int, version: int = 1) -> str:
    """Name a version of a page of results."""
    return f"scoring/{tag}/{page}/{version}"


def environment_key(tag: str) -> str:
    """Name what was known of the machine and the versions."""
    return f"scoring/{tag}/environment"
