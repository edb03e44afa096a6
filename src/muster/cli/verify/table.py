"""A verification for a terminal: the verdict, who came to what, the worst findings, and what it cost."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from muster.app.verify.request import AgentWork, LeftBehind
from muster.app.verify.values import AgentReport, Ending, Finding, Merged, Severity, VerifyReport, spoken
from muster.cli.pool.words import repository_lines
from muster.cli.terminal.output import clean
from muster.cli.terminal.table import Column, fitted
from muster.cli.verify.words import left_out_by_why
from muster.domain.money import usd_format
from muster.domain.run import RunState
from muster.text.words import count, one_line, seconds_of

MAX_FINDINGS = 20
MAX_DIFF_LINES = 200
MAX_REJECTED = 3
MAX_QUOTE = 500
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

TITLES: Mapping[Severity, str] = {
    Severity.CRITICAL: "crit",
    Severity.HIGH: "high",
    Severity.MEDIUM: "med",
    Severity.LOW: "low",
}
WIDE, NARROW = 24, 11  # columns for the names of agents, and for how they ended
MIN_MISSED = ("coverage", "rejected", "low", "med", "wave", "score", "high", "crit")


def tell_report(console: Console, report: VerifyReport, reference: str, here: Path) -> None:
    """Print a report; `reference` names the run, or the file that it comes from, and files are named from `here`."""
    for line in _verdict(report):
        console.print(Text(clean(line), style="bold green" if report.ok else "bold red"))
    console.print(_agents(report, console.width))
    _tell_findings(console, report, here)
    for line in _remarks(report):
        console.print(Text(clean(line), style="yellow"))
    console.print(Text(" · ".join(_facts(report)), style="dim"))
    console.print(Text(f"details: muster report {clean(reference)} --format markdown", style="dim"))


def _verdict(report: VerifyReport) -> list[str]:
    """Return the verdict; of several things that speak against a success, each on a line of its own."""
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


def tell_work(console: Console, work: AgentWork, *, accepted: bool) -> None:
    """Print what an agent changed, and how to go on with it."""
    for line in repository_lines(work.agent, work.repository):
        console.print(Text(clean(line), style="yellow"), soft_wrap=True)
    if not work.branch:
        return
    console.print(Text(clean(work.summary)), soft_wrap=True)
    _tell_diff(console, work.diff, work.task)
    if work.elsewhere:
        console.print("changed besides the files with findings:", soft_wrap=True)
        _tell_diff(console, work.elsewhere, work.task)
    if work.apart:
        console.print("restored, since it decides what is found; this was changed in it:", soft_wrap=True)
        _tell_diff(console, work.apart, work.task)
    if accepted:
        console.print(f"merge it with: muster task merge {work.task} --apply", soft_wrap=True)
    else:
        console.print(f"it is not accepted; its work is on {work.branch}", soft_wrap=True)


def _tell_diff(console: Console, diff: str, task: str) -> None:
    lines = diff.splitlines()
    console.out(clean("\n".join(lines[:MAX_DIFF_LINES])), highlight=False)
    if len(lines) > MAX_DIFF_LINES:
        console.print(f"… {len(lines) - MAX_DIFF_LINES:,} more lines: muster task diff {task}", soft_wrap=True)


def _agents(report: VerifyReport, width: int) -> Table:
    """Draw the agents; what there is no room for is left out, but never names, endings and costs."""
    agents, absent = report.agents, report.absent
    blank = [""] * len(absent)
    words = "not started" if report.run.state is RunState.COMPLETED else "not done"
    names = [*((one.wave, one.agent) for one in agents), *((one.wave, one.agent) for one in absent)]
    endings = [Text(SIGNS[agent.ending], style=COLOURS[agent.ending]) for agent in agents]
    endings += [Text(words, style="bright_black")] * len(absent)
    usd = usd_format(*(one.cost for one in agents))
    columns = [
        Column("wave", [str(wave) for wave, _ in names]),
        Column("agent", [Text(clean(name)) for _, name in names], right=False, folds=True, least=WIDE),
        Column("ended", endings, right=False, folds=True, least=NARROW),
        Column("score", ["" if one.score is None else f"{one.score:.1f}" for one in agents] + blank),
        Column("coverage", ["" if one.coverage is None else f"{one.coverage:.0f}%" for one in agents] + blank),
        *(_counted(title, agents, severity, SHADES[severity], len(absent)) for severity, title in TITLES.items()),
        _counted("rejected", agents, "rejected", "magenta", len(absent)),
        Column("cost", [usd(one.cost) if one.cost else "" for one in agents] + blank),
    ]
    told = [column for column in columns if column.name not in ("score", "coverage") or any(column.cells)]
    return fitted(told, MIN_MISSED, width)


def _counted(title: str, agents: Sequence[AgentReport], name: str, style: str, absent: int) -> Column:
    return Column(title, [*(_number(getattr(agent.counts, name), style) for agent in agents), *[""] * absent])


def _number(number: int, style: str) -> Text:
    return Text(f"{number:,}", style=style if number else "bright_black")


def _tell_findings(console: Console, report: VerifyReport, here: Path) -> None:
    if report.merged:
        console.print(Text(f"{count(report.counts.total, 'finding')}: {spoken(report.counts)}", style="bold"))
    for one in report.merged[:MAX_FINDINGS]:
        _tell_finding(console, one, Path(report.run.root), here)
    if (left := report.counts.total - MAX_FINDINGS) > 0:
        console.print(Text(f"… and {left:,} more, none of them worse", style="dim"))
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
            console.print(Padding(Text(clean(one_line(text, MAX_QUOTE))), (0, 0, 0, MARGIN), expand=False))


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
    for one in report.rejected[:MAX_REJECTED]:
        found = one.rejected.finding
        words = f"{found.file}:{found.line} by {one.agent}: {one.rejected.why}"
        console.print(Padding(Text(clean(one_line(words, MAX_QUOTE)), style="dim"), (0, 0, 0, 2), expand=False))
    if number > MAX_REJECTED:
        console.print(Text(f"  … and {number - MAX_REJECTED:,} more", style="dim"))
    console.print()


def _remarks(report: VerifyReport) -> Iterator[str]:
    """Return what was not done and why, and what else must be known."""
    failed = [wave.wave for wave in report.waves if not wave.passed]
    if report.not_started and failed:
        waves = ", ".join(map(str, report.not_started))
        yield f"not started: wave {waves}, since wave {failed[-1]} did not pass (use --keep-going to run it anyway)"
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
    usd = usd_format(cost.known, cost.live if cost.has_savings else None)
    yield usd(cost.known) + (f", live would have been {usd(cost.live)}" if cost.has_savings else "")
    if report.cleared:
        yield f"{count(len(report.cleared), 'marker')} cleared"
