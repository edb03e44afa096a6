"""The forms of chain.yaml: which keys there are and what stands under them."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from muster.domain.isolation import Isolation
from muster.domain.money import MAX_USD
from muster.pool.chains.chain import MAX_BACKOFF, MAX_RETRIES, USUAL_BACKOFF
from muster.text import forms as v
from muster.text.forms import Form


def _no_shell(value: Any) -> Any:
    if isinstance(value, str):
        raise ValueError("must be a list of strings, [program, argument, …]; no shell is used")
    return value


ArgumentList = Annotated[list[v.CommandWord], BeforeValidator(_no_shell), Field(min_length=1)]
Retries = Annotated[v.Natural, Field(le=MAX_RETRIES)]
Backoff = Annotated[v.NotNegative, Field(le=MAX_BACKOFF)]
Dollars = Annotated[v.Number, Field(gt=0, le=MAX_USD)]


class ChainInputForm(Form):
    """One input."""

    required: v.Truth = False
    default: v.AnyJson = ""


class StepForm(Form):
    """One step."""

    name: v.Text
    prompt: v.Text | None = None
    command: ArgumentList | None = None
    agent: v.String | None = None
    system: v.Text | None = None
    model: v.String | None = None
    tools: list[v.ToolName] = Field(default_factory=list)
    max_tokens: v.Count | None = None
    budget_usd: Dollars | None = None
    timeout_secs: v.Seconds | None = None
    dispatch: Literal["live", "flex", "batch"] | None = None
    when: v.Text | None = None
    for_each: v.String | None = None
    extract: dict[str, v.Text] = Field(default_factory=dict)
    schema_file: v.String | None = Field(default=None, alias="schema")
    retries: Retries = 0
    backoff_secs: Backoff = USUAL_BACKOFF
    recovery: v.Text | None = None
    check: ArgumentList | None = None


class GroupForm(Form):
    """Steps that are run at the same time."""

    parallel: list[StepForm] = Field(min_length=1)


class ChainForm(Form):
    """Everything in the file but its steps."""

    version: v.Version = 1
    name: v.KebabName
    agent: v.String | None = None
    isolation: Isolation | None = None
    inputs: dict[str, ChainInputForm] = Field(default_factory=dict)


TOP = (*ChainForm.model_fields, "steps")
INPUT = tuple(ChainInputForm.model_fields)
STEP = tuple(info.alias or name for name, info in StepForm.model_fields.items())
GROUP = tuple(GroupForm.model_fields)
