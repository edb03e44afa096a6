"""SARIF: valid, at the right line, and recognised from run to run."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema

from muster.domain.case import Status
from muster.domain.run import RunState
from muster.suites.values.verdict import CheckResult
from tests.suites.reports.house import Story, case, hostile, result, shop, written

SCHEMA = json.loads((Path(__file__).parent / "sarif_schema.json").read_text(encoding="utf-8"))


async def sarif(tmp_path: Path, story: Story) -> dict[str, Any]:
    found = json.loads(await written(tmp_path, story, "sarif"))
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft202012Validator)
    run: dict[str, Any] = found["runs"][0]
    return run


async def test_what_did_not_pass_is_a_result_at_its_line(tmp_path: Path) -> None:
    run = await sarif(tmp_path, shop())
    assert len(run["results"]) == 6
    found = next(one for one in run["results"] if one["ruleId"] == "muster/check-tool-sequence")
    place = found["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("suites/support.yaml", 30)
    assert found["message"]["text"].startswith("count-open-tickets (sim/terse): tool_sequence: close_ticket")
    assert (found["level"], found["properties"]["tags"]) == ("error", ["tools"])


async def test_every_kind_of_failure_has_its_rule(tmp_path: Path) -> None:
    run = await sarif(tmp_path, shop())
    rules = {rule["id"]: rule["shortDescription"]["text"] for rule in run["tool"]["driver"]["rules"]}
    assert set(rules) == {
        "muster/score",
        "muster/check-tool-sequence",
        "muster/flaky",
        "muster/error",
        "muster/unjudged",
    }
    assert {one["ruleId"] for one in run["results"]} == set(rules)
    assert rules["muster/check-tool-sequence"] == "A check failed: tool sequence."
    assert {one["ruleId"]: one["level"] for one in run["results"]}["muster/flaky"] == "warning"


async def test_a_case_is_recognised_when_it_moved_and_failed_otherwise(tmp_path: Path) -> None:
    first = Story(cases=[case("a", line=3)], results=[result("a", Status.FAILED)])
    broken = CheckResult(name="regex", passed=False, why="no match")
    later = replace(first, cases=[case("a", line=90)], results=[result("a", Status.FAILED, checks=(broken,))])
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    before, after = await sarif(tmp_path / "one", first), await sarif(tmp_path / "two", later)
    assert before["results"][0]["ruleId"] != after["results"][0]["ruleId"]
    assert before["results"][0]["partialFingerprints"] == after["results"][0]["partialFingerprints"]
    other = await sarif(tmp_path, replace(first, cases=[case("b")], results=[result("b", Status.FAILED)]))
    assert other["results"][0]["partialFingerprints"] != before["results"][0]["partialFingerprints"]


async def test_a_run_that_is_whole_was_successful_whatever_it_found(tmp_path: Path) -> None:
    invocation = (await sarif(tmp_path, shop()))["invocations"][0]
    assert invocation["executionSuccessful"] is True
    assert (invocation["startTimeUtc"], invocation["endTimeUtc"]) == ("2027-01-15T08:00:00Z", "2027-01-15T08:00:14Z")


async def test_a_run_that_stopped_was_not_successful_and_says_what_is_missing(tmp_path: Path) -> None:
    story = Story(cases=[case("a"), case("b")], results=[result("a")], state=RunState.INTERRUPTED)
    run = await sarif(tmp_path, story)
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is False
    told = [one["message"]["text"] for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert told == ["The run was interrupted.", "1 of 2 results are missing."]
    assert run["properties"]["ok"] is False


async def test_texts_of_strangers_are_texts(tmp_path: Path) -> None:
    run = await sarif(tmp_path, hostile())
    assert [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]] == [
        f"suites/a%20b%23{number}%25.yaml" for number in range(4)
    ]
