"""Markdown: short, and harmless whatever models have written."""

import re
from pathlib import Path

from muster.domain.case import Status
from muster.domain.run import RunState
from muster.suites.reports.markdown import MAX_REPORT
from muster.suites.values.verdict import CheckResult
from tests.reporting.markdown_reader import read
from tests.suites.reports.house import Story, case, hostile, result, shop, written

TAGS = {"h2", "h3", "p", "strong", "code", "pre", "details", "summary", "sub", "blockquote", "br",
        "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip


async def test_subjects_stand_in_a_table_and_failures_below(tmp_path: Path) -> None:
    text = await written(tmp_path, shop(), "markdown")
    assert text.startswith("## ❌ `nightly`")
    assert re.search(r"\| 1\. `sim/good` \| 85\.7% \(6/7\) \| 49% to 97% \| 0\.96 \|", text)
    found = read(text)
    assert set(found.tags) <= TAGS
    assert (found.tags.count("details"), found.cells) == (6, 14)
    assert "6 of 14 cases over 2 subjects did not pass" in found.loose


async def test_a_good_run_is_short(tmp_path: Path) -> None:
    text = await written(tmp_path, Story(cases=[case("a")], results=[result("a")]), "markdown")
    assert text.startswith("## ✅")
    assert "did not pass" not in text
    assert len(text) < 600


async def test_texts_of_strangers_draw_nothing_and_call_nobody(tmp_path: Path) -> None:
    text = await written(tmp_path, hostile(), "markdown")
    found = read(text)
    assert set(found.tags) <= TAGS
    assert found.tags.count("details") == 4
    assert found.tags.count("table") == 1
    for word in ("@", "evil", "http", "www", "boom", "#1", "$$"):
        assert word not in found.loose, word
    assert "\x1b" not in text
    assert "\u202e" not in text


async def test_what_does_not_fit_is_counted(tmp_path: Path) -> None:
    names = [f"case-{number}" for number in range(400)]
    check = CheckResult(name="contains", passed=False, why="nothing like it " * 30)
    results = [result(name, Status.FAILED, why="long " * 100, checks=(check,)) for name in names]
    text = await written(tmp_path, Story(cases=[case(name) for name in names], results=results), "markdown")
    assert len(text) < MAX_REPORT + 500
    shown = text.count("<details>")
    assert 10 < shown < 400
    assert f"… and {400 - shown} more that did not pass: `muster report 0123456789abcdef --format html" in text


async def test_why_a_run_stopped_is_told(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[], state=RunState.FAILED, error={"message": "no money <b>left</b>"})
    text = await written(tmp_path, story, "markdown")
    assert "The run failed: `no money <b>left</b>`." in text
