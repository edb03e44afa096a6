"""A suite run as it stands in the store: its cases, results and conversations. What every report is made from."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

import msgspec

from muster.domain.canonical import Json
from muster.domain.case import Case
from muster.domain.entry import Entry
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import TERMINAL, Run, RunState
from muster.domain.suite import MENDABLE, SNAPSHOT, Snapshot, Subject, cases_key, environment_key, results_key
from muster.domain.verdict import CaseResult
from muster.formats.packing import cases_of, results_of
from muster.formats.suite_spec import SuiteSpec, read_spec
from muster.store.base import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRun:
    """One run of suites; results come in the order of the cases, then of the subjects, then of the epochs."""

    store: Store
    run: Run
    spec: SuiteSpec
    snapshot: Snapshot
    environment: Mapping[str, Json]
    waits: bool = False  # for batches, so that what has no result yet may still get one

    @property
    def subjects(self) -> tuple[Subject, ...]:
        """Who was tested."""
        return self.spec.subjects(self.snapshot)

    async def cases(self) -> AsyncIterator[Case]:
        """Give the cases that were selected, page by page."""
        for page in range(self.snapshot.pages):
            for case in cases_of(await self._value(cases_key(page))):
                yield case

    async def results(self) -> AsyncIterator[CaseResult]:
        """Give the results that are there, page by page; a run that stopped has fewer than it would have."""
        page = 0
        while results := await self._newest(page):
            for result in results:
                yield result
            page += 1

    async def calls(self, keys: tuple[str, ...]) -> tuple[Entry, ...]:
        """Give the calls that stand under these keys, for conversations; one that is gone is left out."""
        found = [await self.store.journal.find(self.run.id, key) for key in keys]
        return tuple(entry for entry in found if entry is not None)

    async def _newest(self, page: int) -> tuple[CaseResult, ...]:
        """Give the last version of a page; only one with something mendable can have a newer one."""
        newest: tuple[CaseResult, ...] = ()
        version = 1
        while found := results_of(await self._value(results_key(self.spec.tag, page, version))):
            newest = found
            if not any(result.status in MENDABLE for result in newest):
                break
            version += 1
        return newest

    async def _value(self, key: str) -> Json:
        entry = await self.store.journal.find(self.run.id, key)
        return None if entry is None else entry.value


async def open_suite_run(store: Store, run: Run) -> SuiteRun:
    """Read what a run was about; raises BadArgument for a run of something else."""
    if run.workload != "suite":
        raise BadArgument(
            f"run {run.id} is a run of {run.workload!r} and not of a suite", suggestions=("muster runs list",)
        )
    spec = read_spec(run.spec)
    entry = await store.journal.find(run.id, SNAPSHOT)
    if entry is None:
        raise NotFound(
            f"run {run.id} stopped before its suites were read in; there is nothing to report",
            suggestions=(f"muster runs resume {run.id}",),
        )
    environment = await store.journal.find(run.id, environment_key(spec.tag))
    return SuiteRun(
        store=store,
        run=run,
        spec=spec,
        snapshot=msgspec.convert(entry.value, Snapshot),
        environment={} if environment is None else environment.value,
        waits=await _waits(store, run),
    )


async def _waits(store: Store, run: Run) -> bool:
    """Whether a run waits for batches; one that was interrupted while it did still does."""
    if run.state in TERMINAL:
        return False
    return run.state is RunState.WAITING or (await store.batches.saving(run.id)).parked > 0
