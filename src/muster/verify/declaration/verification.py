"""The spec of a verification: which files are verified, by whom, and what must hold."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

MAX_TOKENS = 8000
SECRETS = "muster-secrets"  # the checker of our own, which no declared agent can be named like


def matches(path: str, globs: Iterable[str]) -> bool:
    """Return whether one of the globs is that of a file; one without a slash is held against its name as well."""
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path, glob) or fnmatchcase(name, glob) for glob in globs)


class Kind(StrEnum):
    """What a verification agent is."""

    MODEL = "model"  # any agent that is asked, in words
    COMMAND = "command"  # a checker, whose output is read


class Shape(StrEnum):
    """What a model is to answer besides findings."""

    FINDINGS = "findings"
    REVIEW = "review"  # a score, with parts
    TESTS = "tests"  # coverage


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """One verification agent as it was declared, with nothing left to look up."""

    name: str
    wave: int = 1
    kind: Kind = Kind.MODEL
    thresholds: tuple[str, ...] = ()  # expressions; none: it gates nothing, but there must be a report
    include: tuple[str, ...] = ()  # globs on paths; none: every file
    # a model
    model: str = ""  # the name of an agent of Muster's
    prompt: str = ""
    shape: Shape = Shape.FINDINGS
    schema: Mapping[str, Any] | None = None  # the user's own, which a reply must fit besides ours
    dispatch: str | None = None  # live, flex or batch, whatever the rest does
    max_tokens: int | None = None  # of an answer; none: what the agent's section says, else MAX_TOKENS
    temperature: float | None = None
    # a command
    command: tuple[str, ...] = ()  # without a shell; an argument "{files}" becomes one for each file
    parser: str = ""  # how its output is read
    exits: tuple[int, ...] = (0, 1)  # codes with which a checker that did its work may exit
    environment: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None  # seconds

    def looks_at(self, path: str) -> bool:
        """Return whether a file is for this agent."""
        return not self.include or matches(path, self.include)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is sent."""

    chunk_bytes: int = 90_000  # of files in one call, with line numbers: what fits the context of any model in use
    overlap_lines: int = 20  # between the pieces of a file that does not fit
    total_bytes: int = 8_000_000  # of all files; more is refused before anything is spent


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A file that is not verified, and why."""

    path: str
    why: str  # "binary", "generated", …


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedSecret:
    """A place in verified code where a secret of this kind may stand."""

    file: str  # relative to the root
    line: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnseenSecret:
    """A secret in a file that was chosen and that no agent looks at: where it stands and what it is."""

    file: str  # relative to the root
    line: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """A small file that says which files wait to be verified."""

    path: str  # an absolute path
    digest: str  # SHA-256 of its bytes: one that was written anew is another one
    files: tuple[str, ...]  # relative to the root


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairTerms:
    """Who is to repair what a verification finds, and which files nobody is to look at when that is verified."""

    agent: str  # the name of an agent of Muster's, which changes files
    exclude: tuple[str, ...] = ()  # globs


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The spec of a verification: everything is in it but the contents of the files."""

    root: str  # an absolute path; files and findings are named relative to it
    files: tuple[str, ...]
    verifiers: tuple[Verifier, ...]
    source: str = ""  # the folder that contents are read from; empty: the root
    thresholds: tuple[str, ...] = ()  # over all agents together
    waves: tuple[int, ...] = ()  # only these; empty: all of them, in order
    agents: tuple[str, ...] = ()  # only these; empty: all of them
    keep_going: bool = False  # later waves run whatever became of the earlier ones
    live: bool = False  # nothing goes into a batch, whatever an agent's own dispatch says
    cache: bool = True  # mark the files for the provider's cache
    markers: tuple[Marker, ...] = ()  # files that are removed when everything they name has passed
    left_out: tuple[LeftOut, ...] = ()  # what the selection left out before
    limits: Limits = Limits()
    allow_secrets: tuple[AllowedSecret, ...] = ()
    fail_named_secrets: bool = False  # what is told by the name beside it fails too
    unseen_secrets: tuple[UnseenSecret, ...] = ()  # in files that the selection left out: generated, or for no agent
    repair: RepairTerms | None = None  # None: its findings are given to nobody

    @property
    def whole(self) -> bool:
        """Return whether everybody who was declared is asked."""
        return not self.waves and not self.agents
