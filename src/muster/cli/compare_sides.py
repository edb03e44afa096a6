"""What A and B of a comparison stand for: a baseline, a run, or a file that a run was exported to."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from muster.app.borrowed import borrow
from muster.app.suite_office import file_of
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import Run
from muster.reports.comparing import Side
from muster.reports.suite_run import SuiteRun, open_suite_run

if TYPE_CHECKING:
    from muster.app import Muster


class Sides:
    """Finds sides; files stay open until the stack is closed."""

    def __init__(self, muster: "Muster", files: AsyncExitStack, note: Callable[[str], None]) -> None:
        self._muster, self._files, self._note = muster, files, note

    async def find(self, reference: str, subject: str | None) -> Side:
        """Give the side that NAME, or NAME:SUBJECT, stands for."""
        found = await self._look_up(reference)
        if found is not None:
            return Side(name=reference, suite=found, subject=subject)
        for place, letter in enumerate(reference):
            if letter == ":" and (found := await self._look_up(reference[:place])) is not None:
                named = _one_of(subject, reference[place + 1 :])
                return Side(name=reference[:place], suite=found, subject=named)
        raise NotFound(
            f"there is no baseline, no run and no file {reference!r}",
            suggestions=("muster baseline list", "muster runs list"),
        )

    async def _look_up(self, name: str) -> SuiteRun | None:
        baseline = await self._muster.store.baselines.find(name)
        run = await self._run(name, required=baseline is None)
        file = file_of(name)
        kinds = {"baseline": baseline, "run": run, "file": file}
        named = [kind for kind, found in kinds.items() if found is not None]
        if len(named) > 1:
            self._note(f"{name!r} is a {' and a '.join(named)}; the {named[0]} was taken")
        if baseline is not None:
            run = await self._muster.store.runs.get(baseline.run)
        if run is not None:
            return await open_suite_run(self._muster.store, run)
        if file is None:
            return None
        return await open_suite_run(*await self._files.enter_async_context(borrow(file)))

    async def _run(self, name: str, *, required: bool) -> Run | None:
        try:
            return await self._muster.find(name) if name else None
        except NotFound:
            return None
        except BadArgument:  # it stands for several runs
            if required:
                raise
            return None


def _one_of(subject: str | None, named: str) -> str:
    if subject is not None and subject != named:
        raise BadArgument(f"--subject says {subject!r} and the reference says {named!r}: give one of them")
    return named
