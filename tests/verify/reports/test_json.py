"""The JSON report: names that stay, everything in it, plain ASCII."""

import json
from pathlib import Path
from typing import Any

from tests.verify.reports.house import HOSTILE, Story, bad, good, hostile, written

TOP = {
    "schema", "ok", "verdict", "flaws", "notes", "partial", "only_waves", "only_agents", "run", "cost", "counts",
    "not_started", "absent", "files", "unseen", "left_out", "redactions", "cleared", "waves", "findings", "rejected",
}  # fmt: skip
WAVE = {"wave", "passed", "why", "started_at", "ended_at", "seconds", "counts", "thresholds", "batches", "agents"}
AGENT = {
    "agent", "wave", "kind", "ending", "why", "counts", "score", "parts", "coverage", "thresholds", "chunks",
    "answered", "repaired", "failures", "codes", "model", "seconds", "cost_usd", "keys", "findings",
}  # fmt: skip
FINDING = {
    "file", "line", "end_line", "severity", "finding", "fix", "cwe", "confidence", "rule", "replacement",
}  # fmt: skip


async def report(tmp_path: Path, story: Story) -> dict[str, Any]:
    text = await written(tmp_path, story, "json")
    assert text.isascii()
    found: dict[str, Any] = json.loads(text)
    return found


async def test_the_names_are_those_that_were_promised(tmp_path: Path) -> None:
    found = await report(tmp_path, bad())
    assert (set(found), found["schema"]) == (TOP, "muster.verify-report/1")
    assert all(set(wave) == WAVE for wave in found["waves"])
    assert all(set(agent) == AGENT for wave in found["waves"] for agent in wave["agents"])
    assert all(set(one) == FINDING | {"by", "origins"} for one in found["findings"])
    assert all(set(one) == FINDING | {"why", "agent", "wave"} for one in found["rejected"])


async def test_everything_that_is_known_is_in_it(tmp_path: Path) -> None:
    found = await report(tmp_path, bad(paid=[1_000], batch=[(500, 1_000), None]))
    assert (found["ok"], found["not_started"], found["partial"]) == (False, [2], False)
    assert found["flaws"] == ["agent auditor failed: auditor is failed", "wave 2 was not started"]
    assert found["counts"] == {"total": 2, "critical": 1, "high": 0, "medium": 0, "low": 1, "rejected": 1}
    assert [(one["line"], one["by"]) for one in found["findings"]] == [(5, ["auditor", "enforcer"]), (6, ["enforcer"])]
    assert [(one["agent"], one["line"]) for one in found["rejected"]] == [("auditor", 99)]
    assert [one["severity"] for one in found["waves"][0]["agents"][1]["findings"]] == ["medium", "low"]
    cost = found["cost"]
    assert (cost["cost_usd"], cost["live_usd"], cost["batch_usd"]) == (0.0015, 0.002, 0.0005)
    assert found["run"]["started_at"] == "2027-01-15T08:00:00.000+00:00"
    assert found["files"][0]["path"] == "src/a.py"
    assert found["left_out"] == [{"path": "logo.png", "why": "binary"}]


async def test_a_success_is_one(tmp_path: Path) -> None:
    found = await report(tmp_path, good(cleared=["/repo/m"]))
    assert (found["ok"], found["flaws"], found["findings"], found["cleared"]) == (True, [], [], ["/repo/m"])


async def test_texts_of_strangers_come_back_but_for_halves_of_characters(tmp_path: Path) -> None:
    found = await report(tmp_path, hostile())
    wanted = {text.replace("\ud800", "\ufffd") for text in HOSTILE}
    assert {one["finding"] for one in found["findings"]} == wanted
    assert {one["why"] for one in found["rejected"]} == wanted
