"""`muster council` with `inject` and `stop`, and `muster trace`."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

from muster.app import Muster
from muster.app.councils import CouncilReport, CouncilSpec
from muster.app.reports import COUNCIL
from muster.app.runs.options import require_name
from muster.app.views.councils import council_view, signal_view
from muster.app.views.runs import details_view
from muster.cli.councils.options import CouncilArguments, CouncilChoice
from muster.cli.councils.order import COUNCILS
from muster.cli.councils.table import tell_trace
from muster.cli.line import Argument
from muster.cli.options import RunArgument, refuse_useless
from muster.cli.outcome import COUNCIL_FORMATS, drive_and_conclude, wanted_reports
from muster.cli.runs.words import event_line
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, clean, note
from muster.domain.entry import Signal
from muster.domain.errors import BadArgument
from muster.settings import parse_budget

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
MOST_EVENTS = 1000


def council(common: CommonOptions, arguments: CouncilArguments) -> int:
    """Let agents argue about a question."""
    choice, sending, terms, patience = arguments.choice, arguments.sending, arguments.terms, arguments.patience
    require_name(terms.name)
    parse_budget(terms.budget)
    refuse_useless(patience, batch=sending.batch)
    wanted = wanted_reports(terms.reports, COUNCIL_FORMATS, common, [str(file) for file in choice.files])
    question = _question(choice.question)

    async def work(muster: Muster) -> int:
        spec = spec_of(muster, choice, question)
        options = muster.runs.options(
            budget_usd=terms.budget, name=terms.name, concurrency=terms.concurrency, dispatch=sending.dispatch
        )
        handle = await muster.councils.start(spec, options, detach=sending.detach)
        note(common, f"started run {handle.id}; send its members a text with: muster council inject {handle.id} TEXT")
        return await drive_and_conclude(muster, handle, COUNCILS, wanted, common)

    return with_muster(common, work, allow_unpriced=terms.allow_unpriced, patience=patience, create=True)


def _question(given: str | None) -> str:
    if given not in (None, "-"):
        return given
    if sys.stdin is None or sys.stdin.isatty():
        raise BadArgument("no question given", suggestions=('muster council "QUESTION" --agent A --agent B',))
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeError:
        raise BadArgument("the question is not UTF-8") from None


def spec_of(muster: Muster, choice: CouncilChoice, question: str) -> CouncilSpec:
    """Return the council that is meant."""
    policy = None if choice.policy is None else muster.councils.load(choice.policy)
    return muster.councils.spec(
        question,
        choice.agents,
        policy=policy,
        files=choice.files,
        rounds=choice.rounds,
        min_rounds=choice.min_rounds,
        effort=choice.effort,
        timeout_secs=choice.timeout,
        seed=choice.seed,
        synthesis=choice.synthesis,
        baseline=choice.baseline,
    )


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

    async def work(muster: Muster) -> "tuple[dict[str, Any], CouncilReport | None, list[str]]":
        found = await muster.runs.find(run)
        if found.workload == COUNCIL:
            report = await muster.councils.trace_of(found)
            return council_view(report), report, []
        details = await muster.runs.details(found.id, events=MOST_EVENTS)
        return details_view(details, local=True), None, [clean(event_line(event)) for event in details.events or ()]

    data, report, lines = with_muster(common, work)

    def tell(console: "Console") -> None:
        if report is not None:
            tell_trace(console, report)
        else:
            console.print("\n".join(lines), soft_wrap=True)

    answer(common, data, tell)
