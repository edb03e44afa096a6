"""The forms that users fill in: fixture schema version 1 and what we add to it.

Fields that are not known are not refused here; `names` looks for them. Nothing is looked up: files, variables and
defaults are the next step's.
"""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from muster.domain.canonical import Json
from muster.domain.effort import ModelEffort
from muster.suites.values.case import OF_JSON, CheckKind, Evaluator, ToolOrder
from muster.text import forms as v
from muster.text.forms import Form

_WITHOUT_VALUE = (*OF_JSON, CheckKind.GOLDEN_DIFF)


class PartForm(Form):
    """A part of what a user says: a text, or a file that is shown."""

    type: Literal["text", "image", "document"]
    text: v.Text | None = None
    file: v.Word | None = None

    @model_validator(mode="after")
    def _complete(self) -> "PartForm":
        wanted, other = ("text", "file") if self.type == "text" else ("file", "text")
        if getattr(self, wanted) is None:
            raise ValueError(f"a part of the type {self.type} needs {wanted}")
        if getattr(self, other) is not None:
            raise ValueError(f"a part of the type {self.type} does not use {other}")
        return self


def _whole(value: Any) -> Any:
    return "" if isinstance(value, list) else value


def _parts(value: Any) -> Any:
    return value if isinstance(value, list) else []


class MessageForm(Form):
    """One turn that is given; its content is a text, or a list of parts."""

    role: v.RoleName
    content: Annotated[v.Text, BeforeValidator(_whole)]
    parts: Annotated[list[PartForm], BeforeValidator(_parts)] = Field(default_factory=list, alias="content")

    @model_validator(mode="after")
    def _shown_by_the_user(self) -> "MessageForm":
        if self.role != "user" and any(part.type != "text" for part in self.parts):
            raise ValueError("only a message of the role user can show an image or a document")
        return self


class ToolResultForm(Form):
    """What a scripted tool gives."""

    args_match: v.JsonObject = Field(default_factory=dict)
    result: v.AnyJson


class ToolForm(Form):
    """A tool with scripted results."""

    name: v.ToolName
    description: v.Text = ""
    parameters: v.JsonObject | None = None
    results: list[ToolResultForm] = Field(default_factory=list)


class InputForm(Form):
    """What is asked."""

    messages: list[MessageForm] = Field(min_length=1)
    follow_ups: list[v.Word] = Field(default_factory=list)
    context: v.AnyJson = None
    env_overrides: dict[v.EnvironmentName, v.EnvironmentValue] = Field(default_factory=dict)
    tools: list[ToolForm] = Field(default_factory=list)


class ExpectationForm(Form):
    """A tool call that must be observed."""

    tool: v.Word = Field(validation_alias=AliasChoices("tool", "name", "tool_name"))
    args_match: v.JsonObject = Field(default_factory=dict)
    order: ToolOrder = ToolOrder.SUBSEQUENCE


class CheckForm(Form):
    """One thing that must hold of an answer."""

    kind: CheckKind
    value: v.Text | None = None
    field: v.Text | None = None
    inline_schema: v.JsonObject | None = Field(default=None, alias="schema")
    schema_file: v.Word | None = None
    golden_path: v.Word | None = None
    golden_threshold: v.Share | None = None
    golden_normalize_whitespace: v.Truth | None = None
    turn: v.Count | None = None

    @model_validator(mode="after")
    def _complete(self) -> "CheckForm":
        if self.value is None and self.kind not in _WITHOUT_VALUE:
            raise ValueError(f"a check of the kind {self.kind} needs a value")
        if self.kind is CheckKind.JSON_SCHEMA and (self.inline_schema is None) == (self.schema_file is None):
            raise ValueError("a check of the kind json_schema needs either schema or schema_file")
        if unused := self._unused():
            raise ValueError(f"a check of the kind {self.kind} does not use {unused}")
        return self

    def _unused(self) -> str:
        """Return a field that is given and has no effect on a check of this kind."""
        schema = self.inline_schema is not None or self.schema_file is not None
        if schema and self.kind not in OF_JSON:
            return "schema" if self.inline_schema is not None else "schema_file"
        if self.inline_schema is not None and self.schema_file is not None:
            return "both schema and schema_file"
        if self.value and self.kind in OF_JSON:
            return "value"
        if self.golden_path is not None and self.kind is not CheckKind.GOLDEN_DIFF:
            return "golden_path"
        return ""


