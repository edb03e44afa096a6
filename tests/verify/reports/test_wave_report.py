"""One report per wave, in a folder in which they pile up."""

import io
from pathlib import Path

import pytest

from muster.domain.errors import NotFound
from muster.text.thresholds import ThresholdResult
from muster.verify.reports.markdown import wave_file_name, write_wave
from tests.reporting.markdown_reader import read
from tests.verify.reports.house import START, Story, agent, bad, good, hostile, model, opened, wave


async def wave_report(tmp_path: Path, story: Story, number: int = 1) -> str:
    out = io.StringIO()
    async with opened(tmp_path, story) as (_, report):
        await write_wave(report, number, out)
    return out.getvalue()


async def test_names_of_files_are_sorted_by_time_and_name_the_run_and_the_wave(tmp_path: Path) -> None:
    async with opened(tmp_path, good()) as (waves, _):
        assert wave_file_name(waves.run, 1) == "20270115T080000Z-0123456789abcdef-wave-01.md"
        assert wave_file_name(waves.run, 1) < wave_file_name(waves.run, 2)
    (tmp_path / "later").mkdir()
    async with opened(tmp_path / "later", good(at=START + 86_400, run="0000000000000000")) as (later, _):
        assert wave_file_name(waves.run, 2) < wave_file_name(later.run, 1)


async def test_a_wave_tells_its_agents_its_findings_and_what_was_rejected(tmp_path: Path) -> None:
    text = await wave_report(tmp_path, bad())
    assert text.startswith("## ❌ Wave 1 of `nightly`\n\n**It did not pass: `auditor failed`.**")
    assert "| 1 | `auditor` | ❌ failed |" in text
    assert "### 3 findings: 1 critical, 1 medium, 1 low" in text
    assert "### 1 rejected" in text
    assert "2027-01-15T08:00:00.000+00:00 · 10.0 s" in text


async def test_a_wave_names_its_batches_and_its_cost_against_live(tmp_path: Path) -> None:
    first, second = agent("first", cost=1_500), agent("second", 2, cost=700)
    waves = [wave(1, first), wave(2, second)]
    story = Story(verifiers=[model("first"), model("second", 2)], waves=waves, batch=[(500, 1_000), (500, 1_000)])
    text = await wave_report(tmp_path, story)
    assert "Cost: $0.0015; live it would have been $0.0025, so $0.0010 were saved." in text
    assert "- batch `b0123456789abcdef`: 2 calls, $0.0010, live $0.0020" in text
    (tmp_path / "second").mkdir()
    text = await wave_report(tmp_path / "second", story, 2)
    assert "Cost: $0.0007, nothing of it in batches." in text
    assert "batch `" not in text


async def test_a_wave_tells_only_of_itself(tmp_path: Path) -> None:
    held = (ThresholdResult(expression="total == 0", holds=True, why="total is 0"),)
    waves = [wave(1, agent("first")), wave(2, agent("second", 2), thresholds=held)]
    text = await wave_report(tmp_path, Story(verifiers=[model("first"), model("second", 2)], waves=waves), 2)
    assert "**It passed.**" in text
    assert "first" not in text
    assert "- `total == 0` holds (`total is 0`)" in text


async def test_a_wave_that_was_not_started_has_no_report(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no report of wave 2"):
        await wave_report(tmp_path, bad(), 2)


async def test_texts_of_strangers_draw_nothing(tmp_path: Path) -> None:
    found = read(await wave_report(tmp_path, hostile()))
    assert not {"a", "script", "img", "b"} & set(found.tags)
    assert not any(nasty in found.loose for nasty in ("@", "evil", "boom", "\x1b"))
