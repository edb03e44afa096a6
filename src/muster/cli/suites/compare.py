"""`muster compare`: whether B is better or worse than A, or nobody can tell."""

from typing import TYPE_CHECKING, Annotated, Any

from muster.cli.frame import command, group, with_muster
from muster.cli.line import Argument, Option
from muster.cli.terminal.output import OutputOptions, answer, fail_with, note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from muster.app import Muster
    from muster.app.reviews import NamedRun
    from muster.app.suite_values import RunComparison
    from muster.domain.run import Run


TERMINAL, MARKDOWN = "terminal", "markdown"
OK, FAIL = "ok", "fail"

_SIDE = "A run, a baseline, or a file of `muster runs export`; RUN:SUBJECT is one subject of it."


def compare(
    manner: OutputOptions,
    a: Annotated[str, Argument(metavar="A", help=_SIDE)],
    b: Annotated[str, Argument(metavar="B", help="The same: what is compared with A.")],
    threshold: Annotated[
        float, Option("--threshold", metavar="SHARE", help="Differences below this do not matter.")
    ] = 0.05,
    alpha: Annotated[float, Option("--alpha", metavar="SHARE", help="How often a false alarm is acceptable.")] = 0.05,
    margin: Annotated[
        float | None,
        Option("--margin", metavar="SHARE", help="Ask whether B is not worse than A by more than this, like 0.05."),
    ] = None,
    inconclusive: Annotated[
        str, Option("--inconclusive", metavar="ok|fail", help="Whether too little evidence exits 0 or 1.")
    ] = FAIL,
    subject: Annotated[str | None, Option("--subject", metavar="SUBJECT", help="Only this subject of both.")] = None,
    format_: Annotated[str, Option("--format", metavar="FORMAT", help="terminal or markdown.")] = TERMINAL,
) -> int:
    """Compare two suite runs, paired by case and epoch. Exits 1 when B is worse or the evidence is not enough."""
    from muster.app.suite_values import ComparisonTerms
    from muster.domain.errors import BadArgument

    if format_ not in (TERMINAL, MARKDOWN):
        raise BadArgument(f"there is no format {format_!r}", suggestions=(TERMINAL, MARKDOWN))
    if inconclusive not in (OK, FAIL):
        raise BadArgument(f"--inconclusive is {OK} or {FAIL}, not {inconclusive!r}", suggestions=(OK, FAIL))
    terms = ComparisonTerms(threshold=threshold, alpha=alpha, margin=margin, accept_unsure=inconclusive == OK)

    async def work(muster: "Muster") -> "RunComparison":
        return await muster.suites.compare(a, b, terms, subject=subject, on_note=lambda text: note(manner, text))

    return _tell(manner, with_muster(manner, work), format_)


def _tell(manner: OutputOptions, found: "RunComparison", format_: str) -> int:
    from muster.app.suite_values import comparison_json, comparison_markdown
    from muster.cli.suites.compare_table import tell_comparison

    data = comparison_json(found) | ({"markdown": comparison_markdown(found)} if format_ == MARKDOWN else {})
    if manner.json and not found.ok:
        code = str(found.verdict).replace(" ", "_")
        return fail_with(manner, {"code": code, "message": f"{found.verdict}: {found.why}", "suggestions": []}, 1, data)
    if format_ == MARKDOWN:
        answer(manner, data, lambda console: console.print(comparison_markdown(found), end="", soft_wrap=True))
    else:
        answer(manner, data, lambda console: tell_comparison(console, found))
    return 0 if found.ok else 1


NameArgument = Annotated[str, Argument(metavar="NAME", help="What the baseline is called.")]

app = group("Names for runs that others are compared with.")


@command(app, "set")
def set_baseline(
    manner: OutputOptions,
    name: NameArgument,
    run: Annotated[str, Argument(metavar="RUN|FILE", help="A run, or a file that `muster runs export` wrote.")],
) -> None:
    """Let a name stand for a run; a run from a file is imported, unless it is here already."""

    async def work(muster: "Muster") -> "Run":
        return await muster.suites.baselines.set(name, run)

    found = with_muster(manner, work, create=True)
    answer(manner, {"name": name, "run": found.id}, lambda console: console.print(f"{name} is now run {found.id}"))


@command(app, "list")
def list_baselines(manner: OutputOptions) -> None:
    """List all baselines."""

    from muster.app.views.suites import baseline_view

    async def work(muster: "Muster") -> "Sequence[NamedRun]":
        return await muster.suites.baselines.list()

    data = [baseline_view(one) for one in with_muster(manner, work)]

    def tell(console: "Console") -> None:
        if not data:
            note(manner, "there are no baselines yet; make one with: muster baseline set NAME RUN")
        else:
            console.print(_table(data))

    answer(manner, data, tell)


@command(app, "remove")
def remove(manner: OutputOptions, name: NameArgument) -> None:
    """Forget a name; the run stays."""

    async def work(muster: "Muster") -> None:
        await muster.suites.baselines.remove(name)

    with_muster(manner, work)
    answer(manner, {"removed": name}, lambda console: console.print(f"removed {name}", soft_wrap=True))


def _table(rows: list[dict[str, Any]]) -> Any:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from muster.cli.terminal.output import clean

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("baseline", "run", "called", "since"):
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(Text(clean(row["name"])), row["run"], Text(clean(row["run_name"] or "")), row["set_at"])
    return table
