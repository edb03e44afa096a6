"""The last act of the demo: a suite on two scripted agents, one of which fails on purpose, and its report as a file."""

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

from muster.app import Muster, open_muster
from muster.app.runs.reports import write_file
from muster.app.runs.runs import require_completed
from muster.app.suites.values import CaseLine, SuiteReport
from muster.cli.suites.order import SuiteProgress
from muster.cli.terminal.display import Display, shown
from muster.cli.terminal.progress import ProgressState
from muster.domain.canonical import JsonObject
from muster.domain.case import Status
from muster.domain.run import Run
from muster.settings import Settings, load_settings

SUITE = "suite"  # beside this file
AGENTS = ("careful", "hasty")
JUDGE = "critic"
PASSING = {"careful": 6, "hasty": 2}  # of six cases: what is not so is a flaw of ours
HOME, REPORT = ".muster", "report.html"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSuite:
    """What the suite came to, and where everything of it lies."""

    report: SuiteReport
    folder: Path

    @property
    def file(self) -> Path:
        """The report as a page."""
        return self.folder / REPORT

    @property
    def settings(self) -> Settings:
        """The settings of its folder and store."""
        return _settings(self.folder)

    @property
    def passed(self) -> Mapping[str, int]:
        """How many cases passed, by subject."""
        return {line.label: line.counts.get(Status.PASSED, 0) for line in self.report.subjects}

    @property
    def holds(self) -> bool:
        """Return whether exactly those cases failed that were meant to."""
        return self.passed == PASSING and not self.report.run_flaws

    @property
    def table(self) -> SuiteReport:
        """The report for a terminal: its folder is told once, and not beside every case."""
        return replace(self.report, lines=_nearby(self.report.lines), troubles=_nearby(self.report.troubles))

    @property
    def reference(self) -> str:
        """What names the run on a command line: it is in a store of its own."""
        return f"{self.report.run.id} --home {self.folder / HOME}"

    def json(self) -> JsonObject:
        """Return it as JSON."""
        return {
            "run": self.report.run.id,
            "cases": self.report.cases,
            "passed": dict(self.passed),
            "folder": str(self.folder),
            "report": str(self.file),
        }


async def examine(display: Display) -> DemoSuite:
    """Run the suite in a folder that stays, for whoever wants to look around; one that was not finished goes away."""
    folder = Path(tempfile.mkdtemp(prefix="muster-demo-"))
    try:
        return await _examine(folder, display)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


async def _examine(folder: Path, display: Display) -> DemoSuite:
    with as_file(files("muster.cli.demo") / SUITE) as packed:
        shutil.copytree(packed, folder, dirs_exist_ok=True)
    async with open_muster(settings=_settings(folder)) as muster:
        with display:
            display.tell("A suite of six cases for two scripted agents, and a scripted judge.")
            report = await muster.report_of(await _run(muster, folder, display))
        assert isinstance(report.summary, SuiteReport)  # noqa: S101  # of a run of the workload `suite`
        found = DemoSuite(report=report.summary, folder=folder)
        await write_file(found.file, lambda out: report.write("html", out))
        return found


async def _run(muster: Muster, folder: Path, display: Display) -> Run:
    spec = {"path": [str(folder)], "agents": list(AGENTS), "judge": JUDGE}
    handle = await muster.start("suite", spec, name="help-desk")
    progress_source = SuiteProgress(muster)

    async def look() -> ProgressState:
        return await progress_source.look(await handle.run(), muster.runs.calls_on_wire)

    run = await shown(handle.wait(), look, display)
    display.show(await progress_source.look(run, 0), last=True)
    return require_completed(run)


def _settings(folder: Path) -> Settings:
    return load_settings(folder / HOME, folder=folder, environment={})


def _nearby(lines: Sequence[CaseLine]) -> tuple[CaseLine, ...]:
    return tuple(replace(line, file=Path(line.file).name) for line in lines)
