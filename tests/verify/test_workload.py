"""The verification of a small repository: ten planted defects, an agent that finds eight of them and invents two."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from muster.app.base.costs import Quoting
from muster.app.verify.request import VerifyChoice
from muster.domain.dispatch import LIVE
from muster.domain.run import Run
from muster.verify.declaration.verification import Verification
from muster.verify.findings.finding import Counts, Finding
from muster.verify.findings.journal import Ending
from muster.verify.sources.files import FileSelection
from tests.suites.stage import playing
from tests.verify.stage import (
    CLEAN,
    CODE,
    GOOD_REVIEW,
    GOOD_TESTS,
    PENDING,
    WavesStage,
    a_checker,
    a_model,
    a_report,
    a_reviewer,
    said,
    stage,
)

FILES = {
    "store.py": """\
import sqlite3


def find(database, name):
    return database.execute(f"SELECT * FROM users WHERE name = '{name}'")  # DEFECT 1


def load(path):
    try:
        return open(path).read()  # DEFECT 2
    except:  # DEFECT 3
        pass
""",
    "web.py": """\
import os
import pickle


def show(request):
    os.system("convert " + request.args["file"])  # DEFECT 4
    return pickle.loads(request.data)  # DEFECT 5


def admin(user):
    return user.role == "admin" or True  # DEFECT 6
""",
    "money.py": """\
def split(total, people):
    return total / len(people)  # DEFECT 7


def add(items=[]):  # DEFECT 8
    items.append(1)
    return items


