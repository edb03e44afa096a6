"""The sides of a comparison: what a reference to a run, a baseline or a file stands for."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from muster.app.runs.files import borrow
from muster.app.runs.options import require_reference
from muster.app.runs.runs import Runs
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import Run
from muster.store.base import Store
from muster.suites.compare.runs import Side
from muster.suites.kind import SUITE
from muster.suites.reports.run import SuiteRun, open_suite_run


class SideFinder:
    """Finds sides; files stay open until the stack is closed."""

    def __init__(
        self, store: Store, runs: Runs, files: AsyncExitStack, note: Callable[[str], None], *, has_files: bool
    ) -> None:
        self._store, self._runs, self._files, self._note = store, runs, files, note
        self._has_files = has_files  # a user of a server names no files

    async def find(self, reference: str, subject: str | None) -> Side:
        """Return the side that NAME, or NAME:SUBJECT, stands for."""
        require_reference(reference)
        found = await self._look_up(reference)
        if found is not None:
            return Side(name=reference, suite=found, subject=subject)
        for place, letter in enumerate(reference):
            if letter == ":" and (found := await self._look_up(reference[:place])) is not None:
                named = _one_of(subject, reference[place + 1 :])
                return Side(name=reference[:place], suite=found, subject=named)
        raise NotFound(
            f"{reference!r} is not a baseline, a run or a file",
            suggestions=("muster baseline list", "muster runs list"),
            given=reference,
        )

    async def _look_up(self, name: str) -> SuiteRun | None:
        baseline = await self._store.records.find_baseline(name)
        run = await self._run(name, required=baseline is None)
        file = await asyncio.to_thread(file_of, name) if self._has_files else None
        kinds = {"baseline": baseline, "run": run, "file": file}
        named = [kind for kind, found in kinds.items() if found is not None]
        if len(named) > 1:
            self._note(f"{name!r} is a {' and a '.join(named)}; the {named[0]} is used")
        if baseline is not None:
            run = await self._store.runs.get(baseline.run)
            run = run if run is not None and self._runs.sees(run) else None
        if run is not None:
            return await open_suite_run(self._store, run)
        if file is None:
            return None
        return await open_suite_run(*await self._files.enter_async_context(borrow(file)))

    async def _run(self, name: str, *, required: bool) -> Run | None:
        try:
            if name == "last":
                return await self._runs.newest((SUITE.workload,))
            return await self._runs.find(name) if name else None
        except NotFound:
            return None
        except BadArgument:  # it stands for several runs
            if required:
                raise
            return None


def _one_of(subject: str | None, named: str) -> str:
    if subject is not None and subject != named:
        raise BadArgument(f"the subject is {subject!r}, but the reference names {named!r}; give only one of them")
    return named


def file_of(reference: str) -> Path | None:
    """Return the file that a reference names, if there is one."""
    path = Path(reference)
    return path if path.is_file() else None
