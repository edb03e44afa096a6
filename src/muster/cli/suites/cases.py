"""`muster cases`: the cases of a suite run page by page, filtered; and one of them in full."""

from typing import Annotated

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.app import Muster
from muster.app.suites.results import WholeCase
from muster.app.suites.values import (
    WORDS,
    CasePage,
    CaseRow,
    RowFilter,
    reasons,
    score_of,
)
from muster.app.views.suites import case_page_view, whole_case_view
from muster.cli.line import Argument, Option
from muster.cli.options import LimitOption
from muster.cli.session import with_muster
from muster.cli.suites.options import SuiteRunReference
from muster.cli.suites.table import COLOURS, SIGNS
from muster.cli.terminal.output import CommonOptions, answer, clean, note
from muster.domain.case import Status
from muster.domain.errors import BadArgument
from muster.text.words import choice_error, one_line

MAX_REASON = 200


def cases(
    common: CommonOptions,
    run: SuiteRunReference,
    case: Annotated[str | None, Argument(metavar="CASE", help="The id of a case, to show it in full.")] = None,
    status: Annotated[
        str | None, Option("--status", metavar="STATUS", values=Status, help="Only cases with this status.")
    ] = None,
    subject: Annotated[
        str | None,
        Option("--subject", metavar="SUBJECT", help="Only this subject: an agent, or an agent with a prompt."),
    ] = None,
    search: Annotated[
        str, Option("--search", metavar="TEXT", help="Only cases with this text in id, description, tags or reason.")
    ] = "",
    differing: Annotated[bool, Option("--differing", help="Only cases whose status differs between subjects.")] = False,
    after: Annotated[
        str | None,
        Option("--after", metavar="PLACE", help="Continue a list: the value printed at the end of the previous page."),
    ] = None,
    limit: LimitOption = 50,
) -> None:
    """List the cases of a suite run; with CASE, show one in full."""
    if case is not None:
        _show(common, run, case, subject)
        return
    wanted = RowFilter(statuses=_statuses(status), subject=subject, search=search, differing=differing)

    async def work(muster: Muster) -> CasePage:
        return await muster.suites.results.cases(run, wanted, after=after, limit=limit)

    found = with_muster(common, work)
    if not common.json and not found.rows:
        note(common, "no case fits" if wanted != RowFilter() else "the run has no case yet")
    answer(common, case_page_view(found), lambda console: _tell(console, found))
    if not common.json and found.next is not None:
        note(common, f"there are more: add --after {found.next}")


def _statuses(status: str | None) -> frozenset[Status]:
    if status is None:
        return frozenset()
    if status not in tuple(Status):
        raise BadArgument(choice_error(tuple(map(str, Status)), status), argument="status")
    return frozenset({Status(status)})


def _tell(console: Console, found: CasePage) -> None:
    if not found.rows:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("status", "case", "subject", "score", "why"):
        table.add_column(name, overflow="fold")
    for row in found.rows:
        table.add_row(
            _status(row),
            Text(clean(row.case.id)),
            Text(clean(row.subject)),
            score_of(row.score),
            Text(clean(one_line(row.why, MAX_REASON))),
        )
    console.print(table)


def _status(row: CaseRow) -> Text:
    return Text(f"{SIGNS[row.status]} {WORDS[row.status]}", style=COLOURS[row.status])


def _show(common: CommonOptions, run: str, case: str, subject: str | None) -> None:
    async def work(muster: Muster) -> WholeCase:
        return await muster.suites.results.case(run, case, subject)

    found = with_muster(common, work)
    answer(common, whole_case_view(found), lambda console: _tell_case(console, found))


def _tell_case(console: Console, found: WholeCase) -> None:
    row = found.row
    console.print(Text.assemble(_status(row), f" {clean(row.case.id)} by {clean(row.subject)}"), soft_wrap=True)
    if row.why:
        console.print(Text(clean(row.why)), soft_wrap=True)
    for result in row.results:
        console.print(Text(f"epoch {result.epoch}: {WORDS[result.status]}", style="bold"), soft_wrap=True)
        for line in reasons(result):
            console.print(Text(f"  {clean(line)}"), soft_wrap=True)
        console.print(Text(clean(found.answers[result.epoch])), soft_wrap=True)
