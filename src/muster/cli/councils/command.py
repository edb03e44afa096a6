"""`muster council inject` and `stop`, and `muster trace`; a start is made (`cli/work`)."""

from typing import TYPE_CHECKING, Annotated

from muster.app import Muster
from muster.app.councils.councils import CouncilReport, council_view
from muster.app.kinds import COUNCIL
from muster.app.views.councils import signal_view
from muster.app.views.runs import details_view
from muster.cli.councils.table import tell_trace
from muster.cli.line import Argument
from muster.cli.options import RunArgument
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean
from muster.cli.terminal.runs import event_line
from muster.domain.entry import Signal
from muster.text.views import Document, View

if TYPE_CHECKING:
    from rich.console import Console

CouncilArgument = Annotated[
    str,
    Argument(
        metavar="RUN",
        complete="run_names",
        help="Its id, the beginning of the id, its name, or `last`: the last council.",
    ),
]
MAX_EVENTS = 1000


def inject(
    common: CommonOptions,
    run: CouncilArgument,
    text: Annotated[str, Argument(metavar="TEXT", help="The text to send.")],
) -> None:
    """Send a text to all members of a council; they see it from their next phase on."""

    async def work(muster: Muster) -> Signal:
        return await muster.councils.inject(run, text)

    _tell_sent(common, with_muster(common, work), "the members see it in their next phase")


def stop(common: CommonOptions, run: CouncilArgument) -> None:
    """End a council with the best proposal so far."""

    async def work(muster: Muster) -> Signal:
        return await muster.councils.stop(run)

    _tell_sent(common, with_muster(common, work), "the council ends with the best proposal so far")


def _tell_sent(common: CommonOptions, sent: Signal, words: str) -> None:
    answer(common, signal_view(sent), lambda console: console.print(f"sent: {words}", soft_wrap=True))


def trace(common: CommonOptions, run: RunArgument) -> None:
    """Show a council round by round; for any other run, list its events."""

    async def work(muster: Muster) -> "tuple[View | Document, CouncilReport | None, list[str]]":
        found = await muster.runs.find(run)
        if found.workload == COUNCIL.workload:
            report = await muster.councils.trace_of(found)
            return council_view(report), report, []
        details = await muster.runs.details(found.id, events=MAX_EVENTS)
        return details_view(details, local=True), None, [clean(event_line(event)) for event in details.events or ()]

    data, report, lines = with_muster(common, work)

    def tell(console: "Console") -> None:
        if report is not None:
            tell_trace(console, report)
        else:
            console.print("\n".join(lines), soft_wrap=True)

    answer(common, data, tell)
