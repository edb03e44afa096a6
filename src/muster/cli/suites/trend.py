"""`muster trend`: how a suite did over its runs of one name."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from rich.text import Text

from muster.app import Muster
from muster.app.suites.values import SubjectStats, SuiteTrend, TrendPoint
from muster.app.views.suites import trend_view
from muster.cli.line import Argument
from muster.cli.options import LimitOption
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean
from muster.cli.terminal.table import Column, fitted
from muster.cli.terminal.times import local
from muster.domain.money import usd_format
from muster.text.words import percent

if TYPE_CHECKING:
    from rich.console import Console

MIN_MISSED = ("cases", "state", "cost", "baseline", "between")


def trend(
    common: CommonOptions,
    run: Annotated[
        str,
        Argument(metavar="RUN", complete="run_names", help="A suite run, or the name that its runs have in common."),
    ],
    limit: LimitOption = 30,
) -> None:
    """Show the history of a suite over runs with the same name: pass rates with intervals, costs, baselines.

    The newest runs are shown, the oldest of them first.
    """

    async def work(muster: Muster) -> SuiteTrend:
        return await muster.suites.trend(run, limit)

    found = with_muster(common, work)
    answer(common, trend_view(found), lambda console: _tell(console, found))


def _tell(console: "Console", found: SuiteTrend) -> None:
    rows = [(point, stats) for point in found.points for stats in _subjects(point)]
    costs = [0 if stats is None else stats.cost + stats.judge_cost for _, stats in rows]
    usd = usd_format(*costs)
    columns = [
        Column("started", [local(point.run.created_at) for point, _ in rows], right=False),
        Column("run", [point.run.id for point, _ in rows], right=False),
        Column("state", [str(point.run.state) for point, _ in rows], right=False),
        Column("subject", [_subject(stats) for _, stats in rows], right=False, folds=True),
        Column("passed", ["–" if stats is None else percent(stats.pass_rate) for _, stats in rows]),
        Column("between", [_interval(stats) for _, stats in rows]),
        Column("cases", ["0" if stats is None else f"{stats.run:,}" for _, stats in rows]),
        Column("cost", [usd(cost) for cost in costs]),
        Column("baseline", [Text(clean(", ".join(point.baselines))) for point, _ in rows], right=False),
    ]
    console.print(fitted(columns, MIN_MISSED, console.width))


def _subjects(point: TrendPoint) -> Iterator[SubjectStats | None]:
    """Yield the subjects of a run; one of which nothing is known still has a row."""
    yield from point.subjects or (None,)


def _subject(stats: SubjectStats | None) -> Text:
    return Text("" if stats is None else clean(stats.subject))


def _interval(stats: SubjectStats | None) -> str:
    found = None if stats is None else stats.pass_interval
    return "" if found is None else f"{percent(found.low)}–{percent(found.high)}"
