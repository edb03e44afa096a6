"""What is doubtful in a suite that is valid."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from muster.domain.errors import BadFile
from muster.suites.format.lint import MAX_FINDINGS, lint
from tests.suites.format.suites import HEAD, a_case, judged_by, write, write_suite

CHECK = {"kind": "contains", "value": "x"}
ITEM = {"id": "a", "description": "x", "weight": 1, "auto_check": CHECK}


def smoke(**changes: Any) -> dict[str, Any]:
    return a_case(tags=["smoke"], **changes)


def codes(path: Path) -> list[str]:
    return [finding.code for finding in lint(path)]


def told(path: Path) -> str:
    (finding,) = lint(path)
    return finding.message


def test_a_good_suite_is_clean(tmp_path: Path) -> None:
    full = {"bundle_id": "a", "risk_tier": "low", "certification_track": "none", "x-team": "a", "$schema": "b"}
    assert codes(write_suite(tmp_path, smoke(), judged_by(ITEM, id="greeter/two"), **full)) == []


def test_a_suite_has_a_case_for_smoke(tmp_path: Path) -> None:
    assert codes(write_suite(tmp_path, a_case())) == ["no-smoke-case"]
    assert codes(write_suite(tmp_path, a_case(), defaults={"tags": ["smoke"]})) == []


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (smoke(evaluator_config={"evaluator": "judge"}, expected={"rubric": [ITEM]}), ["no-description"]),
        (smoke(evaluator_config={"evaluator": "judge"}, description="x"), ["judge-without-rubric"]),
        (smoke(expected={"rubric": [{**ITEM, "weight": 0.94}]}), ["rubric-weights"]),
        (smoke(expected={"rubric": [{**ITEM, "weight": 0.95}]}), []),
        (smoke(expected={"rubric": [{**ITEM, "weight": 1.05}]}), []),
        (smoke(expected={"rubric": [{"id": "a", "description": "x"}]}), ["unjudged-item"]),
        (smoke(expected={"output": [{"kind": "contains", "value": ""}]}), ["empty-check"]),
        (smoke(expected={"output": [{"kind": "equals", "value": ""}]}), []),
        (smoke(input={"messages": [{"role": "user", "content": "{{who}}"}]}), ["undefined-variable"]),
        (smoke(evaluator_config={"golden_threshold": 0.5}), ["unused-setting"]),
        (smoke(evaluator_config={"judge_prompt": "x"}), ["unused-setting"]),
        (smoke(evaluator_config={"process_cmd": ["cat"]}), ["unused-setting"]),
        (smoke(evaluator_config={"evaluator": "process", "process_cmd": ["cat"]}), []),
        (a_case(tags=["smoke", "Smoke"]), ["tag-spelling"]),
        (a_case(tags=["smoke", "happy_path"]), ["tag-spelling"]),
        (a_case(tags=["smoke", "own", "OWN"]), ["tag-spelling"]),
        (a_case(tags=["smoke", "smoke"]), ["duplicate-tag"]),
    ],
)
def test_what_is_doubtful_in_a_case_has_a_code(tmp_path: Path, case: dict[str, Any], expected: list[str]) -> None:
    path = write_suite(tmp_path, case)
    assert codes(path) == expected
    assert all(finding.line == 4 and finding.case == "greeter/one" for finding in lint(path))


def test_golden_settings_are_used_by_golden_checks_too(tmp_path: Path) -> None:
    write(tmp_path, "x", "a.txt")
    config = {"golden_path": "a.txt", "golden_threshold": 0.5}
    check = {"kind": "golden_diff"}
    assert codes(write_suite(tmp_path, smoke(expected={"output": [check]}, evaluator_config=config))) == []
    in_rubric = {"rubric": [{**ITEM, "auto_check": check}]}
    assert codes(write_suite(tmp_path, smoke(expected=in_rubric, evaluator_config=config))) == []
    assert codes(write_suite(tmp_path, smoke(evaluator_config=config))) == ["unused-setting"] * 2


def test_a_bundle_names_its_risk_and_track(tmp_path: Path) -> None:
    path = write_suite(tmp_path, smoke(), bundle_id="a/b")
    assert [finding.message for finding in lint(path)] == [
        "bundle_id: a bundle needs its risk_tier",
        "bundle_id: a bundle needs its certification_track",
    ]


def test_a_field_that_nobody_knows_is_told(tmp_path: Path) -> None:
    assert told(write_suite(tmp_path, smoke(zzz=5))) == "zzz: unknown field"


def test_free_mappings_may_hold_anything(tmp_path: Path) -> None:
    said = {"messages": [{"role": "user", "content": "x"}], "context": {"any": 1}, "env_overrides": {"ANY": "1"}}
    assert codes(write_suite(tmp_path, smoke(input=said))) == []


def test_an_odd_tag_is_told_once(tmp_path: Path) -> None:
    path = write_suite(tmp_path, *(a_case(str(index), tags=["smoke", "Smoke"]) for index in range(3)))
    assert codes(path) == ["tag-spelling"]


def test_findings_are_bounded(tmp_path: Path) -> None:
    assert len(lint(write_suite(tmp_path, *(smoke(id=f"greeter/{n}", odd=1) for n in range(600))))) == MAX_FINDINGS


def test_a_suite_that_is_not_valid_is_not_linted(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="cases: the list is empty"):
        lint(write(tmp_path, HEAD + "cases: []\n"))


def manifest(folder: Path, **said: Any) -> None:
    write(folder, json.dumps(said), "bundle.manifest.json")


def test_a_manifest_that_fits_is_clean(tmp_path: Path) -> None:
    path = write_suite(tmp_path, smoke(), a_case("two"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    files = [{"path": "cases.yaml", "sha256": f"sha256:{digest.upper()}"}, {"path": "../mocks.json", "sha256": "0"}]
    manifest(tmp_path, skill_or_agent="greeter", case_ids=["greeter/two", "greeter/one"], fixtures=files)
    assert codes(path) == []


def test_a_manifest_that_does_not_fit_is_told(tmp_path: Path) -> None:
    path = write_suite(tmp_path, smoke(), a_case("two"))
    files = [{"path": "cases.yaml", "sha256": "0" * 64}, {"path": "gone.txt", "sha256": "0" * 64}, 5]
    manifest(tmp_path, case_ids=["greeter/one", "greeter/three"], fixtures=files)
    found = lint(path)
    assert [finding.code for finding in found] == ["manifest-cases"] * 2 + ["manifest-digest"] * 2
    assert "case_ids does not list greeter/two" in found[0].message
    assert "greeter/three" in found[1].message
    assert "the SHA-256 of cases.yaml is" in found[2].message
    assert "gone.txt: cannot be read" in found[3].message
    assert all(finding.file.endswith("bundle.manifest.json") for finding in found)


def test_a_manifest_of_another_suite_says_nothing_about_these_cases(tmp_path: Path) -> None:
    manifest(tmp_path, skill_or_agent="other", case_ids=["other/one"])
    assert codes(write_suite(tmp_path, smoke())) == []


@pytest.mark.parametrize("text", ["{", "[]", b"\xff", "[" * 100_000])
def test_a_manifest_that_cannot_be_read_is_told(tmp_path: Path, text: str | bytes) -> None:
    write(tmp_path, text, "bundle.manifest.json")
    assert codes(write_suite(tmp_path, smoke())) == ["manifest-unreadable"]
