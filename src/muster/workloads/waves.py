"""The waves workload: agents that verify code. A wave is run only when the one before it has passed."""

from typing import Any

import msgspec

from muster.domain.canonical import Json
from muster.domain.source import Snapshot
from muster.domain.verification import Verification
from muster.domain.waves import CLEARED, CLEARING, SECRETS, Ending, WaveReport
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.formats.waves.markers import clear_markers, done_markers
from muster.formats.waves.spec import read_spec
from muster.workloads.waves_arranging import Arrangement
from muster.workloads.waves_reading import read_in, sources_of
from muster.workloads.waves_wave import run_wave


@workload("waves")
async def waves(ctx: Context, spec: Any) -> Json:
    """Verify files in waves, and say what came of it."""
    wanted = read_spec(spec)
    snapshot = await read_in(ctx, wanted)
    arrangement = Arrangement(wanted, await sources_of(ctx, snapshot))
    await ctx.emit("waves/told", "waves.started", {"files": len(snapshot.files), "waves": list(arrangement.waves)})
    reports: list[WaveReport] = []
    for number in arrangement.waves:
        reports.append(await run_wave(ctx, wanted, arrangement, number, tuple(reports)))
        if not reports[-1].passed and not wanted.keep_going:
            break
    return await _conclude(ctx, wanted, snapshot, arrangement, reports)


async def _conclude(
    ctx: Context, wanted: Verification, snapshot: Snapshot, arrangement: Arrangement, reports: list[WaveReport]
) -> Json:
    """Say how it ended: it passed only if every wave did and no file was left to nobody."""
    done = [report.wave for report in reports]
    passed = bool(reports) and all(report.passed for report in reports) and done == list(arrangement.waves)
    passed = passed and _somebody_looked(reports) and bool(snapshot.files) and not arrangement.unseen
    cleared = await _clear(ctx, wanted, snapshot) if passed and wanted.whole else []
    return {
        "passed": passed,
        "files": len(snapshot.files),
        "unseen": list(arrangement.unseen),
        "waves": {str(report.wave): report.passed for report in reports},
        "not_started": [wave for wave in arrangement.waves if wave not in done],
        "findings": sum(report.counts.total for report in reports),
        "rejected": sum(report.counts.rejected for report in reports),
        "cleared": cleared,
    }


def _somebody_looked(reports: list[WaveReport]) -> bool:
    agents = (agent for report in reports for agent in report.agents)
    return any(agent.ending is Ending.PASSED and agent.agent != SECRETS for agent in agents)


async def _clear(ctx: Context, wanted: Verification, snapshot: Snapshot) -> Json:
    """Remove the markers of files that have passed, as they are on disk now."""
    if not wanted.markers:
        return []
    # Which they are is kept first: whoever goes on after a crash knows that those that are gone were removed by us.
    noted = await ctx.step(CLEARING, lambda: msgspec.to_builtins(done_markers(wanted, snapshot)))
    return await ctx.step(CLEARED, lambda: msgspec.to_builtins(clear_markers(wanted, snapshot, noted)))
