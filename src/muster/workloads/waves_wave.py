"""One wave: everybody looks at everything, and what they say comes to a report."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from muster.checks.findings.assessing import assess, conclude
from muster.checks.findings.secrets import check_secrets
from muster.domain.canonical import Json
from muster.domain.finding import Examined
from muster.domain.verification import Kind, Verification, Verifier
from muster.domain.waves import AgentReport, WaveReport, call_key, report_key
from muster.engine.context import Context
from muster.judges.findings.asking import examine
from muster.judges.findings.checker import run_checker
from muster.workloads.waves_arranging import Arrangement, Unit, sent_as

CACHE = "5m"  # the others are asked as soon as the first has answered

Said = Sequence[tuple[str, Examined]]  # by whom, and what


async def run_wave(
    ctx: Context, spec: Verification, arrangement: Arrangement, number: int, earlier: tuple[WaveReport, ...]
) -> WaveReport:
    """Give the report of a wave; one that stands in the journal is not made again."""

    async def work() -> Json:
        return msgspec.to_builtins(await _Wave(ctx, spec, arrangement, number).report(earlier))

    report = msgspec.convert(await ctx.step(report_key(number), work), WaveReport)
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
        found = check_secrets(self._arrangement.sources, self._spec.allow_secrets, wave=self._number)
        return [] if found is None else [found]

    async def _hear(self, verifiers: Sequence[Verifier]) -> Mapping[str, Sequence[Examined]]:
        checkers = [one for one in verifiers if one.kind is Kind.COMMAND and self._arrangement.parts(one)]
        items: list[Verifier | Unit] = [*checkers, *self._arrangement.units(self._number, self._ctx.mode)]
        heard: dict[str, list[Examined]] = defaultdict(list)
        async for said in self._ctx.map(self._one, items):
            for name, examined in said:
                heard[name].append(examined)
        return heard

    async def _one(self, _: int, item: Verifier | Unit) -> Said:
        if isinstance(item, Verifier):
            key, files = call_key(self._number, item.name, "command"), self._arrangement.files(item)
            return [(item.name, await run_checker(self._ctx, item, self._spec.root, files, key=key))]
        alone = item.verifiers[: int(item.cached)]
        said = [await self._ask(one, item) for one in alone]
        return said + await self._ctx.gather(*(self._ask(one, item) for one in item.verifiers[len(alone) :]))

    async def _ask(self, verifier: Verifier, unit: Unit) -> tuple[str, Examined]:
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
