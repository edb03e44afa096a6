"""Findings in the code that they are about, page by page."""

from pathlib import Path

import pytest

from muster.domain.errors import BadArgument
from muster.verify.findings.finding import Severity
from muster.verify.reports.located import FindingPage, LocatedFinding, page_of_findings, with_code
from tests.verify.reports.house import Story, agent, finding, model, opened, rejected, wave

LONG = "".join(f"line {number}\n" for number in range(1, 101))
FOUND = [
    finding("low in b", 50, file="src/b.py", severity=Severity.LOW),
    finding("critical in b", 99, file="src/b.py", severity=Severity.CRITICAL, end_line=100),
    finding("high in a", 5),
    finding("high in a too", 5),
    finding("of a file that was not read", 1, file="src/c.py"),
]
STORY = Story(
    verifiers=[model("auditor")],
    waves=[wave(1, agent("auditor", findings=FOUND, rejected=[rejected()]))],
    files={"src/a.py": "import os\n\n\ndef run(name):\n    os.system(name)\n    return 1\n", "src/b.py": LONG},
)


async def found(folder: Path, **asked: object) -> FindingPage:
    terms = {"severity": None, "rejected": False, "after": None, "limit": 50, **asked}
    async with opened(folder, STORY) as (waves, report):
        return await with_code(waves, page_of_findings(report, **terms))  # type: ignore[arg-type]


async def test_the_worst_files_come_first_and_each_has_its_findings_by_line(tmp_path: Path) -> None:
    page = await found(tmp_path)
    assert [(one.finding.file, one.finding.line) for one in page.findings] == [
        ("src/b.py", 50),
        ("src/b.py", 99),
        ("src/a.py", 5),
        ("src/a.py", 5),
        ("src/c.py", 1),
    ]
    assert (page.total, page.next) == (5, None)


async def test_a_finding_has_the_lines_around_it_as_far_as_the_run_has_them(tmp_path: Path) -> None:
    in_b, last, in_a, _, elsewhere = [one.code for one in (await found(tmp_path)).findings]
    assert in_b is not None
    assert (in_b.first, in_b.lines[0], in_b.lines[-1]) == (47, "line 47", "line 53")
    assert last is not None
    assert (last.first, last.lines[-1]) == (96, "line 100")
    assert in_a is not None
    assert (in_a.first, len(in_a.lines)) == (2, 5)
    assert elsewhere is None


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
async def test_pages_go_on_where_the_page_before_ended(tmp_path: Path, limit: int) -> None:
    whole, after = (await found(tmp_path)).findings, None
    seen: list[LocatedFinding] = []
    for number in range(5):
        page = await found(tmp_path / str(number), after=after, limit=limit)
        seen += page.findings
        after = page.next
        if after is None:
            break
    assert (tuple(seen), after) == (whole, None)


async def test_only_one_severity_or_the_rejected_ones_are_shown(tmp_path: Path) -> None:
    low = await found(tmp_path / "low", severity=Severity.LOW)
    assert [one.finding.finding for one in low.findings] == ["low in b"]
    thrown = await found(tmp_path / "rejected", rejected=True)
    assert [(one.rejected, one.by, one.code) for one in thrown.findings] == [
        ("line 99 is not in the file", ("auditor",), None)
    ]


@pytest.mark.parametrize("after", ["", "x", "1.2.src/a.py", "a.1.1.src/a.py", "/etc/passwd"])
async def test_a_place_that_is_none_is_refused(tmp_path: Path, after: str) -> None:
    with pytest.raises(BadArgument, match="next"):
        await found(tmp_path, after=after)
