"""Which proposed changes are made, and what a file is after them."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.verify.findings.finding import Finding, Merged, Severity
from muster.verify.fix import Edit, applied, fixes_of
from muster.verify.sources.source import Source

TEXT = "one\ntwo\nthree\nkey = [redacted:openai_key:1]\nfive\n"
SOURCE = Source(path="a.py", digest="d", text=TEXT)


def proposed(line: int, end: int, text: str | None, severity: Severity = Severity.HIGH, file: str = "a.py") -> Merged:
    finding = Finding(
        file=file, line=line, end_line=end, severity=severity, finding=f"{line} is wrong", replacement=text
    )
    return Merged(finding=finding, by=("auditor",))


def test_a_change_replaces_its_lines_and_no_others() -> None:
    fixes = fixes_of([proposed(2, 3, "TWO\nAND\nTHREE\n"), proposed(5, 5, "")], {"a.py": SOURCE})
    (file,) = fixes.files
    assert (file.path, file.digest, len(file.edits), fixes.unfixed) == ("a.py", "d", 2, ())
    assert applied(TEXT, file.edits) == "one\nTWO\nAND\nTHREE\nkey = [redacted:openai_key:1]\n"


def test_of_changes_that_meet_the_one_for_the_worse_finding_is_made() -> None:
    fixes = fixes_of([proposed(1, 2, "low", Severity.LOW), proposed(2, 3, "high")], {"a.py": SOURCE})
    assert [edit.text for file in fixes.files for edit in file.edits] == [("high",)]
    assert [(one.finding.line, one.why) for one in fixes.unfixed] == [(1, "another fix changes these lines")]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (proposed(4, 4, "key = None"), "a secret was removed"),
        (proposed(1, 1, "key = '[redacted:openai_key:1]'"), "a secret was removed"),
        (proposed(5, 9, "x"), "does not have these lines"),
        (proposed(1, 1, "x", file="b.py"), "not part of the verification"),
    ],
)
def test_a_change_to_what_the_agent_did_not_see_is_left_to_a_person(change: Merged, why: str) -> None:
    fixes = fixes_of([change], {"a.py": SOURCE})
    assert fixes.files == ()
    assert why in fixes.unfixed[0].why


def test_a_finding_without_a_replacement_changes_nothing() -> None:
    assert fixes_of([proposed(1, 1, None)], {"a.py": SOURCE}) == fixes_of([], {})
    odd = replace(SOURCE, note="some bytes are no UTF-8 and were replaced")
    assert fixes_of([proposed(1, 1, "x")], {"a.py": odd}).files == ()


def test_a_line_end_alone_is_an_empty_line_and_nothing_at_all_is_none() -> None:
    (file,) = fixes_of([proposed(1, 1, "\n"), proposed(3, 3, "")], {"a.py": SOURCE}).files
    assert applied(TEXT, file.edits).startswith("\ntwo\nkey")


def test_line_ends_stay_what_they_are() -> None:
    edits = [Edit(line=2, end_line=2, text=("x", "y"))]
    assert applied("a\r\nb\r\nc\r\n", edits) == "a\r\nx\r\ny\r\nc\r\n"
    assert applied("a\r\nb", edits) == "a\r\nx\r\ny"
    assert applied("a\nb", edits) == "a\nx\ny"
    assert applied("a\nb\n", edits) == "a\nx\ny\n"


@given(st.lists(st.text("abc", max_size=3), min_size=1, max_size=12), st.data())
def test_changes_do_not_depend_on_their_order(lines: list[str], data: st.DataObject) -> None:
    text = "".join(f"{line}\n" for line in lines)
    numbers = data.draw(st.sets(st.integers(1, len(lines))))
    edits = [Edit(line=number, end_line=number, text=(f"<{number}>", "more")) for number in sorted(numbers)]
    wanted = "".join(f"<{n}>\nmore\n" if n in numbers else f"{line}\n" for n, line in enumerate(lines, 1))
    assert applied(text, data.draw(st.permutations(edits))) == wanted
