"""A suite run for a terminal: the subjects, what did not pass and why, and the verdict in one sentence."""

from collections.abc import Iterator, Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from muster.app.suites.values import (
    NOT_PASSED,
    ORDER,
    WORDS,
    CaseLine,
    Figures,
    SubjectLine,
    SuiteReport,
    figures,
    score_of,
    steadiness,
)
from muster.cli.terminal.output import clean
from muster.cli.terminal.table import Column, fitted
from muster.domain.case import Status
from muster.domain.money import usd_format
from muster.text.words import count, one_line, percent, seconds_of

MAX_TROUBLES = 50
MAX_REASON = 400
WIDE, WIDER, WIDEST = 100, 120, 140  # columns; below, some figures are left out
BAR = 16
SUBJECT = "subject"
MIN_MISSED = ("score from–to", "bar", "endings", "p95", "p50", "thinking", "score", "95% interval", "cost")
OVERLAP = "intervals overlap"
CLOSER = "see muster compare RUN:A RUN:B"

COLOURS: Mapping[Status, str] = {
    Status.PASSED: "green",
    Status.FAILED: "red",
    Status.ERROR: "red",
    Status.TIMED_OUT: "red",
    Status.FLAKY: "yellow",
    Status.UNJUDGED: "magenta",
    Status.WAITING: "blue",
    Status.SKIPPED: "bright_black",
}
SIGNS: Mapping[Status, str] = {
    Status.PASSED: "✓",
    Status.FAILED: "✗",
    Status.ERROR: "!",
    Status.TIMED_OUT: "!",
    Status.FLAKY: "~",
    Status.UNJUDGED: "?",
    Status.WAITING: "…",
    Status.SKIPPED: "-",
}


def tell_report(console: Console, report: SuiteReport, reference: str) -> None:
    """Print a report; `reference` names the run, or the file that it comes from."""
    console.print(_heading(report))
    console.print(_subjects(report, console.width))
    _tell_steadiness(console, report)
    listed = _listed(report)
    if listed:
        console.print(_cases(listed, console.width, many=len(report.subjects) > 1))
    if (left := report.not_passed - sum(line.status in NOT_PASSED for line in listed)) > 0:
        console.print(Text(f"… and {left:,} more that did not pass", style="dim"))
        console.print()
    for warning in report.warnings:
        console.print(Text(f"warning: {clean(warning)}", style="yellow"))
    if report.warnings:
        console.print()
    console.print(Text(clean(report.verdict), style=f"bold {_colour(report)}"))
    console.print(Text(f"details: muster report {clean(reference)} --format html -o report.html", style="dim"))


def _colour(report: SuiteReport) -> str:
    return "green" if report.ok else COLOURS[Status.WAITING] if report.pending else "red"


def _tell_steadiness(console: Console, report: SuiteReport) -> None:
    told = [(line.label, words) for line in report.subjects if (words := steadiness(line.stats))]
    for label, words in told:
        console.print(Text(f"{clean(label)}: {words}", style="dim"))
    if told:
        console.print()


def _heading(report: SuiteReport) -> Text:
    return Text.assemble((clean(report.run.title), "bold"), ("   " + " · ".join(_facts(report)), "dim"))


def _facts(report: SuiteReport) -> Iterator[str]:
    run = report.run
    yield f"run {run.id}"
    yield count(report.cases, "case") + (f" × {count(run.epochs, 'epoch')}" if run.epochs > 1 else "")
    if run.judge:
        yield f"judged by {clean(run.judge)}"
    if run.seconds is not None:
        yield seconds_of(run.seconds)
    usd = usd_format(run.cost, run.cap, *(saved for _, saved in run.savings))
    yield usd(run.cost) + (f" of {usd(run.cap)}" if run.cap is not None else "")
    yield from (f"{usd(saved)} saved by {name}" for name, saved in run.savings)


def _subjects(report: SuiteReport, width: int) -> Table:
    """Draw the subjects, the best first; what there is no room for is left out, but never their names."""
    table = fitted(_columns(report, width), MIN_MISSED, width)
    if any(_overlaps(line) for line in report.subjects):
        table.caption = f"{OVERLAP}: with that of the subject above, so the order may be chance;\n{CLOSER}"
        table.caption_justify = "left"
    return table


