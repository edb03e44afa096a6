"""The report of one wave as Markdown, for a folder in which they pile up."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TextIO, cast

from muster.domain.batch import BatchShare
from muster.domain.errors import NotFound
from muster.domain.money import show_usd
from muster.domain.run import Run
from muster.domain.waves import WaveReport
from muster.reports.markdown_text import inline
from muster.reports.waves.markdown import agent_table, finding_lines, quoted, rejected_lines, threshold_lines
from muster.reports.waves.summary import VerifyReport
from muster.reports.words import count, moment, seconds_of
from muster.reports.writing import Redacting

MOST = 1_000_000  # characters of findings


def wave_file_name(run: Run, wave: int) -> str:
    """Name the file of a wave: by name files are sorted by time."""
    at = datetime.fromtimestamp(run.created_at if run.started_at is None else run.started_at, UTC)
    return f"{at:%Y%m%dT%H%M%SZ}-{run.id}-wave-{wave:02d}.md"


async def write_wave(report: VerifyReport, wave: int, out: TextIO) -> None:
    """Write the report of a wave; raises NotFound for one that has none."""
    found = next((one for one in report.waves if one.wave == wave), None)
    if found is None:
        raise NotFound(f"there is no report of wave {wave} in run {report.run.id}")
    cast(TextIO, Redacting(out)).write("\n".join(_lines(report, found)) + "\n")


def _lines(report: VerifyReport, wave: WaveReport) -> Iterator[str]:
    yield f"## {'✅' if wave.passed else '❌'} Wave {wave.wave} of {inline(report.run.title)}\n"
    yield f"**{_verdict(wave)}**\n"
    yield from agent_table(wave.agents)
    yield ""
    yield from threshold_lines(wave.agents)
    for held in wave.thresholds:
        yield f"- {quoted(held.expression)} {'holds' if held.holds else 'does not hold'} ({quoted(held.why)})"
    yield ""
    yield from finding_lines(wave.merged, wave.counts, MOST)
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
