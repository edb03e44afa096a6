"""What ruff writes: from its real output, and from outputs that must not pass for a clean one."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from muster.domain.canonical import Json
from muster.verify.findings.finding import Severity
from muster.verify.tools.registry import PARSERS
from muster.verify.tools.ruff import severity_of
from tests.verify.tools.values import counted

parse = PARSERS["ruff"]
CODE = "import os\nx = undefined\ny = (1,\n     2\n     )\nassert y\n"


def ruff(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "ruff",
        "check",
        "--isolated",
        "--no-cache",
        "--select",
        "F,S,E9,D100",
        *options,
        ".",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("form", ["json", "concise"])
def test_every_violation_of_a_real_run_is_a_finding(tmp_path: Path, form: str) -> None:
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "b.py").write_text("def broken(:\n    pass\n")
    ran = ruff(tmp_path, "--output-format", form)
    found = parse(ran.stdout, ran.stderr, ran.returncode)
    assert found.flaw == ""
    seen = {(Path(one.file).name, one.line, one.rule): one.severity for one in found.findings}
    assert seen["a.py", 1, "D100"] is Severity.LOW
    assert seen["a.py", 1, "F401"] is Severity.MEDIUM
    assert seen["a.py", 2, "F821"] is Severity.HIGH
    assert seen["a.py", 6, "S101"] is Severity.HIGH
    assert seen["b.py", 1, "invalid-syntax"] is Severity.HIGH
    assert all("[*]" not in one.finding for one in found.findings)


def test_violations_of_one_rule_on_one_line_are_all_counted(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os, sys, re, json\nprint(first, second, third)\n")
    ran = ruff(tmp_path, "--output-format", "concise", "--ignore", "D100")
    assert "Found 7 errors." in ran.stdout
    assert counted(parse(ran.stdout, ran.stderr, ran.returncode)) == (7, 7, 7)


@pytest.mark.parametrize("form", ["json", "concise"])
def test_a_clean_run_has_no_findings_and_a_run_over_nothing_is_none(tmp_path: Path, form: str) -> None:
    ran = ruff(tmp_path, "--output-format", form)
    assert "no file to check" in parse(ran.stdout, ran.stderr, ran.returncode).flaw
    (tmp_path / "a.py").write_text('"""Nothing."""\n')
    ran = ruff(tmp_path, "--output-format", form)
    assert ran.returncode == 0
    assert parse(ran.stdout, ran.stderr, 0) == parse("[]", "", 0)
    assert parse("[]", "", 0).findings == ()


def item(**changes: Json) -> dict[str, Json]:
    usual: dict[str, Json] = {
        "code": "E711",
        "filename": "/r/a.py",
        "location": {"row": 2, "column": 1},
        "end_location": {"row": 4, "column": 1},
        "message": "Wrong",
        "fix": {"message": "Do it right", "edits": []},
        "cell": None,
    }
    return usual | changes


def test_an_end_at_the_beginning_of_a_line_is_the_line_before() -> None:
    (found,) = parse(json.dumps([item()]), "", 1).findings
    assert (found.file, found.line, found.end_line, found.fix) == ("/r/a.py", 2, 3, "Do it right")
    (found,) = parse(json.dumps([item(code=None)]), "", 1).findings
    assert (found.rule, found.severity) == ("invalid-syntax", Severity.HIGH)


def test_a_cell_of_a_notebook_has_no_line_in_the_file() -> None:
    (found,) = parse(json.dumps([item(cell=3)]), "", 1).findings
    assert (found.line, found.end_line, found.finding) == (0, 0, "cell 3, line 2: Wrong")


@pytest.mark.parametrize(
    "output",
    [
        "",
        "fine",
        "[",
        "[1]",
        "[null]",
        "[{}]",
        json.dumps([item(), item(location={"row": "2", "column": 1})]),
        json.dumps([item(location={"row": True, "column": 1})]),
        json.dumps([item(code="E902", message="No such file or directory")]),
        "[" * 100_000,
        "a.py:1:1: F401 unused",
        "a.py:1:1: F401 unused\nFound 2 errors.",
        "a.py:1:1: F401 unused\nAll checks passed!\nFound 1 error.\nFound 1 error.",
        "Found 0 errors in a way",
        "Found 3 errors.",
        "ruff failed\n  Cause: Unknown rule",
    ],
    ids=lambda value: str(value)[:40],
)
def test_an_output_that_cannot_be_read_whole_is_a_flaw(output: str) -> None:
    assert parse(output, "", 0).flaw
    assert parse(output, "", 1).flaw


def test_colours_and_what_was_fixed_are_understood() -> None:
    painted = "\x1b[1ma.py\x1b[0m:1:1: \x1b[31mF401\x1b[0m [*] `os` imported\nFound 3 errors (2 fixed, 1 remaining).\n"
    assert [one.file for one in parse(painted, "", 1).findings] == ["a.py"]


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        ("S101", Severity.HIGH),
        ("SIM102", Severity.MEDIUM),
        ("E902", Severity.HIGH),
        ("E501", Severity.LOW),
        ("E722", Severity.MEDIUM),
        ("F401", Severity.MEDIUM),
        ("F821", Severity.HIGH),
        ("F841", Severity.MEDIUM),
        ("B006", Severity.MEDIUM),
        ("D100", Severity.LOW),
        ("DTZ005", Severity.MEDIUM),
        ("PLE0101", Severity.HIGH),
        ("PLW0603", Severity.MEDIUM),
        ("invalid-syntax", Severity.HIGH),
    ],
)
def test_a_rule_has_its_severity(code: str, severity: Severity) -> None:
    assert severity_of(code) is severity
