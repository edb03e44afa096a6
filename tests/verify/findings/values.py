"""What the tests of findings share: findings that are made quickly, and strategies for them."""

from typing import Any

from hypothesis import strategies as st

from muster.verify.findings.finding import Examined, Finding, Rejected, Severity


def finding(line: int = 3, end_line: int | None = None, **changes: Any) -> Finding:
    """Make a finding."""
    usual: dict[str, Any] = {"file": "a.py", "severity": Severity.HIGH, "finding": "It is wrong"}
    return Finding(line=line, end_line=line if end_line is None else end_line, **usual | changes)


def rejected() -> Rejected:
    return Rejected(finding=finding(), why="this file was not shown")


def examined(*findings: Finding, **changes: Any) -> Examined:
    usual: dict[str, Any] = {"lines": 10, "model": "m-1", "cost": 5, "keys": ("k",)}
    return Examined(findings=findings, **usual | changes)


WORDS = ("query is built", "query is not built", "unused name", "unused import of a name", "a", "")


@st.composite
def any_finding(draw: st.DrawFn) -> Finding:
    """Make findings that are near each other, so that many are duplicates."""
    line = draw(st.integers(1, 12) | st.integers(1, 900))
    return Finding(
        file=draw(st.sampled_from(["a.py", "b.py"])),
        line=line,
        end_line=line + draw(st.sampled_from([0, 0, 1, 5, 700])),
        severity=draw(st.sampled_from(Severity)),
        finding=draw(st.sampled_from(WORDS)),
        fix=draw(st.sampled_from(["", "do it"])),
        cwe=draw(st.sampled_from(["", "", "CWE-1", "CWE-2"])),
        confidence=draw(st.sampled_from([None, 0.5, 1.0])),
        rule=draw(st.sampled_from(["", "", "E1", "E2"])),
        replacement=draw(st.sampled_from([None, "x"])),
    )


BY_AGENT = st.lists(
    st.tuples(st.sampled_from(["ann", "bob", "cyd"]), st.lists(any_finding(), max_size=5).map(tuple)), max_size=4
)
