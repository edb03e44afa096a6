"""A verification for a terminal: the verdict, who came to what, the worst findings, and what it cost."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from muster.app.verifications import LeftBehind
from muster.cli.clean import clean
from muster.cli.verify_words import left_out_by_why
from muster.domain.finding import Finding, Merged, Severity
from muster.domain.money import show_usd
from muster.domain.run import RunState
from muster.domain.waves import AgentReport, Ending
from muster.reports.waves.markdown import spoken
from muster.reports.waves.summary import Absent, VerifyReport
from muster.reports.words import count, one_line, seconds_of

MOST_FINDINGS = 20
MOST_REJECTED = 3
LONGEST = 500
MARGIN = 10  # columns left of what is said of a finding

COLOURS: Mapping[Ending, str] = {
    Ending.PASSED: "green",
    Ending.FAILED: "red",
    Ending.BROKEN: "red",
    Ending.IDLE: "bright_black",
}
SIGNS: Mapping[Ending, str] = {
    Ending.PASSED: "✓ passed",
    Ending.FAILED: "✗ failed",
    Ending.BROKEN: "! no report",
    Ending.IDLE: "- no file for it",
}
SHADES: Mapping[Severity, str] = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "bright_black",
}


def tell_report(console: Console, report: VerifyReport, reference: str, here: Path) -> None:
    """Print a report; `reference` names the run, or the file that it comes from, and files are named from `here`."""
    for line in _verdict(report):
        console.print(Text(clean(line), style="bold green" if report.ok else "bold red"))
    console.print(_agents(report))
    _tell_findings(console, report, here)
    for line in _remarks(report):
        console.print(Text(clean(line), style="yellow"))
    console.print(Text(" · ".join(_facts(report)), style="dim"))
    console.print(Text(f"to look closer: muster report {clean(reference)} --format markdown", style="dim"))


def _verdict(report: VerifyReport) -> list[str]:
    """Give the verdict; of several things that speak against a success, each on a line of its own."""
    flaws = list(report.flaws())
    if len(flaws) < 2:
        return [report.verdict]
    part = [f"This is only a part of the verification: {report.part()}."] if report.partial else []
    return [*(f"{flaw[:1].upper()}{flaw[1:]}." for flaw in flaws), *part]


def tell_left_behind(console: Console, left: LeftBehind, here: Path) -> None:
    """Print where the reports lie, as seen from `here`."""
    for name, path in (*(("report", path) for path in left.reports), ("log", left.log)):
        near = path.relative_to(here) if path.is_relative_to(here) else path
        console.print(Text(f"{name}: {clean(str(near))}", style="dim"), soft_wrap=True)


def _agents(report: VerifyReport) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("wave", justify="right", no_wrap=True)
    table.add_column("agent", overflow="fold", min_width=10)
    table.add_column("ended", no_wrap=True)
    for name in (*_figures(report), "crit", "high", "med", "low", "rejected", "cost"):
        table.add_column(name, justify="right", no_wrap=True)
    for agent in report.agents:
        table.add_row(*_agent(agent, report))
    for one in report.absent:
        table.add_row(*_absent(one, report))
    return table


def _figures(report: VerifyReport) -> list[str]:
    """Name the figures that somebody has told."""
    return [name for name in ("score", "coverage") if any(getattr(one, name) is not None for one in report.agents)]


def _agent(agent: AgentReport, report: VerifyReport) -> list[Text | str]:
    counts = agent.counts
    told = {
        "score": "" if agent.score is None else f"{agent.score:.1f}",
        "coverage": "" if agent.coverage is None else f"{agent.coverage:.0f}%",
    }
    return [
        str(agent.wave),
        Text(clean(agent.agent)),
        Text(SIGNS[agent.ending], style=COLOURS[agent.ending]),
        *(told[name] for name in _figures(report)),
        *(_number(getattr(counts, severity), SHADES[severity]) for severity in Severity),
        _number(counts.rejected, "magenta"),
        show_usd(agent.cost) if agent.cost else "",
    ]


def _number(number: int, style: str) -> Text:
    return Text(f"{number:,}", style=style if number else "bright_black")


def _absent(one: Absent, report: VerifyReport) -> list[Text | str]:
    words = "not started" if report.run.state is RunState.COMPLETED else "not done"
    return [str(one.wave), Text(clean(one.agent)), Text(words, style="bright_black")]


def _tell_findings(console: Console, report: VerifyReport, here: Path) -> None:
    if report.merged:
        console.print(Text(f"{count(report.counts.total, 'finding')}: {spoken(report.counts)}", style="bold"))
    for one in report.merged[:MOST_FINDINGS]:
        _tell_finding(console, one, Path(report.run.root), here)
    if (left := report.counts.total - MOST_FINDINGS) > 0:
        console.print(Text(f"… and {left:,} more that are no worse", style="dim"))
    if report.merged:
        console.print()
    _tell_rejected(console, report)


def _tell_finding(console: Console, merged: Merged, root: Path, here: Path) -> None:
    found = merged.finding
    facts = [", ".join(merged.by), *(name for name in (found.cwe, found.rule) if name)]
    head = Text(f"{found.severity:<{MARGIN}}", style=SHADES[found.severity])
    head.append(clean(_place(found, root, here)), style="bold")
    head.append(clean("  " + " · ".join(facts)), style="dim")
    console.print(head, soft_wrap=True)  # a place that is broken in two cannot be clicked on
    for text in (found.finding, f"fix: {found.fix}" if found.fix else ""):
        if text:
            console.print(Padding(Text(clean(one_line(text, LONGEST))), (0, 0, 0, MARGIN), expand=False))


def _place(finding: Finding, root: Path, here: Path) -> str:
    """Name the place of a finding so that a terminal finds it: from where the person is, if that is below the root."""
    file = finding.file
    if here != root and here.is_relative_to(root):
        file = os.path.relpath(root / file, here)
    return f"{file}:{finding.line}"


def _tell_rejected(console: Console, report: VerifyReport) -> None:
    number = report.counts.rejected
    if not number:
        return
    whose = "its place does" if number == 1 else "their places do"
    console.print(Text(f"{number:,} rejected, since {whose} not exist:", style="magenta"))
    for one in report.rejected[:MOST_REJECTED]:
        found = one.rejected.finding
        words = f"{found.file}:{found.line} by {one.agent}: {one.rejected.why}"
        console.print(Padding(Text(clean(one_line(words, LONGEST)), style="dim"), (0, 0, 0, 2), expand=False))
    if number > MOST_REJECTED:
        console.print(Text(f"  … and {number - MOST_REJECTED:,} more", style="dim"))
    console.print()


def _remarks(report: VerifyReport) -> Iterator[str]:
    """Say what was not done and why, and what else must be known."""
    failed = [wave.wave for wave in report.waves if not wave.passed]
    if report.not_started and failed:
        waves = ", ".join(map(str, report.not_started))
        yield f"not started: wave {waves}, since wave {failed[-1]} did not pass (--keep-going goes on all the same)"
    if report.left_out:
        yield left_out_by_why(report.left_out)
    yield from (f"note: {note}" for note in report.notes())


def _facts(report: VerifyReport) -> Iterator[str]:
    run, cost = report.run, report.run.cost
    yield f"run {run.id}"
    yield count(len(report.files), "file")
    yield run.dispatch
    if run.seconds is not None:
        yield seconds_of(run.seconds)
    yield show_usd(cost.known) + (f", live would have been {show_usd(cost.live)}" if cost.batches else "")
    if report.cleared:
        yield f"{count(len(report.cleared), 'marker')} cleared"
