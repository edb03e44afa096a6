"""A verification as it stands in the store. What every report of it is made from."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from muster.domain.canonical import Json
from muster.domain.errors import NotFound
from muster.domain.kind import require_kind
from muster.domain.run import Run
from muster.store.base import Store
from muster.text import typed
from muster.verify.declaration.verification import Verification, Verifier
from muster.verify.findings.journal import CLEARED, SNAPSHOT, WaveReport, files_key, report_key
from muster.verify.kind import VERIFICATION
from muster.verify.sources.source import Source, VerifySnapshot
from muster.verify.spec import read_spec

_SOURCES = tuple[Source, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WavesRun:
    """One verification: what was to be done, what was read in, and the waves of which there is a report."""

    store: Store
    run: Run
    spec: Verification
    snapshot: VerifySnapshot
    waves: tuple[WaveReport, ...]

    async def sources(self) -> AsyncIterator[Source]:
        """Yield the files as they were read, page by page; a page that is gone is left out."""
        for page in range(self.snapshot.pages):
            for source in typed.convert(await _value(self.store, self.run, files_key(page)) or (), _SOURCES):
                yield source

    async def cleared(self) -> tuple[str, ...]:
        """Return the markers that were removed."""
        return typed.convert(await _value(self.store, self.run, CLEARED) or (), tuple[str, ...])


async def open_waves_run(store: Store, run: Run) -> WavesRun:
    """Read what a run was about; raises BadArgument for a run of something else."""
    require_kind(run, VERIFICATION)
    spec, snapshot = read_spec(run.spec), await _value(store, run, SNAPSHOT)
    if snapshot is None:
        raise NotFound(
            f"run {run.id} stopped before its files were read; there is nothing to report",
            suggestions=(f"muster verify resume {run.id}",),
        )
    waves = [await _value(store, run, report_key(wave)) for wave in planned_waves(spec)]
    return WavesRun(
        store=store,
        run=run,
        spec=spec,
        snapshot=typed.convert(snapshot, VerifySnapshot),
        waves=tuple(typed.convert(wave, WaveReport) for wave in waves if wave is not None),
    )


def planned(spec: Verification) -> tuple[Verifier, ...]:
    """Return the agents that were to run, wave by wave."""
    asked = [
        one
        for one in spec.verifiers
        if (not spec.agents or one.name in spec.agents) and (not spec.waves or one.wave in spec.waves)
    ]
    return tuple(sorted(asked, key=lambda one: one.wave))


def planned_waves(spec: Verification) -> tuple[int, ...]:
    """Return the waves that were to run, in order."""
    return tuple(dict.fromkeys(one.wave for one in planned(spec)))


async def _value(store: Store, run: Run, key: str) -> Json:
    entry = await store.journal.find(run.id, key)
    return None if entry is None else entry.value
