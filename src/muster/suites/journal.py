"""A suite run as it stands in the journal: the snapshot, the keys of everything, and pages of cases and results."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar

from muster.domain.canonical import Json
from muster.domain.case import Status
from muster.suites.values.case import Case
from muster.suites.values.verdict import CaseResult
from muster.text import typed

SNAPSHOT = "suite"
ANSWERS = "suite/answers"
# Tried again by whoever resumes the run: agents that failed, and judges.
REPEATABLE = frozenset({Status.ERROR, Status.TIMED_OUT, Status.UNJUDGED})
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
class SuiteSnapshot:
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


T = TypeVar("T")

_PLACE = {"file", "line", "process_folder", "flaw"}  # and why it cannot be run, which follows from the rest
_CONTENT = attrgetter(*(field.name for field in fields(Case) if field.name not in _PLACE))

_CASES = typed.Decoder(tuple[Case, ...])
_RESULTS = typed.Decoder(tuple[CaseResult, ...])


def spell(case: Case) -> str:
    """Spell a case without where it lies: the same suite is spelled the same on every machine."""
    return pack(_CONTENT(case))


def pack(values: Sequence[Any]) -> str:
    """Spell cases or results as one text; equal values are spelled equally."""
    try:
        return typed.encode(values).decode("utf-8")
    except UnicodeEncodeError:  # half a character, as models write them now and then
        return json.dumps(typed.to_builtins(values))


def cases_of(packed: Any) -> tuple[Case, ...]:
    """Read cases; nothing holds none."""
    return _read(packed, _CASES, tuple[Case, ...]) if packed else ()


def results_of(packed: Any) -> tuple[CaseResult, ...]:
    """Read results; nothing holds none."""
    return _read(packed, _RESULTS, tuple[CaseResult, ...]) if packed else ()


def _read(packed: str, decoder: typed.Decoder[T], kind: type[T]) -> T:
    try:
        return decoder.decode(packed)
    except typed.ValidationError:
        raise
    except typed.DecodeError:
        return typed.convert(json.loads(packed), kind)
