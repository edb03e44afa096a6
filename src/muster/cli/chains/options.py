"""The options of `muster chain run` and `muster chain plan`; quick to load."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from muster.cli.line import Argument, Bundle, Option
from muster.cli.line.parameters import files
from muster.cli.options import (
    ConcurrencyOption,
    FallbackOption,
    ModeOption,
    PlanBudgetOption,
    PlanUnpricedOption,
    RunBudgetOption,
    RunNameOption,
    TimeoutOption,
    UnpricedOption,
)
from muster.domain.errors import BadArgument
from muster.domain.run import Dispatch, Fallback, Mode, mode_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainArguments:
    """Which chains are meant, and with which inputs."""

    files: tuple[Path, ...]
    given: Mapping[str, str]
    rows: Path | None = None


def chains_of(
    paths: Annotated[
        list[Path],
        Argument(
            metavar="FILE…",
            complete=files,
            help="Chains: files, or folders with a chain.yaml. Each becomes a separate run.",
        ),
    ],
    given: Annotated[
        list[str] | None, Option("--input", "-i", metavar="K=V", help="An input of the chain; repeatable.")
    ] = None,
    rows: Annotated[
        Path | None,
        Option(
            "--inputs",
            metavar="FILE",
            help="Run the chain once for each line of this file; a line is a JSON object with the inputs.",
        ),
    ] = None,
) -> ChainArguments:
    """Collect what was given."""
    if rows is not None and len(paths) > 1:
        raise BadArgument(
            "--inputs can be used with one chain only", suggestions=("run the other chains with separate commands",)
        )
    return ChainArguments(files=tuple(paths), given=dict(_pair(one) for one in given or ()), rows=rows)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise BadArgument(f"--input {text!r} has no value", suggestions=("write it like --input topic=bees",))
    return name, value


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainTerms:
    """How chains are run."""

    budget: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    concurrency: int = 20
    timeout: float | None = None
    dispatch: Dispatch
    detach: bool = False
    allow_unpriced: bool = False


TagOption = Annotated[list[str] | None, Option("--tag", metavar="T", help="A tag of the run; repeatable.")]
DetachOption = Annotated[bool, Option("--detach", help="Submit the run to workers instead of running it here.")]


def planned_terms_of(
    budget: PlanBudgetOption = None,
    dispatch: ModeOption = "live",
    fallback: FallbackOption = "fail",
    allow_unpriced: PlanUnpricedOption = False,
    name: RunNameOption = None,
    tag: TagOption = None,
    concurrency: ConcurrencyOption = 20,
    timeout: TimeoutOption = None,
    detach: DetachOption = False,
) -> ChainTerms:
    """Collect what was given about a chain that is only planned."""
    return terms_of(budget, name, tag, concurrency, timeout, dispatch, fallback, detach, allow_unpriced)


def terms_of(
    budget: RunBudgetOption = None,
    name: RunNameOption = None,
    tag: TagOption = None,
    concurrency: ConcurrencyOption = 20,
    timeout: TimeoutOption = None,
    dispatch: ModeOption = "live",
    fallback: FallbackOption = "fail",
    detach: DetachOption = False,
    allow_unpriced: UnpricedOption = False,
) -> ChainTerms:
    """Collect what was given."""
    mode = mode_of(dispatch)
    return ChainTerms(
        budget=budget,
        name=name,
        tags=tuple(tag or ()),
        concurrency=concurrency,
        timeout=timeout,
        dispatch=Dispatch(mode=Mode(mode), fallback=Fallback(fallback)),
        detach=detach,
        allow_unpriced=allow_unpriced,
    )


ChainOptions = Annotated[ChainArguments, Bundle(chains_of, "Inputs")]
ChainTermsOptions = Annotated[ChainTerms, Bundle(terms_of, "Run")]
ChainPlanOptions = Annotated[
    ChainTerms, Bundle(planned_terms_of, hidden=("--name", "--tag", "--concurrency", "--timeout", "--detach"))
]
