"""The terms of a run, apart from what it is about: money, places, a name, and what it leaves behind."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from muster.cli.bundle import bundle
from muster.cli.line import Option

if TYPE_CHECKING:
    from muster.app import Muster
    from muster.app.run_options import RunOptions
    from muster.domain.run import Dispatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What was said on the command line."""

    budget: str | None = None
    concurrency: int = 20
    timeout: float | None = None
    name: str | None = None
    reports: tuple[str, ...] = ()
    allow_unpriced: bool = False

    def options(self, muster: "Muster", dispatch: "Dispatch") -> "RunOptions":
        """Return the options of the run."""
        return muster.runs.options(
            budget_usd=self.budget,
            name=self.name,
            timeout=self.timeout,
            concurrency=self.concurrency,
            dispatch=dispatch,
        )


def terms_with(formats: str) -> Callable[..., Terms]:
    """Make what collects the terms of runs that can be reported in these formats."""

    def terms_of(
        budget: Annotated[str | None, Option("--budget", metavar="USD", help="The most it may cost.")] = None,
        concurrency: Annotated[int, Option("--concurrency", metavar="N", min=1, help="How many calls at a time.")] = 20,
        timeout: Annotated[
            float | None, Option("--timeout", metavar="S", help="Seconds for the whole run, without waiting in line.")
        ] = None,
        name: Annotated[str | None, Option("--name", metavar="NAME", help="A name for the run.")] = None,
        report: Annotated[
            list[str] | None, Option("--report", metavar="FORMAT=FILE", help=f"{formats}; - is stdout.")
        ] = None,
        allow_unpriced: Annotated[
            bool, Option("--allow-unpriced", help="Ask models whose price is not known.")
        ] = False,
    ) -> Terms:
        """Collect what was given."""
        return Terms(
            budget=budget,
            concurrency=concurrency,
            timeout=timeout,
            name=name,
            reports=tuple(report or ()),
            allow_unpriced=allow_unpriced,
        )

    return terms_of


on_terms = bundle("terms", terms_with("json, junit, sarif, markdown or html"))
