"""A test case as it is run: everything in it is resolved, so that it can be stored, judged and scored again anywhere.

Files, variables, datasets and defaults are gone by now; `file` and `line` only say where it came from.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from muster.domain.call import Message, Quality
from muster.domain.canonical import Json

DEFAULT_GOLDEN_THRESHOLD = 0.9
MAX_TOOL_TURNS = 10
MAX_TOOL_CALLS = 64  # in one reply


class CheckKind(StrEnum):
    """What an output check looks for."""

    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    EQUALS = "equals"
    REGEX = "regex"
    JSON_PATH = "json_path"
    JSON_SCHEMA = "json_schema"
    IS_JSON = "is_json"
    CONTAINS_JSON = "contains_json"
    GOLDEN_DIFF = "golden_diff"


def tag_key(tag: str) -> str:
    """Return what all spellings of a tag have in common: Smoke is smoke, and edge_case is edge-case."""
    return tag.strip().casefold().replace("_", "-").replace(" ", "-")


OF_JSON = (CheckKind.JSON_SCHEMA, CheckKind.IS_JSON, CheckKind.CONTAINS_JSON)


class Evaluator(StrEnum):
    """Who decides about a case."""

    RULES = "rules"  # its checks
    GOLDEN = "golden"  # likeness to a file
    PROCESS = "process"  # a command of the user's
    JUDGE = "judge"  # a model with a rubric


class ToolOrder(StrEnum):
    """How strictly a tool call must stand where it is expected."""

    STRICT = "strict"  # right after the one before it
    SUBSEQUENCE = "subsequence"  # anywhere after it
    UNORDERED = "unordered"  # anywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """The text that an answer is compared with."""

    path: str  # as the user wrote it
    text: str
    threshold: float = DEFAULT_GOLDEN_THRESHOLD
    normalize_whitespace: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputCheck:
    """One thing that must hold of an answer; `field` narrows it to one place in an answer that is JSON."""

    kind: CheckKind
    value: str = ""  # the text, the pattern; of json_path without a field: the path that must find something
    field: str | None = None  # JSONPath, JSON pointer or top-level key
    schema: Mapping[str, Json] | None = None  # of json_schema, and maybe of is_json and contains_json
    golden: Golden | None = None  # of golden_diff
    turn: int | None = None  # which answer, from 1; else the last


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolExpectation:
    """A tool call that must be observed."""

    tool: str
    args_match: Mapping[str, Json] = field(default_factory=dict)
    order: ToolOrder = ToolOrder.SUBSEQUENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class Anchor:
    """What an answer is like that deserves a score."""

    score: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricItem:
    """One thing that a good answer has, and how much it weighs."""

    id: str
    description: str
    weight: float = 1.0
    critical: bool = False  # the case fails when this item is below the threshold
    auto_check: OutputCheck | None = None
    anchors: tuple[Anchor, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a scripted tool gives when its arguments match."""

    result: str
    args_match: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTool:
    """A tool that the agent may really call; the first result whose arguments match is given."""

    name: str
    description: str = ""
    parameters: Mapping[str, Json] = field(default_factory=lambda: {"type": "object", "properties": {}})
    results: tuple[ToolResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One case: what is asked, and what is expected of the answer."""

    id: str
    suite: str  # the skill or agent that it tests
    file: str
    line: int
    messages: tuple[Message, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    skip: str = ""  # why it is not run
    follow_ups: tuple[str, ...] = ()  # said by the user after each answer, one by one
    context: Json = None
    environment: Mapping[str, str] = field(default_factory=dict)
    tools: tuple[ScriptedTool, ...] = ()
    agents: tuple[str, ...] = ()  # its own, instead of those of the run
    model_effort: str | None = None  # with which these are asked, or those of the run
    max_tokens: int | None = None
    temperature: float | None = None
    seed: int | None = None
    timeout: float | None = None  # seconds at work on the wire, all turns together
    threshold: float | None = None
    accepts: tuple[Quality, ...] = ()  # answers that are cut, refused or empty and good all the same
    evaluator: Evaluator | None = None
    output: tuple[OutputCheck, ...] = ()
    tool_sequence: tuple[ToolExpectation, ...] = ()
    rubric: tuple[RubricItem, ...] = ()
    golden: Golden | None = None
    process: tuple[str, ...] = ()
    process_folder: str = ""
    judge_prompt: str = ""
    flaw: str = ""  # why it cannot be run: it is an error, and nobody is asked

    @property
    def has_own_subjects(self) -> bool:
        """Return whether others are tested on it than on the cases that say nothing, or with another effort."""
        return bool(self.agents or self.model_effort)
