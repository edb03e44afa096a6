"""The command in this process, on a home of its own into which suite runs are put by hand."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muster.app.runs.files import export_run
from muster.cli.main import run
from muster.domain.case import Status
from muster.domain.run import Run
from muster.store.sqlite.store import open_sqlite
from muster.suites.values.verdict import CaseResult
from tests.suites.reports.suite_store import Story, a_case, a_result, fill

from .shell import Result

NAMES = [f"s/{number:02}" for number in range(30)]


@dataclass
class Home:
    folder: Path
    _capsys: pytest.CaptureFixture[str]

    @property
    def path(self) -> Path:
        return self.folder / ".muster"

    def muster(self, *arguments: str) -> Result:
        """Run a command and give what it said."""
        code = run([*arguments, "--home", str(self.path)])
        seen = self._capsys.readouterr()
        return Result(code=code, out=seen.out, err=seen.err)

    def keep(self, *stories: Story) -> list[Run]:
        """Put runs into the store."""

        async def work() -> list[Run]:
            store = open_sqlite(self.path / "muster.db")
            try:
                return [await fill(store, story) for story in stories]
            finally:
                await store.maintenance.close()

        return asyncio.run(work())

    def export(self, story: Story, name: str) -> Path:
        """Write a run to a file, from another store."""

        async def work() -> Path:
            store = open_sqlite(self.folder / f"{name}.db")
            try:
                await export_run(store, await fill(store, story), self.folder / name)
            finally:
                await store.maintenance.close()
            return self.folder / name

        return asyncio.run(work())


def a_run(name: str, failing: Sequence[str] = (), **rest: Any) -> Story:
    """Make a run of thirty cases that has its name as its id."""
    results: list[CaseResult] = [a_result(case, Status.FAILED if case in failing else Status.PASSED) for case in NAMES]
    given: dict[str, Any] = {"cases": [a_case(case) for case in NAMES], "results": results}
    return Story(run=name, name=f"{name}-name", **(given | rest))
