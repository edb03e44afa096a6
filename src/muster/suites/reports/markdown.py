"""The report as Markdown for a pull request: short, and safe whatever models have written."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TextIO

from muster.domain.money import show_usd
from muster.domain.run import AT_WORK
from muster.reporting.markdown import block, in_cell, in_html, inline
from muster.suites.reports.figures import figures, score_of, steadiness
from muster.suites.reports.rows import WORDS
from muster.suites.reports.run import SuiteRun
from muster.suites.reports.summary import CaseLine, SubjectLine, SuiteReport
from muster.text.words import count, percent, seconds_of

MAX_REPORT = 60_000  # characters; comments of pull requests may have 65,536
MAX_SUBJECTS = 50
ROOM = 2_000  # characters for what waits, at least


async def write_markdown(suite: SuiteRun, report: SuiteReport, out: TextIO) -> None:
    """Write the report."""
    out.write(markdown(report))


def markdown(report: SuiteReport) -> str:
    """Return the report; what does not fit is counted."""
    head = "\n".join(_head(report))
    room = MAX_REPORT - len(head)
    parts, left = [], report.not_passed
    for trouble in report.troubles:
        part = _trouble(trouble)
        if len(part) > room:
            break
        parts.append(part)
        room -= len(part)
        left -= 1
    shown = f"### {report.not_passed:,} did not pass\n\n" if report.not_passed else ""
    more = f"… and {left:,} more that did not pass: {_command(report)}\n" if left else ""
    return f"{head}\n{shown}{''.join(parts)}{more}{_waits(report, room)}"


def _waits(report: SuiteReport, room: int) -> str:
    """Name what has no result yet; when there is not enough room for all the others are counted."""
    if not report.waiting:
        return ""
    lines, room = [], max(room, ROOM)
    for line in report.waits:
        text = f"- {inline(line.case, 200)} · {inline(line.subject, 200)}\n"
        room -= len(text)
        if room < 0:
            break
        lines.append(text)
    left = report.waiting - len(lines)
    more = f"\n… and {left:,} more that wait: {_command(report)}\n" if left else ""
    what = "still to come" if report.run.state in AT_WORK else "waiting for a batch"
    return f"### {report.waiting:,} {what}\n\n{''.join(lines)}{more}"


def _sign(report: SuiteReport) -> str:
    return "✅" if report.ok else "⏳" if report.pending else "❌"


def _command(report: SuiteReport) -> str:
    return f"`muster report {report.run.id} --format html -o report.html`"


def _head(report: SuiteReport) -> Iterator[str]:
    run = report.run
    yield f"## {_sign(report)} {inline(run.title)}\n"
    yield f"**{_safe_verdict(report)}**\n"
    thinks = any(line.stats.thinking_tokens for line in report.subjects)
    yield f"| Subject | Passed | 95% interval | Score | p50 | p95 |{' Thinking |' if thinks else ''} Cost |"
    yield f"|---|---:|---|---:|---:|---:|---:|{'---:|' if thinks else ''}"
    for line in report.subjects[:MAX_SUBJECTS]:
        yield _subject(line, thinks)
    if len(report.subjects) > MAX_SUBJECTS:
        yield f"| … and {len(report.subjects) - MAX_SUBJECTS:,} more | | | | | | |{' |' if thinks else ''}"
    yield ""
    for line in report.subjects[:MAX_SUBJECTS]:
        if words := steadiness(line.stats):
            yield f"{inline(line.label)}: {words}\n"
    for warning in report.warnings:
        yield f"> ⚠️ {warning}"
    if report.warnings:
        yield ""
    yield f"<sub>run {run.id} · {' · '.join(_facts(report))}</sub>\n"


def _safe_verdict(report: SuiteReport) -> str:
    """Return the verdict; why a run stopped is untrusted text."""
    error = report.run.error
    return replace(report, run=replace(report.run, error=inline(error, 300) if error else "")).verdict


def _facts(report: SuiteReport) -> Iterator[str]:
    run = report.run
    yield count(report.cases, "case")
    if run.epochs > 1:
        yield count(run.epochs, "epoch")
    if run.judge:
        yield f"judge {inline(run.judge)}"
    if run.seconds is not None:
        yield seconds_of(run.seconds)
    yield show_usd(run.cost)
    yield from (f"{show_usd(saved)} saved by {name}" for name, saved in run.savings)


def _subject(line: SubjectLine, thinks: bool) -> str:
    found = figures(line)
    place = f"{line.rank}. " if line.rank is not None else ""
    cells = [
        f"{place}{in_cell(line.label)}",
        f"{percent(found.rate)} ({found.passed}/{found.cases})",
        found.interval() + ("" if line.rank is None or line.told_apart else ", intervals overlap"),
        score_of(found.score),
        seconds_of(found.p50),
        seconds_of(found.p95),
        *([f"{found.thinking:,}"] if thinks else []),
        show_usd(found.cost),
    ]
    return f"| {' | '.join(cells)} |"


def _trouble(trouble: CaseLine) -> str:
    score = "" if trouble.score is None else f" · score {trouble.score:.2f}"
    title = f"{WORDS[trouble.status]} · {in_html(trouble.case)} · {in_html(trouble.subject)}{score}"
    reasons = "\n".join(trouble.reasons) or trouble.why
    place = f"{inline(f'{trouble.file}:{trouble.line}', 200)}"
    return f"<details><summary>{title}</summary>\n\n{place}\n\n{block(reasons)}\n\n</details>\n\n"
