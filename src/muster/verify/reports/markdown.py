"""The report as Markdown for a pull request: the verdict first, and safe whatever models have written."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TextIO, cast

from muster.domain.batch import BatchShare
from muster.domain.errors import NotFound
from muster.domain.money import show_usd
from muster.domain.run import Run, RunState
from muster.reporting.files import Redacting
from muster.reporting.markdown import block, in_cell, inline
from muster.text.secrets.redaction import MARK
from muster.text.words import count, moment, seconds_of
from muster.verify.findings.finding import RANKS, Counts, Finding, Merged
from muster.verify.findings.journal import AgentReport, Ending, WaveReport
from muster.verify.reports.run import WavesRun
from muster.verify.reports.summary import MAX_QUOTE, RejectedBy, VerifyReport, fine

MAX_REPORT = 60_000  # characters; comments of pull requests may have 65,536
MAX_ROWS = 50  # of the table
ROOM = 5_000  # characters for each list but that of the findings
MAX_FINDING = 600
MAX_REPLACEMENT = 1_500

HEAD = (
    "| Wave | Agent | Ended | Score | Coverage | Critical | High | Medium | Low | Rejected | Cost |",
    "|---:|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
)
SIGNS = {
    Ending.PASSED: "✅ passed",
    Ending.FAILED: "❌ failed",
    Ending.BROKEN: "💥 no report",
    Ending.IDLE: "– no file",
}

quoted = partial(inline, most=MAX_QUOTE)


async def write_markdown(waves: WavesRun, report: VerifyReport, out: TextIO) -> None:
    """Write the report."""
    out.write(markdown(report))


def markdown(report: VerifyReport) -> str:
    """Return the report; what does not fit is counted."""
    head = "\n".join(_head(report))
    foot = "\n".join([*rejected_lines(report.rejected), *_left_out(report), _foot(report)])
    found = "\n".join(finding_lines(report.merged, report.counts, MAX_REPORT - len(head) - len(foot)))
    return f"{head}\n{found}\n{foot}" if found else f"{head}\n{foot}"


def _head(report: VerifyReport) -> Iterator[str]:
    sign = "✅" if report.ok else "⏳" if report.pending else "❌"
    yield f"## {sign} {inline(report.run.title)}\n"
    yield f"**{report.sentence(quoted)}**\n"
    yield from agent_table(report.agents)
    ended = "⏳ waiting" if report.run.state is RunState.WAITING else "⏸ not started"
    for one in report.absent[:MAX_ROWS]:
        yield f"| {one.wave} | {in_cell(one.agent)} | {ended} |" + " |" * 8
    yield ""
    yield from threshold_lines(report.agents)
    yield from within([f"> ⚠️ {note}\n" for note in report.notes(quoted)], ROOM)


def agent_table(agents: Sequence[AgentReport]) -> Iterator[str]:
    """Write what became of agents as the lines of a table."""
    yield from HEAD
    for agent in agents[:MAX_ROWS]:
        yield _row(agent)
    if len(agents) > MAX_ROWS:
        yield f"| | … and {len(agents) - MAX_ROWS:,} more |" + " |" * 9


def _row(agent: AgentReport) -> str:
    counts = agent.counts
    cells = [
        str(agent.wave),
        in_cell(agent.agent),
        SIGNS[agent.ending],
        "–" if agent.score is None else f"{agent.score:.1f}",
        "–" if agent.coverage is None else f"{agent.coverage:.1f}%",
        *(f"{number:,}" for number in (counts.critical, counts.high, counts.medium, counts.low, counts.rejected)),
        show_usd(agent.cost),
    ]
    return f"| {' | '.join(cells)} |"


def threshold_lines(agents: Sequence[AgentReport]) -> Iterator[str]:
    """Write why agents did not pass: the thresholds that do not hold, and what they could not do."""
    lines = [line for agent in agents if not fine(agent) for line in _reasons(agent)]
    if lines:
        yield from [*within(lines, ROOM), ""]


def _reasons(agent: AgentReport) -> Iterator[str]:
    for held in agent.thresholds:
        if not held.holds and agent.ending is not Ending.BROKEN:  # of which nothing can be known
            yield f"- {inline(agent.agent)}: {quoted(held.expression)} is not met ({quoted(held.why)})"
    for failure in agent.failures:
        yield f"- {inline(agent.agent)}: {quoted(failure)}"


def finding_lines(merged: Sequence[Merged], counts: Counts, room: int) -> Iterator[str]:
    """Write findings by file; when there is not enough room for all the worst are written."""
    if not merged:
        return
    yield f"### {count(counts.total, 'finding')}: {spoken(counts)}\n"
    chosen = _fitting(merged, room)
    by_file: dict[str, list[Merged]] = {}
    for one in chosen:
        by_file.setdefault(one.finding.file, []).append(one)
    for file, found in by_file.items():
        yield f"#### {quoted(file)}\n"
        yield from (_finding(one) for one in sorted(found, key=_line))
        yield ""
    if len(chosen) < len(merged):
        yield f"… and {len(merged) - len(chosen):,} more, none of them worse.\n"


def spoken(counts: Counts) -> str:
    """Return how many there are of each severity."""
    found = [(severity, getattr(counts, severity)) for severity in RANKS]
    return ", ".join(f"{number:,} {severity}" for severity, number in found if number)


def _fitting(merged: Sequence[Merged], room: int) -> list[Merged]:
    """Take the worst as long as there is room for them, with the name of each file once."""
    files: set[str] = set()
    for taken, one in enumerate(merged):
        room -= len(_finding(one)) + 1
        if one.finding.file not in files:
            files.add(one.finding.file)
            room -= len(quoted(one.finding.file)) + 10
        if room < 200:  # for the last line
            return list(merged[:taken])
    return list(merged)


def _line(merged: Merged) -> tuple[int, int, int]:
    return merged.finding.line, merged.finding.end_line, RANKS[merged.finding.severity]


def _finding(merged: Merged) -> str:
    one = merged.finding
    facts = [f"**{one.severity}**", _lines(one), *(inline(name) for name in (one.cwe, one.rule) if name)]
    text = f"- {' · '.join(facts)} · by {', '.join(inline(name) for name in merged.by)}  \n"
    text += f"  {inline(one.finding, MAX_FINDING)}"
    text += f"  \n  Fix: {inline(one.fix, MAX_FINDING)}" if one.fix else ""
    return text + _replacement(one)


def _replacement(finding: Finding) -> str:
    """Write what the lines would become; a text from which a secret was taken would do harm in a file."""
    if finding.replacement is None or MARK in finding.replacement:
        return ""
    if not finding.replacement.strip():
        return f"  \n  Proposed: delete {_lines(finding)}"
    inside = block(finding.replacement, MAX_REPLACEMENT).replace("\n", "\n  ")
    return f"  \n  Proposed for {_lines(finding)}:\n\n  {inside}"


def _lines(finding: Finding) -> str:
    return f"line {finding.line}" if finding.line == finding.end_line else f"lines {finding.line} to {finding.end_line}"


def rejected_lines(rejected: Sequence[RejectedBy]) -> Iterator[str]:
    """Write findings that cannot be."""
    if not rejected:
        return
    yield f"### {len(rejected):,} rejected\n"
    yield from [*within([_rejected(one) for one in rejected], ROOM), ""]


def _rejected(one: RejectedBy) -> str:
    finding = one.rejected.finding
    place = quoted(f"{finding.file}:{finding.line}")
    return f"- {place} by {inline(one.agent)}: {quoted(one.rejected.why)}  \n  {quoted(finding.finding)}"


def _left_out(report: VerifyReport) -> Iterator[str]:
    for title, texts in (
        ("left out", [f"- {quoted(one.path)}: {quoted(one.why)}" for one in report.left_out]),
        ("not verified", [f"- {quoted(path)}" for path in report.unseen]),
    ):
        if texts:
            yield f"<details><summary>{count(len(texts), 'file')} {title}</summary>\n"
            yield from [*within(texts, ROOM), "\n</details>\n"]


def within(lines: Sequence[str], room: int) -> Iterator[str]:
    """Yield the lines that there is room for, and how many more there are."""
    for given, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            yield f"- … and {len(lines) - given:,} more"
            return
        yield line


def _foot(report: VerifyReport) -> str:
    run, cost = report.run, report.run.cost
    facts = [f"run {run.id}", count(len(report.files), "file"), run.dispatch, seconds_of(run.seconds)]
    facts.append(show_usd(cost.known))
    if cost.has_savings:
        facts.append(f"{show_usd(cost.live)} live")
    if report.cleared:
        facts.append(f"{count(len(report.cleared), 'marker')} cleared")
    return f"<sub>{' · '.join(facts)}</sub>\n"


MAX_OF_A_WAVE = 1_000_000  # characters of findings


def wave_file_name(run: Run, wave: int) -> str:
    """Name the file of a wave: by name files are sorted by time."""
    at = datetime.fromtimestamp(run.created_at if run.started_at is None else run.started_at, UTC)
    return f"{at:%Y%m%dT%H%M%SZ}-{run.id}-wave-{wave:02d}.md"


async def write_wave(report: VerifyReport, wave: int, out: TextIO) -> None:
    """Write the report of a wave; raises NotFound for one that has none."""
    found = next((one for one in report.waves if one.wave == wave), None)
    if found is None:
        raise NotFound(f"run {report.run.id} has no report of wave {wave}")
    cast(TextIO, Redacting(out)).write("\n".join(_wave_lines(report, found)) + "\n")


def _wave_lines(report: VerifyReport, wave: WaveReport) -> Iterator[str]:
    yield f"## {'✅' if wave.passed else '❌'} Wave {wave.wave} of {inline(report.run.title)}\n"
    yield f"**{_verdict(wave)}**\n"
    yield from agent_table(wave.agents)
    yield ""
    yield from threshold_lines(wave.agents)
    for held in wave.thresholds:
        yield f"- {quoted(held.expression)} {'holds' if held.holds else 'does not hold'} ({quoted(held.why)})"
    yield ""
    yield from finding_lines(wave.merged, wave.counts, MAX_OF_A_WAVE)
    yield from rejected_lines([one for one in report.rejected if one.wave == wave.wave])
    yield from _money(wave, report.batches.get(wave.wave, ()))
    took = seconds_of(max(0.0, wave.ended_at - wave.started_at))
    yield f"<sub>run {report.run.id} · {moment(wave.started_at)} · {took}</sub>"


def _money(wave: WaveReport, batches: Sequence[BatchShare]) -> Iterator[str]:
    """Write what the wave cost against what it would have cost live, and in which batches its calls were."""
    cost = sum(agent.cost for agent in wave.agents)
    if not batches:
        yield f"Cost: {show_usd(cost)}, nothing of it in batches.\n"
        return
    live = cost + sum(one.live_cost - one.cost for one in batches)
    yield f"Cost: {show_usd(cost)}; live it would have been {show_usd(live)}, so {show_usd(live - cost)} were saved.\n"
    for one in batches:
        known = f" ({inline(one.provider_id)} at the provider)" if one.provider_id else ""
        waits = f", {one.parked:,} of them without an outcome" if one.parked else ""
        money = f"{show_usd(one.cost)}, live {show_usd(one.live_cost)}"
        yield f"- batch `{one.batch}`{known}: {count(one.calls, 'call')}{waits}, {money}"
    yield ""


def _verdict(wave: WaveReport) -> str:
    if wave.passed:
        return "It passed."
    return f"It did not pass{f': {quoted(wave.why)}' if wave.why else ''}."
