"""A verification on a terminal: nothing runs out of the lines, and nobody's words do anything to the terminal."""

import asyncio
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from muster.cli.verify.table import MAX_FINDINGS, tell_report
from muster.domain.run import RunState
from muster.verify.declaration.verification import LeftOut
from muster.verify.findings.finding import Finding, Severity
from muster.verify.findings.journal import Ending
from tests.verify.reports.house import Story, agent, bad, finding, good, hostile, model, summary, wave

HERE = Path("/somewhere/else")


def drawn(folder: Path, story: Story, *, width: int = 80, here: Path = HERE) -> str:
    out = io.StringIO()
    console = Console(file=out, width=width, highlight=False, markup=False, emoji=False)
    tell_report(console, asyncio.run(summary(folder, story)), "mine", here)
    return out.getvalue()


def words(text: str) -> str:
    return " ".join(text.split())


def failing(found: Sequence[Finding]) -> Story:
    return Story(verifiers=[model("auditor")], waves=[wave(1, agent("auditor", 1, Ending.FAILED, found))])


def test_the_verdict_stands_first_and_the_worst_finding_before_the_others(tmp_path: Path) -> None:
    text = drawn(tmp_path, bad())
    assert text.startswith("Agent auditor failed")
    assert "2 findings: 1 critical, 1 low\n" in text
    assert "critical  src/a.py:5  auditor, enforcer · CWE-78\n" in text
    assert "          fix: use a list\n" in text
    assert text.index("critical  src") < text.index("low       src/a.py:6  enforcer · W1")
    assert "1 rejected, since its place does not exist:\n  src/a.py:99 by auditor: line 99 is not in the file\n" in text
    assert "not started: wave 2, since wave 1 did not pass" in text
    assert "1 left out: 1 binary (logo.png)\n" in text


def test_what_is_left_out_is_counted_by_why_and_some_of_it_is_named(tmp_path: Path) -> None:
    whys = {"no agent handles such files": 5, "generated: by its name": 2, "generated: marked as such": 1, "empty": 1}
    files = [
        LeftOut(path=f"{why[:2]}{number}.x", why=why) for why, number_of in whys.items() for number in range(number_of)
    ]
    text = drawn(tmp_path / "some", replace(good(), left_out=files), width=200)
    assert (
        "9 left out: 5 no agent handles such files (no0.x, no1.x, …), 3 generated (ge0.x, ge1.x, …), 1 empty (em0.x)\n"
        in text
    )
    many = [LeftOut(path="p" * 500, why=f"reason {number}") for number in range(8)]
    told = drawn(tmp_path / "many", replace(good(), left_out=many), width=2000)
    assert "8 left out: 1 reason 0 (" in told
    assert ", 3 more\n" in told
    assert "p" * 61 not in told


def test_a_score_is_shown_where_there_is_one_and_money_beside_the_live_price(tmp_path: Path) -> None:
    text = drawn(tmp_path, good(batch=[(1_000_000, 2_000_000)]))
    assert text.startswith("All 3 agents in 2 waves over 1 file passed.\n")
    assert re.search(r"2 +reviewer +✓ passed +9\.5 ", text)
    assert "coverage" not in text
    assert "$1.00, live would have been $2.00" in words(text)
    assert "findings" not in text


def test_a_run_that_stopped_says_what_was_not_done(tmp_path: Path) -> None:
    story = Story(verifiers=[model("auditor"), model("late", 2)], waves=[], state=RunState.INTERRUPTED)
    text = drawn(tmp_path, story)
    assert re.search(r"1 +auditor +not done", text)
    assert "not started: wave" not in text


def test_only_the_worst_findings_are_shown_and_the_others_are_counted(tmp_path: Path) -> None:
    lines = "\n".join(f"x{number} = 1" for number in range(60))
    found = [finding(f"number {number} is wrong in its own way", number + 1, rule=f"R{number}") for number in range(30)]
    story = failing([*found, finding("the worst", 50, severity=Severity.CRITICAL)])
    text = drawn(tmp_path, Story(verifiers=story.verifiers, waves=story.waves, files={"src/a.py": lines}))
    assert text.count("src/a.py:") == MAX_FINDINGS
    assert "src/a.py:50" in text
    assert f"… and {31 - MAX_FINDINGS} more, none of them worse" in text


@pytest.mark.parametrize(("here", "place"), [("/repo", "src/a.py"), ("/repo/docs", "../src/a.py"), ("/", "src/a.py")])
def test_files_are_named_as_seen_from_where_the_person_is(tmp_path: Path, here: str, place: str) -> None:
    assert f"high      {place}:5  auditor\n" in drawn(tmp_path, failing([finding()]), here=Path(here))


@pytest.mark.parametrize("width", [60, 80, 200])
def test_hostile_words_stay_words(tmp_path: Path, width: int) -> None:
    text = drawn(tmp_path, hostile(), width=width)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    table = [line for line in text.splitlines() if re.match(r" +\d  ", line)]
    assert len(table) == 3
    assert all(len(line) <= width for line in table)
