"""The waves workload: agents that verify code. A wave is run only when the one before it has passed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from muster.domain.canonical import Json
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.text import typed
from muster.verify.agents.checker import run_checker
from muster.verify.agents.model_agent import examine
from muster.verify.arrangement import Arrangement, ChunkUnit, read_in, sent_as, sources_of
from muster.verify.declaration.verification import SECRETS, Kind, Verification, Verifier
from muster.verify.findings.assessment import assess, check_secrets, conclude
from muster.verify.findings.finding import Examined
from muster.verify.findings.journal import (
    CLEARED,
    CLEARING,
    AgentReport,
    Ending,
    WaveReport,
    call_key,
    report_key,
)
from muster.verify.kind import VERIFICATION
from muster.verify.sources.markers import clear_markers, done_markers
from muster.verify.sources.source import VerifySnapshot
from muster.verify.spec import read_spec


@workload(VERIFICATION.workload, check=read_spec)
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
    ctx: Context, wanted: Verification, snapshot: VerifySnapshot, arrangement: Arrangement, reports: list[WaveReport]
) -> Json:
    """Return how it ended: it passed only if every wave did and every file was verified."""
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


async def _clear(ctx: Context, wanted: Verification, snapshot: VerifySnapshot) -> Json:
    """Remove the markers of files that have passed, as they are on disk now."""
    if not wanted.markers:
        return []
    # Which they are is kept first: whoever goes on after a crash knows that those that are gone were removed by us.
    noted = await ctx.step(CLEARING, lambda: typed.to_builtins(done_markers(wanted, snapshot)))
    return await ctx.step(CLEARED, lambda: typed.to_builtins(clear_markers(wanted, snapshot, noted)))


CACHE = "5m"  # the others are asked as soon as the first has answered

Said = Sequence[tuple[str, Examined]]  # by whom, and what


async def run_wave(
    ctx: Context, spec: Verification, arrangement: Arrangement, number: int, earlier: tuple[WaveReport, ...]
) -> WaveReport:
    """Return the report of a wave; one that stands in the journal is not made again."""

    async def work() -> Any:
        return typed.to_builtins(await _Wave(ctx, spec, arrangement, number).report(earlier))

    report = typed.convert(await ctx.step(report_key(number), work), WaveReport)
    await ctx.emit(f"wave/{number}/ended", "wave.ended", _told(report))
    return report


class _Wave:
    """A wave that is being run."""

    def __init__(self, ctx: Context, spec: Verification, arrangement: Arrangement, number: int) -> None:
        self._ctx, self._spec, self._arrangement, self._number = ctx, spec, arrangement, number

    async def report(self, earlier: tuple[WaveReport, ...]) -> WaveReport:
        """Ask everybody, and sum up."""
        verifiers = self._arrangement.of(self._number)
        started = await self._ctx.now(f"wave/{self._number}/started")
        parts = {one.name: self._arrangement.parts(one) for one in verifiers}
        begun = {"wave": self._number, "agents": [one.name for one in verifiers], "calls": sum(parts.values())}
        await self._ctx.emit(f"wave/{self._number}/begun", "wave.started", begun)
        heard = await self._hear(verifiers)
        reports = [assess(one, heard[one.name], chunks=parts[one.name]) for one in verifiers]
        return conclude(
            self._number,
            [*reports, *self._secrets()],
            self._spec.thresholds,
            earlier,
            last=self._number == self._arrangement.waves[-1],
            started_at=started,
            ended_at=await self._ctx.now(f"wave/{self._number}/over"),
        )

    def _secrets(self) -> list[AgentReport]:
        """Return what the checker of secrets has found, in the first wave that is run."""
        if self._number != self._arrangement.waves[0]:
            return []
        sources, spec = self._arrangement.sources, self._spec
        found = check_secrets(sources, spec, wave=self._number)
        return [] if found is None else [found]

    async def _hear(self, verifiers: Sequence[Verifier]) -> Mapping[str, Sequence[Examined]]:
        checkers = [one for one in verifiers if one.kind is Kind.COMMAND and self._arrangement.parts(one)]
        items: list[Verifier | ChunkUnit] = [*checkers, *self._arrangement.units(self._number, self._ctx.mode)]
        heard: dict[str, list[Examined]] = defaultdict(list)
        async for said in self._ctx.map(self._one, items):
            for name, examined in said:
                heard[name].append(examined)
        return heard

    async def _one(self, _: int, item: Verifier | ChunkUnit) -> Said:
        if isinstance(item, Verifier):
            key, files = call_key(self._number, item.name, "command"), self._arrangement.files(item)
            return [(item.name, await run_checker(self._ctx, item, self._spec.root, files, key=key))]
        alone = item.verifiers[: int(item.cached)]
        said = [await self._ask(one, item) for one in alone]
        return said + await self._ctx.gather(*(self._ask(one, item) for one in item.verifiers[len(alone) :]))

    async def _ask(self, verifier: Verifier, unit: ChunkUnit) -> tuple[str, Examined]:
        examined = await examine(
            self._ctx,
            verifier,
            unit.chunk,
            key=call_key(self._number, verifier.name, unit.chunk.name),
            dispatch=str(sent_as(self._spec, verifier, self._ctx.mode)),
            cache=CACHE if unit.cached else None,
            shared=self._spec.cache,
        )
        return verifier.name, examined


def _told(report: WaveReport) -> dict[str, Json]:
    return {
        "wave": report.wave,
        "passed": report.passed,
        "why": report.why,
        "agents": {one.agent: str(one.ending) for one in report.agents},
        "findings": report.counts.total,
        "rejected": report.counts.rejected,
    }
