"""SARIF: valid, at the right lines, recognised from run to run, and honest about agents that broke."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from muster.domain.run import RunState
from muster.verify.findings.finding import Finding, Severity
from muster.verify.findings.journal import Ending
from tests.verify.reports.house import CODE, Story, agent, bad, finding, good, hostile, model, wave, written

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "suites" / "reports" / "sarif_schema.json").read_text(encoding="utf-8")
)


async def sarif(tmp_path: Path, story: Story) -> dict[str, Any]:
    tmp_path.mkdir(exist_ok=True)
    text = await written(tmp_path, story, "sarif")
    assert text.isascii()
    found = json.loads(text)
    jsonschema.validate(found, SCHEMA, cls=jsonschema.Draft202012Validator)
    run: dict[str, Any] = found["runs"][0]
    return run


def found_by(*findings: Finding, files: dict[str, str] | None = None, name: str = "auditor") -> Story:
    failed = wave(1, agent(name, 1, Ending.FAILED, findings))
    return Story(verifiers=[model(name)], waves=[failed], files=files or {"src/a.py": CODE})


@pytest.mark.parametrize("given", [{"cwe": "CWE-89"}, {"rule": "E501"}, {"rule": "a b/c"}, {}], ids=str)
async def test_a_rule_has_what_the_validator_of_microsoft_asks_for(tmp_path: Path, given: dict[str, str]) -> None:
    """Its SARIF1001 wants a name unlike the id; its SARIF2012 a name in Pascal case, descriptions and help."""
    run = await sarif(tmp_path, found_by(finding("a flaw", 1, **given)))
    (rule,) = run["tool"]["driver"]["rules"]
    assert rule["name"].casefold() != rule["id"].casefold()
    assert re.fullmatch(r"(?:[A-Z][A-Za-z0-9]*)", rule["name"])
    texts = [rule[name]["text"] for name in ("shortDescription", "fullDescription", "help")]
    assert len(set(texts)) == 3
    assert all(text.endswith(".") for text in texts)
    assert rule.get("helpUri") == ("https://cwe.mitre.org/data/definitions/89.html" if "cwe" in given else None)


async def test_a_finding_is_a_result_at_its_lines_relative_to_the_root(tmp_path: Path) -> None:
    run = await sarif(tmp_path, found_by(finding("two lines", 5, end_line=6, file="src/ä b.py")))
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/%C3%A4%20b.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 5, "endLine": 6}
    assert "uri" not in run["originalUriBaseIds"]["SRCROOT"]  # where it lies on this machine is nobody's business
    assert run["results"][0]["message"]["text"] == "two lines"


@pytest.mark.parametrize(
    ("severity", "level", "score"),
    [
        (Severity.CRITICAL, "error", "9.5"),
        (Severity.HIGH, "error", "8.0"),
        (Severity.MEDIUM, "warning", "5.5"),
        (Severity.LOW, "note", "2.0"),
    ],
)
async def test_every_severity_has_its_level_and_a_weakness_its_score(
    tmp_path: Path, severity: Severity, level: str, score: str
) -> None:
    run = await sarif(tmp_path, found_by(finding(severity=severity, cwe="CWE-89")))
    assert (run["results"][0]["level"], run["results"][0]["properties"]["security-severity"]) == (level, score)
    properties = run["tool"]["driver"]["rules"][0]["properties"]
    assert properties == {"tags": ["security", "external/cwe/cwe-89"], "security-severity": score}


async def test_rules_are_weaknesses_rules_of_checkers_or_agents(tmp_path: Path) -> None:
    found = [
        finding("one", 1, cwe="CWE-89", severity=Severity.LOW),
        finding("two", 2, cwe="CWE-89"),
        finding("three", 3, rule="tests/a.py::test[x y]"),
        finding("four", 4, severity=Severity.LOW),
    ]
    run = await sarif(tmp_path, found_by(*found))
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert list(rules) == ["auditor", "auditor/tests%2Fa.py::test%5Bx%20y%5D", "cwe-89"]
    assert {one["ruleId"] for one in run["results"]} == set(rules)
    assert rules["cwe-89"]["properties"]["security-severity"] == "8.0"
    assert rules["auditor"]["properties"]["problem.severity"] == "recommendation"
    assert "security-severity" not in rules["auditor"]["properties"]


async def test_a_rule_with_a_very_long_name_is_cut_and_stays_itself(tmp_path: Path) -> None:
    found = [finding(f"number {n}", n, rule="x" * 900 + str(n)) for n in (1, 2)]
    run = await sarif(tmp_path, found_by(*found))
    ids = {one["ruleId"] for one in run["results"]}
    assert len(ids) == 2
    assert max(map(len, ids)) <= 200


async def test_a_replacement_is_a_fix_of_whole_lines(tmp_path: Path) -> None:
    run = await sarif(tmp_path, bad())
    fix = run["results"][0]["fixes"][0]
    change = fix["artifactChanges"][0]
    assert fix["description"]["text"] == "use a list"
    assert change["artifactLocation"]["uri"] == "src/a.py"
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 5, "endLine": 5},
            "insertedContent": {"text": "    subprocess.run([name])"},
        }
    ]
    assert "fixes" not in run["results"][1]


async def test_lines_that_are_to_go_go_with_their_line_breaks(tmp_path: Path) -> None:
    found = [finding("no use", 2, end_line=3, replacement=""), finding("no use, the last", 6, replacement="")]
    run = await sarif(tmp_path, found_by(*found))
    regions = [one["fixes"][0]["artifactChanges"][0]["replacements"][0]["deletedRegion"] for one in run["results"]]
    assert regions == [
        {"startLine": 2, "startColumn": 1, "endLine": 4, "endColumn": 1},
        {"startLine": 6, "endLine": 6},
    ]


async def test_a_replacement_from_which_a_secret_was_taken_is_no_fix(tmp_path: Path) -> None:
    run = await sarif(tmp_path, found_by(finding(replacement="token = 'ghp_" + "a1B2c3D4e5" * 4 + "'")))
    assert "fixes" not in run["results"][0]


def names(run: dict[str, Any]) -> list[str]:
    return [one["partialFingerprints"]["muster/finding/v1"] for one in run["results"]]


async def test_a_finding_is_recognised_when_its_lines_moved_and_its_words_changed(tmp_path: Path) -> None:
    moved = {"src/a.py": "# new\n# lines\n" + CODE.replace("    os.system", "\tos.system")}
    before = await sarif(tmp_path / "one", found_by(finding("a shell", 5, cwe="CWE-78")))
    after = await sarif(tmp_path / "two", found_by(finding("commands", 7, cwe="CWE-78"), files=moved))
    other = await sarif(tmp_path / "three", found_by(finding("a shell", 6, cwe="CWE-78")))
    assert names(before) == names(after)
    assert names(before) != names(other)


async def test_the_same_finding_in_equal_lines_is_told_apart(tmp_path: Path) -> None:
    files = {"src/a.py": "x()\nx()\ny()\n"}
    two = [finding("bad", 1, rule="R"), finding("bad", 2, rule="R", severity=Severity.CRITICAL)]
    first, second = names(await sarif(tmp_path, found_by(*two, files=files)))
    assert first != second


async def test_a_finding_in_a_file_that_was_not_read_in_is_recognised_by_its_words(tmp_path: Path) -> None:
    runs = [
        await sarif(tmp_path / str(line), found_by(finding("broken  import", line, file="lib/b.py"))) for line in (3, 9)
    ]
    assert names(runs[0]) == names(runs[1])


async def test_what_was_rejected_is_told_and_no_result(tmp_path: Path) -> None:
    run = await sarif(tmp_path, bad())
    assert len(run["results"]) == 2
    told = [(one["level"], one["message"]["text"]) for one in run["invocations"][0]["toolExecutionNotifications"]]
    assert told[0] == ("error", "agent auditor failed: auditor is failed")
    assert told[-1][0] == "note"
    assert told[-1][1].startswith("A finding of auditor at src/a.py:99 was rejected, line 99 is not in the file")


async def test_findings_are_no_failure_of_the_tool(tmp_path: Path) -> None:
    run = await sarif(tmp_path, bad())
    assert run["invocations"][0]["executionSuccessful"] is True
    assert run["invocations"][0]["endTimeUtc"] == "2027-01-15T08:00:14Z"
    assert (run["properties"]["ok"], run["properties"]["partial"]) == (False, False)


BROKEN = Story(verifiers=[model("a")], waves=[wave(1, agent("a", 1, Ending.BROKEN))])


@pytest.mark.parametrize(
    "story",
    [BROKEN, replace(BROKEN, waves=[wave(1)]), replace(BROKEN, waves=[]), good(state=RunState.INTERRUPTED)],
    ids=["broken", "missing", "nothing", "stopped"],
)
async def test_an_agent_that_broke_or_a_run_that_stopped_was_not_successful(tmp_path: Path, story: Story) -> None:
    run = await sarif(tmp_path, story)
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["results"] == []


async def test_texts_of_strangers_are_texts_and_no_links(tmp_path: Path) -> None:
    run = await sarif(tmp_path, hostile())
    texts = [one["message"]["text"] for one in run["results"]]
    assert len(texts) == 4
    assert not any("](" in text for text in texts)
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for one in run["results"]]
    assert places[0] == "src/a%20b%230%25%7C%60%3Cb%3E%40x.py"
