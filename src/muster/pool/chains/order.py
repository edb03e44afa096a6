"""What is said to run a chain: every field, once. Quick to load: commands read it for their help."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, ClassVar

from muster.domain.canonical import Json
from muster.domain.doors import LOCAL, REMOTE, Door
from muster.domain.errors import BadArgument
from muster.domain.order import FieldForm, Name, OrderField
from muster.domain.run_order import EffortField, LimitedRunOrder, PlannedRun

MAX_INPUT = 1_000_000  # characters of all inputs of a chain, as JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainOrder(EffortField, LimitedRunOrder):
    """A run of a chain: of the library, or of files."""

    example: ClassVar = {"chain": "greet", "input": {"topic": "bridges"}}

    without: ClassVar = dict.fromkeys(("dispatch", "timeout_secs"), frozenset({Door.TOOL}))

    files: Annotated[
        tuple[Path, ...],
        OrderField(
            help="Chains: files, or folders with a chain.yaml. Each becomes a separate run.",
            form=FieldForm.PATH,
            argument=True,
            metavar="FILE…",
            doors=LOCAL,
            required_at=frozenset({Door.COMMAND}),
        ),
    ] = ()
    pairs: Annotated[
        tuple[str, ...],
        OrderField(
            help="An input of the chain; repeatable.",
            option=("--input", "-i"),
            metavar="K=V",
            doors=frozenset({Door.COMMAND}),
        ),
    ] = ()
    rows_file: Annotated[
        Path | None,
        OrderField(
            help="Run the chain once for each line of this file; a line is a JSON object with the inputs.",
            form=FieldForm.PATH,
            option=("--inputs",),
            metavar="FILE",
            doors=LOCAL,
        ),
    ] = None
    chain: Annotated[
        Name | None,
        OrderField(
            help="The chain of the library.",
            tool="The name of a chain; `overview` lists them.",
            form=FieldForm.CHAIN,
            doors=REMOTE,
            required_at=REMOTE,
        ),
    ] = None
    input: Annotated[
        Mapping[str, Json],
        OrderField(
            help="Values for the inputs that the chain declares, by name.",
            tool="Values for the inputs that the chain declares, by name; `overview` lists them.",
            max_json=MAX_INPUT,
            doors=REMOTE,
        ),
    ] = field(default_factory=dict)

    @property
    def inputs(self) -> Mapping[str, Json]:
        """The inputs, however they were given; raises BadArgument for a pair that is none."""
        return {**self.input, **dict(map(_pair, self.pairs))}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPlanOrder(PlannedRun, ChainOrder):
    """A chain that is only planned."""


def require_one_chain(order: ChainOrder) -> None:
    """Raise BadArgument for what can be said of one chain only."""
    if len(order.files) > 1 and order.rows_file is not None:
        raise BadArgument(
            "--inputs can be used with one chain only", suggestions=("run the other chains with separate commands",)
        )
    if len(order.files) > 1 and order.name is not None:
        raise BadArgument("--name can be used with one chain only")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadArgument(f"{text!r} has no value", argument="input", suggestions=("write it like --input topic=bees",))
    return name, value
