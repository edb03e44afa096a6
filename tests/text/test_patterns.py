"""Patterns of two flavours, and those that would never end."""

import time

import pytest

from muster.domain.errors import BadArgument
from muster.text.patterns import LONGEST, compile_pattern, search
from tests.suites.checks.values import check


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a(?i)b", "aB", True),
        ("a(?i)b", "AB", False),  # a flag holds from where it stands
        ("(?i)straße", "STRASSE", True),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:digit:]]+$", "abc", False),
        (r"\x{1F600}", "😀", True),
        (r"\u{e9}", "é", True),
        (r"\\x{2}", r"\xx", True),  # a backslash, and then two x
        (r"\p{Greek}", "λ", True),
        (r"(?<year>\d{4})-(?P<month>\d\d)", "2031-07", True),
        (r"\Aone\z", "one", True),
        ("[a-z&&[^b]]", "b", False),
        ("[[]", "[", True),  # only Python's flavour reads it
        ("(?s)a.b", "a\nb", True),
        ("(?m)^b$", "a\nb\nc", True),
    ],
)
def test_a_pattern_of_either_flavour_is_read(pattern: str, text: str, found: bool) -> None:
    assert (search(pattern, text) is not None) is found


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[", "++", "(?U)a", "(" * 2000 + ")" * 2000])
def test_a_pattern_that_is_none_is_broken(pattern: str) -> None:
    with pytest.raises(BadArgument):
        compile_pattern(pattern)
    assert check("regex", pattern, "a").broken


def test_a_pattern_that_takes_for_ever_is_broken_in_about_a_second() -> None:
    begun = time.thread_time()  # of the processor, as the limit is
    found = check("regex", r"^(a|aa)+$", "a" * 5000 + "b")
    assert time.thread_time() - begun < 30  # without a limit it would take longer than the universe is old
    assert (found.passed, found.broken) == (False, True)
    assert "too long" in found.why


def test_many_places_share_the_time_of_one() -> None:
    begun = time.thread_time()
    hostile = "[" + ",".join(['"' + "a" * 3000 + 'b"'] * 50) + "]"
    assert check("regex", r"^(a|aa)+$", hostile, field="$[*]").broken
    assert time.thread_time() - begun < 25  # one after the other they would take 50 s


@pytest.mark.parametrize(
    "pattern",
    [
        "x" * (LONGEST + 1),
        "((x{1000}){1000}){1000}",
        "x{100000000}",
        "x{99999999999999999999}",
        "(?:" * 90 + "a" + ")+" * 90,
    ],
)
def test_a_pattern_that_would_eat_the_memory_is_refused(pattern: str) -> None:
    with pytest.raises(BadArgument, match="too large"):
        compile_pattern(pattern)


def test_repeats_that_follow_each_other_are_not_nested() -> None:
    compile_pattern("(?:ab)+[(]" * 40 + r"\(+" * 40)
    compile_pattern("((a)+b)+")


def test_the_same_pattern_is_read_once() -> None:
    assert compile_pattern("once+") is compile_pattern("once+")


@pytest.mark.parametrize("pattern", ["(a(?R)?b)+c", "(?1)(a)", r"(?<n>a)(?&n)"])
def test_a_pattern_that_refers_to_itself_is_refused(pattern: str) -> None:
    with pytest.raises(BadArgument, match="refers to itself"):
        compile_pattern(pattern)


def test_an_escaped_bracket_is_no_reference() -> None:
    assert search(r"\(?1\)", "1)") == (0, 2)
