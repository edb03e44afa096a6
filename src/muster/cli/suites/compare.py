"""`muster compare`: whether B is better or worse than A, or nobody can tell."""

from typing import Annotated

from muster.app import Muster
from muster.app.suites.values import ComparisonTerms, RunComparison, comparison_markdown
from muster.app.views.errors import comparison_error
from muster.app.views.suites import comparison_view
from muster.cli.completion import run_names_or_files
from muster.cli.line import Argument, Option
from muster.cli.session import with_muster
from muster.cli.terminal.output import CommonOptions, answer, fail_with, note

TERMINAL, MARKDOWN = "terminal", "markdown"


OK, FAIL = "ok", "fail"


_SIDE = "A run, a baseline, or a file of `muster runs export`; RUN:SUBJECT selects one of its subjects."


def compare(
    common: CommonOptions,
    a: Annotated[str, Argument(metavar="A", complete=run_names_or_files, help=_SIDE)],
    b: Annotated[str, Argument(metavar="B", complete=run_names_or_files, help="The run that is compared with A.")],
    threshold: Annotated[
        float, Option("--threshold", metavar="SHARE", help="The smallest difference that counts.")
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
    inconclusive: Annotated[
        str, Option("--inconclusive", values=(OK, FAIL), help="The result when there is not enough evidence.")
    ] = FAIL,
    subject: Annotated[
        str | None, Option("--subject", metavar="SUBJECT", shown="all", help="Compare only this subject.")
    ] = None,
    format_: Annotated[str, Option("--format", values=(TERMINAL, MARKDOWN), help="The output format.")] = TERMINAL,
) -> int:
    """Compare two suite runs, paired by case and epoch. Exit 1 if B is worse or there is not enough evidence."""
    terms = ComparisonTerms(threshold=threshold, alpha=alpha, margin=margin, accept_unsure=inconclusive == OK)

    async def work(muster: Muster) -> RunComparison:
        return await muster.suites.compare(a, b, terms, subject=subject, on_note=lambda text: note(common, text))

    return _tell(common, with_muster(common, work), format_)


def _tell(common: CommonOptions, found: RunComparison, format_: str) -> int:
    from muster.cli.suites.compare_table import tell_comparison

    data = comparison_view(found, markdown=format_ == MARKDOWN)
    error = comparison_error(found)
    if common.json and error is not None:
        return fail_with(common, error, 1, data)
    if format_ == MARKDOWN:
        answer(common, data, lambda console: console.print(comparison_markdown(found), end="", soft_wrap=True))
    else:
        answer(common, data, lambda console: tell_comparison(console, found))
    return 0 if error is None else 1
