"""The log: lines of JSON, one file a day, every line once, whatever has crashed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.errors import BadArgument
from muster.domain.run import RunState
from muster.verify.reports.log import Line, append_log, log_lines
from tests.verify.reports.house import START, Story, agent, bad, checker, good, hostile, model, opened, wave

RUN = "0123456789abcdef"


async def lines_of(tmp_path: Path, story: Story) -> tuple[Line, ...]:
    tmp_path.mkdir(exist_ok=True)
    async with opened(tmp_path, story) as (waves, report):
        return log_lines(waves, report)


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


async def test_there_is_a_line_for_each_agent_each_wave_and_the_whole(tmp_path: Path) -> None:
    lines = await lines_of(tmp_path, bad(paid=[1_000], batch=[(500, 1_000)]))
    assert [line["id"] for line in lines] == [
        f"{RUN}/wave/1/auditor",
        f"{RUN}/wave/1/enforcer",
        f"{RUN}/wave/1",
        f"{RUN}/completed",
    ]
    auditor, _, first, whole = lines
    assert (auditor["event"], auditor["ending"], auditor["why"]) == ("agent", "failed", "auditor is failed")
    assert (auditor["cost_usd"], auditor["dispatch"], auditor["counts"]["critical"]) == (0.0015, "live", 1)
    assert (first["event"], first["passed"], first["seconds"]) == ("wave", False, 10.0)
    assert first["at"] == "2027-01-15T08:00:10.000+00:00"
    assert (whole["event"], whole["ok"], whole["not_started"]) == ("verification", False, [2])
    assert (whole["cost_usd"], whole["live_usd"], whole["counts"]["rejected"]) == (0.0015, 0.002, 1)
    assert (whole["at"], whole["state"]) == ("2027-01-15T08:00:14.250+00:00", "completed")


async def test_an_agent_says_how_it_was_asked(tmp_path: Path) -> None:
    verifiers = [model("a", dispatch="batch"), model("b"), checker("c")]
    story = Story(verifiers=verifiers, waves=[wave(1, *(agent(one.name) for one in verifiers))])
    assert [line.get("dispatch") for line in (await lines_of(tmp_path / "one", story))[:3]] == ["batch", "live", None]
    live = replace(story, spec={"live": True})
    assert [line["dispatch"] for line in (await lines_of(tmp_path / "two", live))[:2]] == ["live", "live"]


async def test_a_file_holds_the_runs_that_ended_on_its_day(tmp_path: Path) -> None:
    night = await lines_of(tmp_path / "one", good(at=START + 57_590))  # ten seconds before midnight
    day = await lines_of(tmp_path / "two", good(run="other"))
    log = tmp_path / "log" / "verify"
    assert append_log(log, night) == log / "2027-01-16.jsonl"
    assert append_log(log, day) == log / "2027-01-15.jsonl"
    assert len(read(log / "2027-01-15.jsonl")) == len(day) == 6


async def test_a_line_is_never_written_twice(tmp_path: Path) -> None:
    lines = await lines_of(tmp_path, good())
    append_log(tmp_path, lines[:2])
    path = append_log(tmp_path, lines)
    append_log(tmp_path, lines)
    assert sorted(line["id"] for line in read(path)) == sorted(line["id"] for line in lines)


async def test_a_run_that_stopped_and_went_on_has_a_line_for_both(tmp_path: Path) -> None:
    stopped = replace(good(state=RunState.INTERRUPTED), waves=good().waves[:1])
    path = append_log(tmp_path, await lines_of(tmp_path / "one", stopped))
    append_log(tmp_path, await lines_of(tmp_path / "two", good()))
    whole = [line for line in read(path) if line["event"] == "verification"]
    assert [(line["id"], line["ok"]) for line in whole] == [
        (f"{RUN}/interrupted/1", False),
        (f"{RUN}/completed", True),
    ]
    assert len([line for line in read(path) if line["event"] == "wave"]) == 2


async def test_a_line_that_a_crash_tore_is_left_behind_and_what_follows_is_whole(tmp_path: Path) -> None:
    lines = await lines_of(tmp_path / "one", good())
    path = append_log(tmp_path, lines[:2] + lines[-1:])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    append_log(tmp_path, lines)
    found = path.read_text(encoding="ascii").splitlines()
    assert len(found) == len(lines) + 1
    torn = found.pop(2)
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(torn)
    assert sorted(json.loads(line)["id"] for line in found) == sorted(line["id"] for line in lines)


async def test_lines_of_others_are_left_as_they_are(tmp_path: Path) -> None:
    lines = await lines_of(tmp_path, good())
    path = tmp_path / "2027-01-15.jsonl"
    path.write_bytes(b'\xff\xfe no JSON\n[1]\n{"id": 3}\n{"id": "x"}')
    append_log(tmp_path, lines)
    found = path.read_bytes().splitlines()
    assert found[:4] == [b"\xff\xfe no JSON", b"[1]", b'{"id": 3}', b'{"id": "x"}']
    assert len(found) == 4 + len(lines)


async def test_texts_of_strangers_stay_on_their_line(tmp_path: Path) -> None:
    lines = await lines_of(tmp_path, hostile())
    text = append_log(tmp_path, lines).read_bytes()
    assert len(text.splitlines()) == len(lines)
    assert b"\x1b" not in text


async def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    lines = await lines_of(tmp_path, good())
    (tmp_path / "file").write_text("here")
    with pytest.raises(BadArgument, match="cannot be written"):
        append_log(tmp_path / "file", lines)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "2027-01-15.jsonl").symlink_to(tmp_path / "file")
    with pytest.raises(BadArgument, match="cannot be written"):
        append_log(tmp_path / "log", lines)
    assert (tmp_path / "file").read_text() == "here"
