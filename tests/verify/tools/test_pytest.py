"""What pytest writes: from its real output in every style, and from outputs that must not pass for a success."""

import subprocess
import sys
from pathlib import Path

import pytest

from muster.verify.tools.registry import PARSERS
from tests.verify.tools.values import counted

parse = PARSERS["pytest"]
TESTS = """\
import pytest
from lib import double

def test_good():
    assert double(1) == 2

def test_bad():
    print("FAILED test_a.py::test_good - not so")
    print("===== 9 passed in 0.1s =====")
    assert double(2) == 5, "nope - not - five"

@pytest.mark.parametrize("x", ["a b", "c - d"])
def test_param(x):
    double(None)

class TestK:
    def test_in(self):
        raise ValueError("multi")

@pytest.fixture
def broken():
    raise RuntimeError("fixture")

def test_err(broken):
    pass

def test_parts(subtests):
    with subtests.test("n", i=1):
        assert False
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    usual = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:asyncio",
        "-p",
        "no:xdist",
        "-p",
        "no:schemathesis",
        "-c",
        "/dev/null",
        "--rootdir",
        ".",
    ]
    command = [sys.executable, "-B", "-m", "pytest", *usual, *options]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("options", [["-v"], ["-q", "--tb=native", "-rf"]], ids=str)
def test_every_failure_of_a_real_run_is_a_finding_where_it_happened(tmp_path: Path, options: list[str]) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    (tmp_path / "lib.py").write_text("def double(x):\n    return x * 2\n")
    ran = run(tmp_path, *options)
    found = parse(ran.stdout, ran.stderr, ran.returncode)
    assert found.flaw == ""
    places = sorted((Path(one.file).name, one.line) for one in found.findings)
    assert places == [
        ("lib.py", 2), ("lib.py", 2), ("test_a.py", 0), ("test_a.py", 10), ("test_a.py", 18), ("test_a.py", 22),
        ("test_a.py", 29),
    ]  # fmt: skip
    assert any("nope - not - five" in one.finding for one in found.findings)
    assert any(one.rule == "test_a.py::test_param[c - d]" for one in found.findings)


def test_every_failed_case_of_a_parametrised_test_is_counted(tmp_path: Path) -> None:
    head = "import pytest\n\n@pytest.mark.parametrize('n', range(10))\n"
    (tmp_path / "test_c.py").write_text(f"{head}def test_n(n):\n    assert n < 0\n")
    ran = run(tmp_path, "-q")
    assert "10 failed" in ran.stdout
    assert counted(parse(ran.stdout, ran.stderr, ran.returncode)) == (10, 10, 10)


def test_a_run_that_could_not_collect_is_no_report(tmp_path: Path) -> None:
    (tmp_path / "test_b.py").write_text("import nosuch\n")
    ran = run(tmp_path)
    flaw = parse(ran.stdout, ran.stderr, ran.returncode).flaw
    assert "did not run all tests: Interrupted: 1 error" in flaw
    assert "test_b.py: ModuleNotFoundError: No module named 'nosuch'" in flaw


SHORT = """\
=================================== FAILURES ===================================
____________________________________ test_x ____________________________________
t/a.py:12: in test_x
    double(None)
/usr/lib/python3.11/json/decoder.py:9: in decode
    raise it
E   TypeError: no
____________________________________ test_x ____________________________________
t/b.py:4: in test_x
    double(None)
lib.py:2: in double
    raise it
E   ValueError: never
=========================== short test summary info ============================
FAILED t/b.py::test_x - ValueError: ne...
FAILED t/a.py::test_x - TypeError: no
2 failed, 1 passed in 0.23s
"""


def test_tests_of_one_name_have_their_own_tracebacks_and_a_library_is_no_place() -> None:
    found = parse(SHORT, "", 1).findings
    assert [(one.file, one.line, one.finding) for one in found] == [
        ("lib.py", 2, "t/b.py::test_x: ValueError: never"),
        ("t/a.py", 12, "t/a.py::test_x: TypeError: no"),
    ]


@pytest.mark.parametrize(
    ("output", "code"),
    [
        ("", 0),
        ("OK", 0),
        ("no tests ran in 0.01s", 0),
        ("3 skipped in 0.1s", 0),
        ("1 xfailed, 2 deselected in 0.1s", 0),
        ("2 passed in 0.1s", 5),
        ("1 failed, 2 passed in 0.1s", 1),
        ("1 failed, 2 passed in 0.1s", 0),
        ("=== short test summary info ===\nFAILED a.py::x - y\n2 passed in 0.1s", 1),
        ("=== short test summary info ===\nFAILED a.py::x - y\n1 failed in 0.1s", 0),
        ("....  [100%]", 0),
        ("!!!!! stopping after 1 failures !!!!!\n2 passed in 0.1s", 0),
    ],
)
def test_what_is_no_whole_run_with_a_test_that_passed_is_a_flaw(output: str, code: int) -> None:
    assert parse(output, "", code).flaw


def test_only_failures_are_findings_though_nothing_passed() -> None:
    found = parse("=== short test summary info ===\nFAILED t/a.py::T::x\n=== 1 failed in 0.1s (0:01:00) ===", "", 1)
    assert [(one.file, one.line, one.finding) for one in found.findings] == [("t/a.py", 0, "t/a.py::T::x: it failed")]


@pytest.mark.parametrize(
    ("table", "coverage"),
    [
        ("TOTAL    120   30    75%", 75.0),
        ("TOTAL 120 30 20 5 73.25%\nTOTAL  10  1  90%", 90.0),
        ("TOTAL  0  0  100%", None),
        ("TOTAL 10 1 900%", None),
        ("TOTALS 10 1 90%", None),
    ],
)
def test_the_table_of_coverage_is_read(table: str, coverage: float | None) -> None:
    assert parse(f"{table}\n=== 4 passed, 1 warning in 1.2s ===", "", 0).coverage == coverage