class RubricForm(Form):
    """One thing that a good answer has."""

    id: v.Word
    description: v.Text = ""
    weight: v.Weight = 1.0
    critical: v.Truth = False
    auto_check: CheckForm | None = None
    anchors: dict[v.Text, v.Word] = Field(default_factory=dict)


class ExpectedForm(Form):
    """What is expected of the answer."""

    tool_sequence: list[ExpectationForm] = Field(default_factory=list)
    output: list[CheckForm] = Field(default_factory=list)
    rubric: list[RubricForm] = Field(default_factory=list)


class EvaluatorForm(Form):
    """Who decides, and how."""

    evaluator: Evaluator | None = None
    golden_path: v.Word | None = None
    golden_threshold: v.Share | None = None
    golden_normalize_whitespace: v.Truth | None = None
    process_cmd: list[v.CommandWord] = Field(default_factory=list)
    judge_prompt: v.Text = ""
    effectiveness_threshold: v.Share | None = None


def _dataset(value: Any) -> Any:
    return {"file": value} if isinstance(value, str) else value


# Forms that were left out: made once, since making one costs as much as validating a whole message.
_NOTHING_EXPECTED = ExpectedForm()
_USUAL_EVALUATOR = EvaluatorForm()


class DatasetForm(Form):
    """Rows that become cases."""

    file: v.Word
    id: v.Word | None = None


# Words that say whether, and not why.
_NO_REASONS = frozenset({"true", "false", "yes", "no", "on", "off", "y", "n", "0", "1", "none", "null"})


def is_reason(value: Any) -> bool:
    """Return whether a value says why a case is skipped: text, and more than a truth value or a number."""
    return v.is_string(value) and any(map(str.isalnum, value)) and value.strip().casefold() not in _NO_REASONS


def _reason(value: Any) -> str:
    if not is_reason(value):
        raise ValueError("must say in words why the case is skipped; leave it out where the case is to run")
    return str(value)


class CaseForm(Form):
    """One case as it is written."""

    id: v.Word
    description: v.Text = ""
    tags: list[v.Word] = Field(default_factory=list)
    skip: Annotated[str, BeforeValidator(_reason)] | None = None
    timeout_secs: v.Seconds | None = None
    seed: v.Seed | None = None
    max_tokens: v.Count | None = None
    temperature: v.NotNegative | None = None
    threshold: v.Share | None = None
    accepts: Annotated[list[Literal["cut", "refused", "empty", "unfinished"]], BeforeValidator(v.one_or_more)] = Field(
        default_factory=list
    )
    agent: v.Word | None = None
    agents: v.Words = Field(default_factory=list)
    model_effort: ModelEffort | None = None
    variables: dict[v.Word, v.Text] = Field(default_factory=dict)
    dataset: Annotated[DatasetForm, BeforeValidator(_dataset)] | None = None
    input: InputForm
    expected: ExpectedForm = Field(default_factory=lambda: _NOTHING_EXPECTED)
    evaluator_config: EvaluatorForm = Field(default_factory=lambda: _USUAL_EVALUATOR)


class DefaultsForm(Form):
    """What holds for cases that say nothing else."""

    timeout_secs: v.Seconds | None = None
    tags: list[v.Word] = Field(default_factory=list)
    evaluator: Evaluator | None = None


class HeadForm(Form):
    """Everything in a suite but its cases."""

    schema_version: v.Version
    skill_or_agent: v.KebabName
    defaults: DefaultsForm = Field(default_factory=lambda: DefaultsForm())
    variables: dict[v.Word, v.Text] = Field(default_factory=dict)
    bundle_id: v.Text | None = None
    bundle_version: v.Text | None = None
    certification_track: Literal["none", "candidate", "stable", "trusted"] | None = None
    risk_tier: Literal["low", "medium", "high"] | None = None
    data_handling: Literal["synthetic-only", "no-pii", "pii-reviewed"] | None = None

    @property
    def bundle(self) -> dict[str, Json]:
        """What is said about the suite as a bundle."""
        names = ("bundle_id", "bundle_version", "certification_track", "risk_tier", "data_handling")
        return {name: value for name in names if (value := getattr(self, name)) is not None}
