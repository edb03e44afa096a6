"""The forms of verify.yaml: which keys there are, for which kind of agent, and what stands under them.

What takes more than a look at one value is left as it is written: prompts, schemas and thresholds are the next step's.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from muster.domain.canonical import Json
from muster.domain.order import MAX_GLOB
from muster.text import forms as v
from muster.text.forms import Form
from muster.verify.declaration.verification import SECRETS, Kind, Limits, Shape

Parser = Literal["ruff", "mypy", "pytest", "sarif", "json", "lines"]
PARSERS: tuple[str, ...] = ("ruff", "mypy", "pytest", "sarif", "json", "lines")
FILES = "{files}"  # an argument of a command that becomes one for each file
MIN_CHUNK = 1_000  # bytes

_MAX_NAME = 64
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LIMITS = Limits()

_BELONGS = {
    Kind.MODEL: ("model", "prompt", "prompt_file", "shape", "schema", "dispatch", "max_tokens", "temperature"),
    Kind.COMMAND: ("command", "parser", "exits", "env", "timeout_secs"),
}


def name_flaw(name: str) -> str | None:
    """Return why a name cannot be used in keys, tables and file names; None when it can."""
    if not _NAME.fullmatch(name):
        return "the name of an agent has only letters, digits, - _ and . and begins with a letter or a digit"
    if name == SECRETS:
        return "this name is reserved for Muster's own checker of secrets"
    return f"a name can have at most {_MAX_NAME} characters" if len(name) > _MAX_NAME else None


def command_flaw(command: tuple[str, ...]) -> str | None:
    """Return why a command cannot be started as it is written; None when it can."""
    if not command:
        return "needs at least one item"
    if FILES in command[0]:
        return f"must begin with a program, not with {FILES}"
    inside = next((word for word in command if FILES in word and word != FILES), None)
    return None if inside is None else f"{FILES} must be an argument of its own, not part of {inside!r}"


def glob_flaw(glob: str) -> str | None:
    """Return why a glob cannot match any file; None when it can."""
    if len(glob) > MAX_GLOB:
        return f"a glob has at most {MAX_GLOB:,} characters"
    wrong = glob.startswith("/") or {".", ".."} & set(glob.split("/")) or not glob.strip()
    return "a glob matches paths below the root: it must not begin with / or contain . or .." if wrong else None


def _refusing(flaw: Any) -> Any:
    def check(value: Any) -> Any:
        if wrong := flaw(value):
            raise ValueError(wrong)
        return value

    return check


def _no_shell(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError("must be a list of strings, [program, argument, …]; no shell is used")
    return value


def _one_or_more(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


def _globs_one_or_more(value: Any) -> Any:
    listed = v.one_or_more(value)
    if not isinstance(listed, list) or not all(map(v.is_string, listed)):
        raise ValueError('must be a glob or a list of globs, such as "src/**/*.py"')
    return listed


AgentName = Annotated[v.Text, AfterValidator(_refusing(name_flaw))]
Glob = Annotated[v.Word, AfterValidator(_refusing(glob_flaw))]
Globs = Annotated[list[Glob], BeforeValidator(_globs_one_or_more)]
CommandWords = Annotated[list[v.CommandWord], BeforeValidator(_no_shell), AfterValidator(_refusing(command_flaw))]
ExitCode = Annotated[v.Natural, Field(le=255)]
ExitCodes = Annotated[list[ExitCode], BeforeValidator(_one_or_more), Field(min_length=1)]


class LimitsForm(Form):
    """How much is sent."""

    chunk_bytes: Annotated[v.Count, Field(ge=MIN_CHUNK)] = _LIMITS.chunk_bytes
    overlap_lines: v.Natural = _LIMITS.overlap_lines
    total_bytes: v.Count = _LIMITS.total_bytes


class AllowedForm(Form):
    """A place where a secret may stand."""

    file: v.String
    line: v.Count
    kind: v.String


class TopForm(Form):
    """Everything in the file but its agents."""

    version: v.Version = 1
    model: v.String | None = None
    max_tokens: v.Count | None = None
    thresholds: Any = None
    exclude: Globs = Field(default_factory=list)
    limits: LimitsForm = Field(default_factory=LimitsForm)
    named_secrets: Literal["report", "fail"] = "report"
    allow_secrets: list[AllowedForm] = Field(default_factory=list)


class AgentForm(Form):
    """One verification agent as it is written."""

    name: AgentName
    wave: v.Count = 1
    kind: Kind = Kind.MODEL
    thresholds: Any = None
    include: Globs = Field(default_factory=list)
    model: v.String | None = None
    prompt: v.Text | None = None
    prompt_file: v.String | None = None
    shape: Shape = Shape.FINDINGS
    own_schema: Any = Field(default=None, alias="schema")
    dispatch: Literal["live", "flex", "batch"] | None = None
    max_tokens: v.Count | None = None
    temperature: v.NotNegative | None = None
    command: CommandWords | None = None
    parser: Parser | None = None
    exits: ExitCodes = Field(default_factory=lambda: [0, 1])
    env: dict[v.VariableName, v.EnvironmentValue] = Field(default_factory=dict)
    timeout_secs: v.Seconds | None = None


TOP = (*TopForm.model_fields, "agents")
LIMITS = tuple(LimitsForm.model_fields)
ALLOWED = tuple(AllowedForm.model_fields)
AGENT = tuple(info.alias or name for name, info in AgentForm.model_fields.items())


def misplaced(tree: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield the keys that belong to the other kind of agent, each with what to say about it."""
    own = tree.get("kind") or Kind.MODEL
    is_known = own in list(Kind)  # it may be anything, a list too
    for other, names in _BELONGS.items():
        for name in names if is_known and own != other else ():
            if tree.get(name) is not None:
                yield name, f"only for agents of the kind {other}; this one is of the kind {own}"