RATE = eval("0.5")  # DEFECT 9
PASSWORD_CHECK = hash("a") == hash("b")  # DEFECT 10
""",
}
OVERLOOKED = (2, 10)


def place_of(number: int) -> tuple[str, int]:
    """Find a planted defect."""
    mark = f"# DEFECT {number}\n"
    for name, text in FILES.items():
        for line, code in enumerate(text.splitlines(keepends=True), 1):
            if code.endswith(mark):
                return name, line
    raise AssertionError(number)


PLANTED = [place_of(number) for number in range(1, 11) if number not in OVERLOOKED]
INVENTED = [said("web.py", 400, "critical"), said("helpers.py", 1, "critical")]
AUDIT = a_report(*(said(file, line, "critical") for file, line in PLANTED), *INVENTED)
SCRIPT = playing(
    {"text": r"(?s)# DEFECT \d.*You audit code", "answer": AUDIT},
    {"text": "(?s)# Your task.*You review code", "answer": GOOD_REVIEW},
    {"text": "(?s)# Your task.*You find out what of this code is not tested", "answer": GOOD_TESTS},
    {"answer": CLEAN},
)


def repaired(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if "# DEFECT" not in line) + "\n"


async def selected(s: WavesStage) -> Verification:
    """Choose what waits, and have it verified by the agents that are shipped."""
    selection = FileSelection(pending=Path(PENDING))
    async with s.muster.verify.prepare(s.root, selection, VerifyChoice()) as found:
        return found.spec


@pytest.fixture
async def planted(tmp_path: Path) -> AsyncIterator[WavesStage]:
    """The small repository, before repair, with a marker for each file and one for two."""
    async with stage(tmp_path, SCRIPT, files=FILES) as s:
        for name in FILES:
            s.mark(name, name)
        s.mark("both", "web.py", "money.py")
        yield s


async def test_eight_of_ten_defects_are_found_two_are_invented_and_after_the_repair_everything_passes(
    planted: WavesStage,
) -> None:
    spec = await selected(planted)
    quoted = planted.muster.verify.plan(spec, LIVE, Quoting.ALL)
    assert (quoted.files, quoted.waves, quoted.all.calls) == (3, (1, 2), 5)
    run = await planted.drive(spec)
    (wave,) = await planted.waves(run)
    by = {agent.agent: agent for agent in wave.agents}
    auditor = by["security-auditor"]
    assert sorted((one.file, one.line) for one in auditor.findings) == sorted(PLANTED)
    assert [(one.finding.file, one.finding.line) for one in auditor.rejected] == [("web.py", 400), ("helpers.py", 1)]
    assert (auditor.ending, auditor.counts) == (Ending.FAILED, Counts(critical=8, rejected=2))
    assert {one.ending for name, one in by.items() if name != auditor.agent} == {Ending.PASSED}
    assert run.result == {
        "passed": False,
        "files": 3,
        "unseen": [],
        "waves": {"1": False},
        "not_started": [2],
        "findings": 8,
        "rejected": 2,
        "cleared": [],
    }
    report = await planted.report(run)
    assert (report.ok, report.not_started, len(report.merged), len(report.rejected)) == (False, (2,), 8, 2)
    assert planted.anthropic.audit.calls == 3
    assert len(planted.markers) == 4

    for name, text in FILES.items():
        (planted.root / name).write_text(repaired(text), encoding="utf-8")
    run = await planted.drive(await selected(planted))
    assert run.result["passed"] is True
    assert run.result["waves"] == {"1": True, "2": True}
    agents = await planted.agents(run)
    assert (agents["code-reviewer"].score, agents["test-generator"].coverage) == (9.5, 90.0)
    report = await planted.report(run)
    assert (report.ok, len(report.cleared), len(planted.markers)) == (True, 4, 0)
    assert quoted.all.most >= run.spent.billed > 0
    nothing = await selected(planted)
    assert nothing.files == ()


class Markers:
    """A run over one file that passes, whatever a test does to its marker."""

    def __init__(self, s: WavesStage) -> None:
        self.s, self.marker = s, s.mark("one", "a.py")

    async def run(self, *, meanwhile: str = "", **rest: Any) -> Run:
        """Verify; a checker of the second wave does something meanwhile, which is no part of what is verified."""
        checker = a_checker("meanwhile", meanwhile or "pass", wave=2, include=("b.txt",))
        return await self.s.verify(a_model("auditor"), checker, a_reviewer(), **rest)

    @property
    def is_there(self) -> bool:
        return self.marker.exists()


@pytest.fixture
async def marked(tmp_path: Path) -> AsyncIterator[Markers]:
    async with stage(tmp_path, files={"a.py": CODE, "b.txt": "words\n"}) as s:
        yield Markers(s)


async def test_a_marker_is_cleared_when_everybody_has_passed(marked: Markers) -> None:
    run = await marked.run()
    assert run.result["passed"], await marked.s.waves(run)
    assert run.result["cleared"] == [str(marked.marker)]
    assert not marked.is_there


@pytest.mark.parametrize("part", [{"waves": (1,)}, {"agents": ("auditor", "meanwhile")}])
async def test_a_marker_stays_when_only_a_part_was_asked(marked: Markers, part: dict[str, Any]) -> None:
    run = await marked.run(**part)
    assert (run.result["passed"], run.result["cleared"], marked.is_there) == (True, [], True)
    assert (await marked.s.report(run)).partial


@pytest.mark.parametrize(
    "meanwhile",
    [
        "open('a.py', 'a').write('# changed\\n')",
        f"open('{PENDING}/one', 'a').write('\\n')",
        "import os; os.unlink('a.py')",
    ],
)
async def test_a_marker_stays_when_it_or_its_file_was_changed_meanwhile(marked: Markers, meanwhile: str) -> None:
    run = await marked.run(meanwhile=meanwhile)
    assert (run.result["passed"], run.result["cleared"], marked.is_there) == (True, [], True)


async def test_a_marker_that_is_gone_is_not_said_to_be_cleared(marked: Markers) -> None:
    run = await marked.run(meanwhile=f"import os; os.unlink('{PENDING}/one')")
    assert (run.result["passed"], run.result["cleared"]) == (True, [])


async def test_a_marker_stays_when_a_file_of_it_was_not_verified(marked: Markers) -> None:
    other = marked.s.mark("two", "a.py", "b.txt")
    run = await marked.run(files=("a.py",), markers=marked.s.markers)
    assert (run.result["passed"], run.result["cleared"]) == (True, [str(marked.marker)])
    assert (marked.is_there, other.exists()) == (False, True)


def spell(finding: Finding) -> tuple[str, int, str]:
    return finding.file, finding.line, finding.finding


async def test_what_several_agents_find_is_told_once_with_everybody_who_found_it(tmp_path: Path) -> None:
    found = a_report(said(line=2, cwe="CWE-89"))
    script = playing({"answer": found})
    async with stage(tmp_path, script, script) as s:
        run = await s.verify(a_model("one"), a_model("two", model="openai/gpt-5-mini"))
        (merged,) = (await s.report(run)).merged
        assert (spell(merged.finding), merged.by) == (("a.py", 2, "line 2 is wrong"), ("one", "two"))
        assert run.result["findings"] == 1
