"""`muster compare`: whether B is better or worse than A, or nobody can tell."""

from typing import Annotated

from muster.app import Muster
from muster.app.suites.values import ComparisonTerms, Gate, RunComparison, comparison_markdown, comparison_view
from muster.app.views.errors import comparison_error
from muster.cli.line import Argument, Option
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, fail_with, note

TERMINAL, MARKDOWN = "terminal", "markdown"


OK, FAIL = "ok", "fail"
EXIT_CODES = {Gate.PASSED: 0, Gate.FAILED: 1, Gate.BLIND: 6}


_SIDE = "A run, a baseline, or a file of `muster runs export`; RUN:SUBJECT selects one of its subjects."


def compare(
    common: CommonOptions,
    a: Annotated[str, Argument(metavar="A", complete="run_names_or_files", help=_SIDE)],
    b: Annotated[str, Argument(metavar="B", complete="run_names_or_files", help="The run that is compared with A.")],
    threshold: Annotated[
        float,
        Option(
            "--threshold",
            metavar="SHARE",
            help="The smallest difference of scores that counts; of pass rates every one does that is not chance.",
        ),
    ] = 0.05,
    alpha: Annotated[float, Option("--alpha", metavar="SHARE", help="The accepted rate of false alarms.")] = 0.05,
    margin: Annotated[
        float | None,
        Option(
            "--margin",
            metavar="SHARE",
            shown="none",
            help="Pass if B is not worse than A by more than this, such as 0.05.",
        ),
    ] = None,
    notice: Annotated[
        float,
        Option("--notice", metavar="SHARE", help="The drop of the pass rate that runs must be able to notice."),
    ] = 0.20,
    inconclusive: Annotated[
        str | None,
        Option(
            "--inconclusive",
            values=(OK, FAIL),
            shown="ok if such a drop would be noticed, fail with --margin",
            help="Whether an inconclusive result passes.",
        ),
    ] = None,
    subject: Annotated[
        str | None, Option("--subject", metavar="SUBJECT", shown="all", help="Compare only this subject.")
    ] = None,
    format_: Annotated[str, Option("--format", values=(TERMINAL, MARKDOWN), help="The output format.")] = TERMINAL,
) -> int:
    """Compare two suite runs, paired by case and epoch. Exit 1 if B is worse, 6 if the runs could not have noticed."""
    accept = None if inconclusive is None else inconclusive == OK
    terms = ComparisonTerms(threshold=threshold, alpha=alpha, margin=margin, notice=notice, accept_unsure=accept)

    async def work(muster: Muster) -> RunComparison:
        return await muster.suites.compare(a, b, terms, subject=subject, on_note=lambda text: note(common, text))

    return _tell(common, with_muster(common, work), format_)


def _tell(common: CommonOptions, found: RunComparison, format_: str) -> int:
    from muster.cli.suites.compare_table import tell_comparison

    data = comparison_view(found, markdown=format_ == MARKDOWN)
    error = comparison_error(found)
    if common.json and error is not None:
        return fail_with(common, error, EXIT_CODES[found.gate], data)
    if format_ == MARKDOWN:
        answer(common, data, lambda console: console.print(comparison_markdown(found), end="", soft_wrap=True))
    else:
        answer(common, data, lambda console: tell_comparison(console, found))
    return EXIT_CODES[found.gate]
