"""What mypy writes: from its real output, and from outputs that must not pass for a clean one."""

import json
from pathlib import Path

import pytest
from mypy import api

from muster.verify.findings.answers import FindingsAnswer
from muster.verify.findings.finding import Severity
from muster.verify.tools.registry import PARSERS
from tests.verify.tools.values import counted

parse = PARSERS["mypy"]
ERROR = "a.py:4: error: Bad value  [return-value]"
FOUND = "Found 1 error in 1 file (checked 1 source file)"


FORMS = (
    ["--show-column-numbers", "--show-error-end"],
    ["--pretty"],
    ["--hide-error-codes", "--show-column-numbers"],
    ["--output", "json"],
)


def test_real_runs_are_read_in_every_form(tmp_path: Path) -> None:
    # All in one: without what it remembers of the run before, each would take seconds.
    usual = ["--cache-dir", str(tmp_path / "cache"), "--config-file", "", str(tmp_path / "a.py")]
    (tmp_path / "a.py").write_text("def f(x: int) -> str:\n    return x\n\n\nreveal_type(f)\nimport nosuch\n")
    for form in FORMS:
        found = parse(*api.run([*form, *usual]))
        assert found.flaw == ""
        assert [(Path(one.file).name, one.line) for one in found.findings] == [("a.py", 2), ("a.py", 6)]
        assert {one.severity for one in found.findings} == {Severity.HIGH}
        assert all(one.finding for one in found.findings)
    assert [one.rule for one in found.findings] == ["return-value", "import-not-found"]
    (tmp_path / "a.py").write_text("x: int = 1\n")
    for form in FORMS:
        assert parse(*api.run([*form, *usual])) == FindingsAnswer()
    (tmp_path / "a.py").write_text("print(first, second, third)\n")
    alike = parse(*api.run(usual))
    assert ({one.line for one in alike.findings}, counted(alike)) == ({1}, (3, 3, 3))
    (tmp_path / "a.py").write_text("def broken(:\n")
    stopped = parse(*api.run(usual))
    assert "prevented it from checking the rest" in stopped.flaw
    assert "a.py:1" in stopped.flaw


@pytest.mark.parametrize(
    "output",
    [
        "fine",
        "usage: mypy [-h]",
        ERROR,
        "Success: no issues found in 0 source files",
        f"{ERROR}\nSuccess: no issues found in 1 source file",
        f"{ERROR}\nFound 2 errors in 1 file (checked 1 source file)",
        FOUND,
        f"{ERROR}\n{FOUND}\n{FOUND}",
        "a.py:4: note: only a note\n" + FOUND,
        '{"file": "a.py"}',
        '{"file": "a.py", "line": "x", "severity": "error", "message": "m"}',
        '{"file": "a.py", "line": 1, "severity": "error", "message": "m"}\nFound 1 error',
    ],
)
def test_an_output_that_cannot_be_read_whole_is_a_flaw(output: str) -> None:
    assert parse(output, "", 0).flaw


def test_silence_is_a_clean_report_only_with_an_exit_that_says_so() -> None:
    assert parse("\n", "", 0) == FindingsAnswer()
    assert parse("", "", 1).flaw
    assert parse("", "mypy: something is off", 0).flaw


def test_lines_are_read_with_ends_and_without_lines() -> None:
    text = "a b.py:4:5:6:7: error: Bad  [x]\nm.py: error: Source file found twice\na b.py:4: note: see\n"
    found = parse(text + "Found 2 errors in 2 files (checked 2 source files)", "", 1).findings
    assert [(one.file, one.line, one.end_line, one.finding) for one in found] == [
        ("a b.py", 4, 6, "Bad"),
        ("m.py", 0, 0, "Source file found twice"),
    ]


def test_json_without_a_line_is_about_the_file() -> None:
    said = {
        "file": "a.py",
        "line": -1,
        "end_line": None,
        "severity": "error",
        "message": "m",
        "hint": "h",
        "code": None,
    }
    (found,) = parse(json.dumps(said), "", 1).findings
    assert (found.line, found.end_line, found.fix, found.rule) == (0, 0, "h", "")
