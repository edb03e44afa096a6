"""Markdown: the verdict first, findings by file, and harmless whatever models have written."""

import re
from dataclasses import replace
from pathlib import Path

from muster.domain.run import RunState
from muster.verify.declaration.verification import LeftOut
from muster.verify.findings.finding import Severity
from muster.verify.findings.journal import Ending
from muster.verify.reports.markdown import MAX_REPORT
from tests.reporting.markdown_reader import Reader, read
from tests.verify.reports.house import Story, agent, bad, finding, good, hostile, model, rejected, wave, written

TAGS = {"h2", "h3", "h4", "p", "strong", "code", "pre", "details", "summary", "sub", "blockquote", "br", "ul", "li",
        "table", "thead", "tbody", "tr", "th", "td"}  # fmt: skip


async def rendered(tmp_path: Path, story: Story) -> tuple[str, Reader]:
    text = await written(tmp_path, story, "markdown")
    return text, read(text)


async def test_the_verdict_stands_first_and_every_agent_has_a_row(tmp_path: Path) -> None:
    text, found = await rendered(tmp_path, bad(paid=[1_000], batch=[(500, 1_000)]))
    lines = text.splitlines()
    assert lines[0] == "## ❌ `nightly`"
    assert lines[2].startswith("**Agent `auditor` failed: `auditor is failed`; wave 2 was not")
    assert "| 1 | `auditor` | ❌ failed | – | – | 1 | 0 | 0 | 0 | 1 | $0.0015 |" in lines
    assert "| 2 | `reviewer` | ⏸ not started | | | | | | | | |" in lines
    assert "- `auditor`: `high == 0` is not met (`high is 1`)" in lines
    assert (set(found.tags) <= TAGS, found.cells) == (True, 33)
    assert lines[-1].endswith("1 file · live · 14.2 s · $0.0015 · $0.0020 live</sub>")


async def test_a_verification_that_waits_for_a_batch_is_headed_so_unless_something_failed(tmp_path: Path) -> None:
    first = good().waves[:1]
    text, _ = await rendered(tmp_path / "good", replace(good(), waves=first, state=RunState.WAITING))
    assert text.startswith("## ⏳ `nightly`\n\n**The run is waiting")
    assert "| 2 | `reviewer` | ⏳ waiting |" in text
    text, _ = await rendered(tmp_path / "bad", bad(state=RunState.WAITING))
    assert text.startswith("## ❌ `nightly`")


async def test_findings_stand_under_their_file_with_lines_fix_and_who_found_them(tmp_path: Path) -> None:
    text, found = await rendered(tmp_path, bad())
    assert "### 2 findings: 1 critical, 1 low" in text
    assert text.count("#### `src/a.py`") == 1
    assert (
        "- **critical** · line 5 · `CWE-78` · by `auditor`, `enforcer`  \n"
        "  `the name is run by a shell`  \n  Fix: `use a list`  \n"
        "  Proposed for line 5:\n\n  ```text\n      subprocess.run([name])\n  ```\n"
    ) in text
    assert "### 1 rejected" in text
    assert "`line 99 is not in the file`" in text
    assert "1 file left out" in found.loose


async def test_a_report_reads_well_as_plain_text_and_shows_the_proposed_replacement(tmp_path: Path) -> None:
    odd = finding("call os.path.join(a_b, *c) | None & `x` <here>", 6, severity=Severity.LOW, fix="", replacement="")
    longer = finding(
        "two lines", 4, end_line=5, fix="do", replacement="    with a_b() as c:\n\n        ```\n        c()\n"
    )
    failed = wave(1, agent("a_1", 1, Ending.FAILED, [odd, longer]))
    text, found = await rendered(tmp_path, Story(verifiers=[model("a_1")], waves=[failed]))
    assert "&#" not in text
    assert "``call os.path.join(a_b, *c) | None & `x` <here>``" in text
    assert "  Proposed: delete line 6\n" in text
    assert (
        "  Proposed for lines 4 to 5:\n\n  ````text\n      with a_b() as c:\n  \n          ```\n          c()\n  ````\n"
    ) in text
    assert (set(found.tags) <= TAGS, "c()" in found.loose) == (True, False)


