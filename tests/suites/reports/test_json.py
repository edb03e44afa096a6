"""The JSON report: names that stay, every case, every epoch."""

import json
from pathlib import Path
from typing import Any

from muster.domain.run import RunState
from tests.suites.reports.house import REFUND, Story, called, case, hostile, result, shop, written

TOP = {
    "schema", "ok", "verdict", "run", "counts", "cases_total", "results_expected", "results_missing", "warnings",
    "not_passed", "subjects", "environment", "cases",
}  # fmt: skip
CASE = {
    "case", "suite", "subject", "status", "score", "threshold", "why", "description", "file", "line", "tags",
    "evaluators", "seconds", "cost_usd", "judge_cost_usd", "missing_epochs", "epochs",
}  # fmt: skip


async def report(tmp_path: Path, story: Story) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(await written(tmp_path, story, "json"))
    return found


async def test_the_names_are_those_that_were_promised(tmp_path: Path) -> None:
    found = await report(tmp_path, shop())
    assert set(found) == TOP
    assert found["schema"] == "muster.suite-report/1"
    assert all(set(one) == CASE for one in found["cases"])
    assert (found["ok"], found["cases_total"], found["results_expected"]) == (False, 8, 32)
    assert found["run"]["spent_usd"] == 0.0421
    assert found["run"]["started_at"] == "2027-01-15T08:00:00.000+00:00"


async def test_every_case_has_its_epochs_with_checks_judgements_and_answers(tmp_path: Path) -> None:
    found = await report(tmp_path, shop())
    late = next(one for one in found["cases"] if one["case"] == "refund-too-late")
    assert (late["status"], late["line"], late["tags"], len(late["epochs"])) == ("failed", 21, ["refunds"], 2)
    epoch = late["epochs"][0]
    assert epoch["answer"] == REFUND
    assert [item["score"] for item in epoch["items"]] == [1.0, 0.9, 0.2]
    assert epoch["judgements"][0]["by"] == "sim/judge"
    assert epoch["keys"] == ["case/refund-too-late/@sim/good/1/1"]


async def test_a_subject_has_its_rank_and_its_intervals(tmp_path: Path) -> None:
    first, second = (await report(tmp_path, shop()))["subjects"]
    assert (first["subject"], first["rank"], first["cases_run"]) == ("sim/good", 1, 7)
    low, high = second["pass_interval"]
    assert low < second["pass_rate"] < high
    assert [one["k"] for one in first["repeats"]] == [1, 2]


async def test_texts_of_strangers_come_back_as_they_were(tmp_path: Path) -> None:
    story = hostile()
    found = await report(tmp_path, story)
    assert [one["case"] for one in found["cases"]] == [one.id for one in story.cases]
    assert found["cases"][0]["epochs"][0]["answer"] == story.results[0].why


async def test_a_large_answer_is_whole(tmp_path: Path) -> None:
    story = Story(cases=[case("a")], results=[result("a")], calls=called("a", "x" * 1_000_000))
    found = await report(tmp_path, story)
    assert len(found["cases"][0]["epochs"][0]["answer"]) == 1_000_000


async def test_a_run_without_any_result_is_a_report_too(tmp_path: Path) -> None:
    found = await report(tmp_path, Story(cases=[case("a")], results=[], state=RunState.QUEUED))
    assert (found["ok"], found["results_missing"]) == (False, 1)
    assert found["cases"][0]["epochs"] == []
