"""What is said to ask one question: every field, once. Quick to load: commands read it for their help."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from muster.domain.canonical import Json
from muster.domain.doors import REMOTE, Door
from muster.domain.order import FieldForm, OrderField
from muster.domain.run_order import EffortField, FilesField, LimitedRunOrder, SamplingFields

MAX_PROMPT = 10_000_000  # characters; servers take less in one request


@dataclass(frozen=True, kw_only=True)  # without slots: orders have several bases
class QuestionFields(SamplingFields):
    """What is asked of whom: shared by an order and the question that it becomes."""

    said: ClassVar = {"max_tokens": {"tool": "The most tokens that the reply may have."}}

    agent: Annotated[
        str,
        OrderField(
            help="A model such as anthropic/MODEL or openai/MODEL, an agent of muster.toml, or sim/echo.",
            tool="The name of an agent; `overview` lists them. NAME+high lets a model think more.",
            form=FieldForm.AGENT,
            argument=True,
            metavar="AGENT",
            min_length=1,
            max_length=200,
        ),
    ]
    prompt: Annotated[
        str | None,
        OrderField(
            help="The prompt. If it is - or left out, it is read from standard input.",
            tool="The whole question: the agent sees nothing else.",
            argument=True,
            metavar="PROMPT",
            when_more="quote the prompt",
            piped=True,
            min_length=1,
            max_length=MAX_PROMPT,
            required_at=REMOTE,
        ),
    ] = None
    system: Annotated[
        str,
        OrderField(
            help="The system prompt.",
            tool="Standing instructions for the agent.",
            metavar="TEXT",
            max_length=MAX_PROMPT,
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOrder(QuestionFields, FilesField, EffortField, LimitedRunOrder):
    """One question to one agent."""

    said: ClassVar = {
        "files": {"help": "Show the agent an image (PNG, JPEG, GIF, WebP) or a PDF with the prompt; repeatable."}
    }

    example: ClassVar = {"agent": "sim/echo", "prompt": "Hello"}

    without: ClassVar = {"concurrency": frozenset({Door.COMMAND}), "timeout_secs": frozenset({Door.TOOL})}  # one call

    output_schema: Annotated[
        Mapping[str, Json] | None,
        OrderField(
            help="A JSON Schema that the reply must fit.",
            tool="A JSON Schema that the reply must fit.",
            alias="schema",
            doors=REMOTE,
        ),
    ] = None
