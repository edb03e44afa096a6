"""What a SARIF log says: from the real one of ruff, and from logs that must not pass for clean ones."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.canonical import Json
from muster.verify.findings.answers import FindingsAnswer
from muster.verify.findings.finding import Severity
from muster.verify.tools.registry import PARSERS

parse = PARSERS["sarif"]
RULES = [
    {"id": "sql", "properties": {"security-severity": "9.8", "tags": ["security", "external/cwe/cwe-089"]}},
    {
        "id": "odd",
        "defaultConfiguration": {"level": "note"},
        "messageStrings": {"m": {"text": "{0} is odd, not {1}{9}"}},
    },
]


def result(**changes: Json) -> dict[str, Json]:
    place: dict[str, Any] = {
        "artifactLocation": {"uri": "src/a%20b.py"},
        "region": {"startLine": 3, "endLine": 5, "endColumn": 1},
    }
    return {"ruleId": "x", "message": {"text": "Wrong"}, "locations": [{"physicalLocation": place}], **changes}


def log(*results: Json, **run: Json) -> str:
    tool = {"driver": {"name": "t", "rules": RULES}}
    return json.dumps({"version": "2.1.0", "runs": [{"tool": tool, "results": list(results), **run}]})


def read(*results: Json, **run: Json) -> FindingsAnswer:
    return parse(log(*results, **run), "", 0)


def test_the_log_of_a_real_run_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n")
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--output-format", "sarif", "."]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (found,) = parse(ran.stdout, ran.stderr, ran.returncode).findings
    assert (found.file, found.line, found.rule) == (str(tmp_path / "a.py"), 1, "F401")
    assert (found.severity, found.fix) == (Severity.HIGH, "Remove unused import: `os`")


def test_a_result_is_a_finding_at_its_lines() -> None:
    (found,) = read(result()).findings
    assert (found.file, found.line, found.end_line, found.finding) == ("src/a b.py", 3, 4, "Wrong")
    assert (found.severity, found.rule) == (Severity.MEDIUM, "x")


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({"level": "error"}, Severity.HIGH),
        ({"level": "note"}, Severity.LOW),
        ({"level": "none"}, Severity.LOW),
        ({"ruleId": "odd"}, Severity.LOW),
        ({"ruleIndex": 0}, Severity.CRITICAL),
        ({"rule": {"index": 0}}, Severity.CRITICAL),
        ({"ruleId": "sql", "level": "note"}, Severity.CRITICAL),
        ({"properties": {"security-severity": 7.0}}, Severity.HIGH),
        ({"properties": {"security-severity": "4"}}, Severity.MEDIUM),
        ({"properties": {"security-severity": "0.1"}}, Severity.LOW),
        ({"properties": {"security-severity": "nan"}, "level": "error"}, Severity.HIGH),
    ],
)
def test_a_level_or_better_a_security_severity_is_the_severity(changes: dict[str, Any], severity: Severity) -> None:
    assert [one.severity for one in read(result(**changes)).findings] == [severity]


def test_a_rule_lends_its_words_and_its_weakness() -> None:
    (found,) = read(result(ruleId="odd", message={"id": "m", "arguments": ["This", "that"]})).findings
    assert found.finding == "This is odd, not that{9}"
    assert read(result(ruleId="sql")).findings[0].cwe == "CWE-89"
    assert read(result(message={})).findings[0].finding == "x"


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ({"uri": "file:///r/a.py"}, "/r/a.py"),
        ({"uri": "a.py", "uriBaseId": "SRC"}, "/r/src/a.py"),
        ({"uri": "a.py", "uriBaseId": "%ROOT%"}, "a.py"),
        ({"uri": "a.py", "uriBaseId": "LOOP"}, "a.py"),
        ({"uri": "https://example.com/a.py"}, ""),
        ({"uri": "file://[x"}, ""),
        ({}, ""),
    ],
)
def test_an_address_becomes_a_path(location: Json, path: str) -> None:
    bases = {
        "TOP": {"uri": "file:///r/"}, "SRC": {"uri": "src/", "uriBaseId": "TOP"}, "%ROOT%": {},
        "LOOP": {"uriBaseId": "LOOP"},
    }  # fmt: skip
    place = {"physicalLocation": {"artifactLocation": location}}
    (found,) = read(result(locations=[place]), originalUriBaseIds=bases).findings
    assert (found.file, found.line) == (path, 0)


def test_what_passed_or_was_suppressed_is_no_finding() -> None:
    gone = [
        result(kind="pass"), result(kind="informational"), result(baselineState="absent"),
        result(suppressions=[{"kind": "inSource"}]),
    ]  # fmt: skip
    kept = [
        result(kind="review"),
        result(suppressions=[{"kind": "external", "status": "rejected"}]),
        result(locations=[]),
    ]
    assert len(read(*gone, *kept).findings) == 3
    assert read().findings == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fine",
        "[]",
        "{}",
        '{"version": "2.0.0", "runs": [{"results": []}]}',
        '{"version": "2.1.0"}',
        '{"version": "2.1.0", "runs": []}',
        '{"version": "2.1.0", "runs": [{}]}',
        '{"version": "2.1.0", "runs": [{"results": null}]}',
        '{"version": "2.1.0", "runs": [7]}',
        log(invocations=[{"executionSuccessful": False}]),
        log(7),
        log(result(level="terrible")),
        log(result(locations=[{"physicalLocation": {"region": {"startLine": "3"}}}])),
        log(result(locations=7)),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_log_that_cannot_be_read_whole_is_a_flaw(text: str) -> None:
    assert parse(text, "", 0).flaw


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["ruleId", "ruleIndex", "message", "locations", "level", "kind", "properties", "suppressions", "fixes"]
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_no_result_breaks_the_parser(changes: dict[str, Json]) -> None:
    found = read(result(**changes))
    assert found.flaw or len(found.findings) <= 1
