"""Where a checker's finding is, decided without a look at the disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.verify.agents.checker import MAX_PLACES, LineCounts, elsewhere, locate, relative
from muster.verify.findings.finding import Finding, Rejected
from tests.verify.findings.values import finding

LINES = LineCounts(
    root="/r/top",
    known={"a.py": 10, "empty.py": 0},
    looked={"lib/c.py": ["lib/c.py", 4], "/real/a.py": ["a.py", 99], "gone.py": None},
)


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("a.py", "a.py"),
        ("./a.py", "a.py"),
        ("lib/../a.py", "a.py"),
        ("/r/top/a.py", "a.py"),
        ("/r/top/lib//b.py", "lib/b.py"),
        ("/r/other/a.py", "../other/a.py"),
        ("../a.py", "../a.py"),
        ("", ""),
    ],
)
def test_a_path_is_named_below_the_root(path: str, below: str) -> None:
    assert relative(path, "/r/top") == below


@pytest.mark.parametrize(
    ("given_", "place"),
    [
        (finding(3, 5), ("a.py", 3, 5)),
        (finding(0), ("a.py", 1, 1)),
        (finding(11), ("a.py", 10, 10)),
        (finding(9, 40), ("a.py", 9, 10)),
        (finding(1, file="empty.py"), ("empty.py", 1, 1)),
        (finding(4, file="lib/c.py"), ("lib/c.py", 4, 4)),
        (finding(2, file="/r/top/a.py"), ("a.py", 2, 2)),
    ],
)
def test_a_finding_is_put_at_lines_that_exist(given_: Finding, place: tuple[str, int, int]) -> None:
    found = locate(given_, LINES)
    assert isinstance(found, Finding)
    assert (found.file, found.line, found.end_line) == place


@pytest.mark.parametrize(
    ("given_", "why"),
    [
        (finding(12), "the file has 10 lines"),
        (finding(-1), "the file has 10 lines"),
        (finding(11, file="/real/a.py"), ""),
        (finding(12, file="/real/a.py"), "the file has 10 lines"),
        (finding(6, file="lib/c.py"), "the file has 4 lines"),
        (finding(1, file="gone.py"), "no such file below the root"),
        (finding(1, file="never.py"), "no such file below the root"),
        (finding(1, file="../a.py"), "no such file below the root"),
        (finding(1, file=""), "no file is named"),
        (finding(10**40), "the file has 10 lines"),
    ],
)
def test_a_finding_at_no_such_place_is_rejected(given_: Finding, why: str) -> None:
    found = locate(given_, LINES)
    assert isinstance(found, Rejected) is bool(why)
    if isinstance(found, Rejected):
        assert why in found.why
        assert found.finding.line < 2**63


def test_only_what_is_not_verified_is_looked_up_and_not_without_end() -> None:
    findings = [finding(file=file) for file in ("b.py", "./a.py", "/r/top/a.py", "b.py", "", "../x.py")]
    assert elsewhere(findings, "/r/top", {"a.py": 1}) == ["../x.py", "b.py"]
    many = [finding(file=f"{n}.py") for n in range(MAX_PLACES + 9)]
    assert len(elsewhere(many, "/r/top", {})) == MAX_PLACES


@given(st.text(max_size=20), st.integers(), st.integers())
def test_what_is_found_is_always_inside_of_a_known_file(file: str, line: int, end: int) -> None:
    found = locate(finding(line, end, file=file), LINES)
    if isinstance(found, Finding):
        assert 1 <= found.line <= found.end_line <= max(1, {"a.py": 10, "empty.py": 0, "lib/c.py": 4}[found.file])
