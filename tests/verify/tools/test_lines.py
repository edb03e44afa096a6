"""Lines that name a place, our own JSON, and what no parser may do: break."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.verify.findings.finding import Severity
from muster.verify.tools.lines import tail
from muster.verify.tools.registry import PARSERS

parse = PARSERS["lines"]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a.py:3: Wrong", ("a.py", 3, Severity.HIGH, "Wrong", "")),
        ("a.py:3:14: error: Wrong", ("a.py", 3, Severity.HIGH, "Wrong", "")),
        (
            "src/a b.c:3:1: warning: unused [-Wunused]",
            ("src/a b.c", 3, Severity.MEDIUM, "unused [-Wunused]", "-Wunused"),
        ),
        ("a.rs:3: Fatal: Wrong", ("a.rs", 3, Severity.CRITICAL, "Wrong", "")),
        ("a.py:3: CRITICAL: Wrong", ("a.py", 3, Severity.CRITICAL, "Wrong", "")),
        ("a.py:3: note: Wrong", ("a.py", 3, Severity.LOW, "Wrong", "")),
        ("a.rs:3: error[E0308]: mismatched", ("a.rs", 3, Severity.HIGH, "mismatched", "")),
        ("a.py:3: TypeError: Wrong", ("a.py", 3, Severity.HIGH, "TypeError: Wrong", "")),
        ("\x1b[31ma.py:3:\x1b[0m low: Wrong", ("a.py", 3, Severity.LOW, "Wrong", "")),
    ],
)
def test_a_line_with_a_place_is_a_finding(line: str, found: tuple[object, ...]) -> None:
    (one,) = parse(f"Checking…\n{line}\n    some code\n", "", 0).findings
    assert parse(f"{line}\n", "", 1).findings == (one,)
    assert (one.file, one.line, one.severity, one.finding, one.rule) == found


@pytest.mark.parametrize("line", ["", "all good", "a.py: wrong", "a.py:x: wrong", "  a.py:3: indented", "a.py:3:"])
def test_a_line_without_a_place_is_none(line: str) -> None:
    assert parse(line, "", 0).findings == ()


ONE = "a.py:1: warning: deprecated option"
TRACEBACK = 'Traceback (most recent call last):\n  File "/x/lint.py", line 3, in <module>\nKeyError: 1'


@pytest.mark.parametrize(
    "closing",
    [
        "",
        "Found 1 error in 1 file",
        "Found 1 error in 1 file (checked 3 source files)",
        "1 warning generated.",
        "✖ 1 problem (0 errors, 1 warning)",
        "0 errors, 1 warning",
        "1 issue found",
        "************* Module a\n" + "-" * 40 + "\nYour code has been rated at 9.50/10 (previous run: 9.00/10, +0.50)",
        "    3 | x = (1,\n      |     ^~~\n        ^",
        "a.c: In member function 'int A::f()':",
    ],
)
def test_a_checker_that_fails_may_close_with_what_says_nothing_new(closing: str) -> None:
    found = parse(f"{ONE}\n{closing}\n", "", 1)
    assert (found.flaw, len(found.findings)) == ("", 1)


@pytest.mark.parametrize(
    "closing",
    [
        TRACEBACK,
        "KeyError: 1",
        "Found 2 errors in 1 file",
        "Found 1 error in 1 file (errors prevented further checking)",
        "1 error and 1 warning generated.",
        "0 problems",
        "Aborted.",
        "error: cannot read b.py",
        "Error: In evaluating the rules:",
        "b.py: skipped",
        "    some code",
    ],
)
def test_a_checker_that_fails_and_says_something_else_was_not_read_whole(closing: str) -> None:
    for output in (f"{ONE}\n{closing}\n", f"{closing}\n{ONE}\n"):
        found = parse(output, "", 1)
        assert found.findings == ()
        assert "neither a finding nor a matching count" in found.flaw


def test_a_count_may_leave_out_notes() -> None:
    assert len(parse(f"{ONE}\na.py:2: note: see here\n1 warning generated.\n", "", 1).findings) == 2


@pytest.mark.parametrize("code", [0, 1])
def test_a_traceback_is_no_report_wherever_it_stands(code: int) -> None:
    assert "it broke off" in parse(ONE, TRACEBACK, code).flaw
    assert parse(f"{ONE}\n{TRACEBACK}", "", code).flaw
    assert not parse(ONE, "loading rules", code).flaw
    assert not parse("a.py:1: error: no test for Traceback (most recent call last):", "", code).flaw


@pytest.mark.parametrize(
    ("line", "more"),
    [
        ("3 errors found in a.py", True),
        ("Checked 8 files: 12 high-severity security issues", True),
        ("Errors found: 2", True),
        ("warnings=1", True),
        ("1,234 errors", True),
        ("0 errors, 0 warnings", False),
        ("2 files without errors", False),
        ("errors: 0", False),
        ("Checked 12 files, no problems", False),
        ("version 2.10 issues nothing", False),
    ],
)
def test_an_exit_with_0_may_not_speak_of_more_than_was_read(line: str, more: bool) -> None:
    assert bool(parse(line, "", 0).flaw) is more
    assert parse(f"{ONE}\n1 warning", "", 0).flaw == ""
    assert parse(f"{ONE}\n2 warnings", "", 0).flaw


def test_our_own_json_is_read_as_strictly_as_that_of_models() -> None:
    own = PARSERS["json"]
    finding = {"file": "a.py", "line": 2, "severity": "low", "finding": "Hm"}
    found = own(json.dumps({"findings": [finding], "score": 3, "parts": {"a": 1}, "coverage": 50}), "", 0)
    assert (found.findings[0].finding, found.score, found.parts, found.coverage) == ("Hm", 3.0, {"a": 1.0}, 50.0)
    assert own('{"findings": []}', "", 0).flaw == ""
    for text in ("", "[]", 'log\n{"findings": []}', '{"findings": [], "score": 11}', '{"findings": [], "x": 1}'):
        assert own(text, "", 0).flaw


@pytest.mark.parametrize("name", PARSERS)
@given(
    text=st.text(max_size=120) | st.text(alphabet='a.py:1 []{}",_=E-\nFound error', max_size=120),
    code=st.integers(0, 5),
)
def test_no_output_breaks_a_parser(name: str, text: str, code: int) -> None:
    found = PARSERS[name](text, text, code)
    assert not (found.flaw and found.findings)
    assert all(one.line >= 0 and one.end_line >= one.line for one in found.findings)


@pytest.mark.parametrize("name", PARSERS)
def test_no_output_keeps_a_parser_busy(name: str) -> None:
    for text in (
        "a.py:1:" * 50_000,
        "_ " * 200_000,
        "=" * 300_000,
        "a.py:1:1: error: " + "x" * 300_000,
        "1 a, " * 90_000,
    ):
        PARSERS[name](text, text, 1)


def test_the_last_words_are_short() -> None:
    assert len(tail("word " * 1_000)) < 310
    assert tail(" a\n b ") == "a b"