async def test_scores_and_coverage_are_shown_and_a_success_is_short(tmp_path: Path) -> None:
    first, second = agent("reviewer", score=9.25), agent("tests", coverage=81.5)
    story = Story(verifiers=[model("reviewer"), model("tests")], waves=[wave(1, first, second)], cleared=["/m"])
    text, _ = await rendered(tmp_path, story)
    assert text.startswith("## ✅")
    assert "✅ passed | 9.2 | – |" in text
    assert "✅ passed | – | 81.5% |" in text
    assert "1 marker cleared" in text
    assert len(text) < 900


async def test_texts_of_strangers_draw_nothing_and_call_nobody(tmp_path: Path) -> None:
    text, found = await rendered(tmp_path, hostile())
    assert set(found.tags) <= TAGS
    assert "a" not in found.tags
    assert not any(nasty in found.loose for nasty in ("@", "evil", "boom", "everyone", "](", "\x1b", "\x9b"))
    assert "\x1b" not in text
    assert found.cells == 33


async def test_when_there_is_too_much_the_worst_is_shown_and_the_rest_counted(tmp_path: Path) -> None:
    low = [finding(f"number {n} " + "x" * 90, n + 1, severity=Severity.LOW, file="src/big.py") for n in range(900)]
    worst = [finding("the worst of all", 1, severity=Severity.CRITICAL, file="src/z.py")]
    failed = agent("a", 1, Ending.FAILED, [*low, *worst])
    text, _ = await rendered(tmp_path, Story(verifiers=[model("a")], waves=[wave(1, failed)]))
    assert len(text) <= MAX_REPORT
    assert len(text) > MAX_REPORT - 1_000
    assert text.index("the worst of all") < text.index("number 0")
    shown = text.count("number ")
    assert f"… and {900 - shown:,} more, none of them worse." in text


async def test_a_run_that_stopped_says_so_in_its_first_sentence(tmp_path: Path) -> None:
    story = good(state=RunState.INTERRUPTED, error={"message": "the machine <b>went</b> down"})
    text, _ = await rendered(tmp_path, story)
    assert "**The run was interrupted: `the machine <b>went" in text


async def test_a_report_fits_into_a_comment_whatever_is_in_it(tmp_path: Path) -> None:
    nasty = "<@|>" * 400
    failed = [
        agent(
            f"a{number}",
            1,
            Ending.FAILED,
            [finding(nasty, 1, rule=nasty, file=nasty, fix=nasty)],
            why=nasty,
            failures=(nasty,) * 20,
            rejected=tuple(rejected(f"{nasty}{number}") for number in range(20)),
        )
        for number in range(60)
    ]
    story = Story(
        verifiers=[model(one.agent) for one in failed] + [model("z", 2)],
        waves=[wave(1, *failed)],
        left_out=[LeftOut(path=nasty, why=nasty)] * 200,
        files={f"{number}{nasty}": "x" for number in range(20)},
        infos={f"{number}{nasty}": {"note": nasty} for number in range(20)},
        state=RunState.FAILED,
        error={"message": nasty},
    )
    text, found = await rendered(tmp_path, story)
    assert len(text) <= 65_536
    assert re.search(r"… and 1,1\d\d more", text)
    assert "@" not in found.loose


async def test_waves_that_were_not_started_are_named_together(tmp_path: Path) -> None:
    verifiers = [model(f"a{number}", number) for number in range(1, 9)]
    story = Story(verifiers=verifiers, waves=[wave(1, agent("a1", 1, Ending.BROKEN, failures=("it was cut",)))])
    text, _ = await rendered(tmp_path, story)
    assert "waves 2, 3, 4, 5, 6 and 2 more were not started" in text
    assert "- `a1`: `it was cut`" in text
    assert "is not met" not in text