def _columns(report: SuiteReport, width: int) -> list[Column]:
    lines = report.subjects
    found = [figures(line) for line in lines]
    shades = ["green" if one.cases and one.passed == one.cases else "red" for one in found]
    columns = (
        [Column("place", [Text(f"{line.rank}.", style="dim") for line in lines], titled=False)]
        if len(lines) > 1
        else []
    )
    columns += [
        Column(SUBJECT, [_name(line) for line in lines], right=False, folds=True),
        Column("passed", [_passed(one, shade) for one, shade in zip(found, shades, strict=True)]),
    ]
    if width >= WIDER:
        bars = [_bar(one, shade) for one, shade in zip(found, shades, strict=True)]
        columns.append(Column("bar", bars, right=False, titled=False))
    columns.append(Column("95% interval", [Text(one.interval()) for one in found], right=False))
    columns.append(Column("score", [Text(score_of(one.score)) for one in found]))
    if width >= WIDEST:
        columns.append(Column("score from–to", [_spread(one) for one in found], titled=False))
    usd = usd_format(*(one.cost for one in found))
    columns += [
        Column("p50", [Text(seconds_of(one.p50)) for one in found]),
        Column("p95", [Text(seconds_of(one.p95)) for one in found]),
        *(
            [Column("thinking", [Text(f"{one.thinking:,}") for one in found])]
            if any(one.thinking for one in found)
            else []
        ),
        Column("cost", [Text(usd(one.cost)) for one in found]),
    ]
    return [
        *columns,
        *([Column("endings", [_strip(line) for line in lines], right=False, titled=False)] if width >= WIDE else []),
    ]


def _overlaps(line: SubjectLine) -> bool:
    return line.rank is not None and not line.told_apart


def _name(line: SubjectLine) -> Text:
    return Text.assemble(clean(line.label), (f"\n{OVERLAP}" if _overlaps(line) else "", "dim"))


def _passed(found: Figures, shade: str) -> Text:
    return Text.assemble((percent(found.rate), shade), (f"  {found.passed}/{found.cases}", "dim"))


def _spread(found: Figures) -> Text:
    low, high = score_of(found.score_low), score_of(found.score_high)
    return Text("" if found.score_low is None else f"{low}–{high}", style="dim")


def _bar(found: Figures, shade: str) -> Text:
    """Draw the pass rate as a dot in its interval, from 0 to 100 %."""
    if found.rate is None or found.low is None or found.high is None:
        return Text("")
    low, at, high = (round(share * (BAR - 1)) for share in (found.low, found.rate, found.high))
    cells = ["─" if low <= place <= high else "·" for place in range(BAR)]
    line = Text("".join(cells), style="dim")
    line.stylize(f"not dim {shade}", low, high + 1)
    return Text.assemble(line[:at], ("●", f"bold {shade}"), line[at + 1 :])


def _strip(line: SubjectLine) -> Text:
    """Draw how many cases ended how, as signs in colours."""
    text = Text()
    for status in reversed(ORDER):
        if number := line.counts.get(status, 0):
            text.append(f"{SIGNS[status]}{number:,} ", style=COLOURS[status])
    return text


def _cases(lines: tuple[CaseLine, ...], width: int, *, many: bool) -> Table:
    """Draw the cases: all of a short run, else those that did not pass."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("", no_wrap=True)
    room = max(18, width // 3)
    table.add_column("case", overflow="fold", max_width=room)
    table.add_column("score", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for line in lines:
        table.add_row(*_case(line, room, many=many))
    return table


def _listed(report: SuiteReport) -> tuple[CaseLine, ...]:
    """Return the cases that are drawn; of several subjects only what did not pass, since the rest would fill pages."""
    return report.lines if len(report.subjects) == 1 and report.lines else report.troubles[:MAX_TROUBLES]


def _case(line: CaseLine, room: int, *, many: bool) -> tuple[Text, Text, Text, Text]:
    status = Text(f"{SIGNS[line.status]} {WORDS[line.status]}", style=COLOURS[line.status])
    case = clean(line.case)
    # One that is too long is better broken after its suite than in the middle of a word.
    name = Text(case if len(case) <= room else case.replace("/", "/\n", 1), style="bold")
    if many:
        name.append(f"\n{_broken(clean(line.subject), room)}", style="not bold dim")
    return status, name, Text(score_of(line.score)), _why(line)


def _broken(label: str, room: int) -> str:
    """Break the name of a subject that is too long between provider, model and prompt."""
    return label if len(label) <= room else label.replace("/", "/\n", 1).replace("+", "\n+", 1)


def _why(line: CaseLine) -> Text:
    """Return why a case did not pass, and where it stands; of one that passed there is nothing to say."""
    why = Text(one_line(clean(line.why), MAX_REASON))
    if line.status is not Status.PASSED:
        why.append(f"\n{clean(line.file)}:{line.line}", style="dim")
    return why
