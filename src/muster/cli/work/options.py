"""The options of commands that are made from what kinds of work declare; quick to load."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Parameter, Signature
from typing import Annotated, Any

from muster.app.kinds import AppKind
from muster.cli.line import Bundle
from muster.cli.options import DetachOption, PatienceOptions, RunUnpricedOption, report_option
from muster.domain.patience import Patience
from muster.domain.run_order import RunOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkArguments:
    """What was said on the command line to start work of a kind."""

    known: AppKind
    order: RunOrder
    detach: bool
    allow_unpriced: bool
    patience: Patience
    reports: tuple[str, ...] = ()


def arguments_of(known: AppKind) -> Callable[..., WorkArguments]:
    """Return what makes the arguments of a command; its signature has the options."""

    def collect(*, reports: list[str] | None = None, **given: Any) -> WorkArguments:
        return WorkArguments(known=known, reports=tuple(reports or ()), **given)

    collect.__signature__ = Signature(list(_parameters(known)))  # type: ignore[attr-defined]  # what options are read from
    return collect


def _parameters(known: AppKind) -> tuple[Parameter, ...]:
    kind = known.kind
    order: Any = Annotated[known.order, Bundle(known.order, known.doors.heading or kind.title)]
    reports: Any = Annotated[list[str] | None, report_option(kind)]
    return (
        _parameter("order", order),
        _parameter("detach", DetachOption, default=False),
        *([] if kind.report is None else [_parameter("reports", reports, default=None)]),
        _parameter("allow_unpriced", RunUnpricedOption, default=False),
        _parameter("patience", PatienceOptions),
    )


def _parameter(name: str, annotation: Any, default: Any = Parameter.empty) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
