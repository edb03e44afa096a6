"""Patterns of two flavours, and those that would never end."""

import re
import resource
import time

import pytest

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput
from muster.text.json_paths import compile_path
from muster.text.limited.allowance import CpuAllowance
from muster.text.limited.pattern_library import MAX_PATTERN
from muster.text.limited.patterns import found_in, is_quick, pattern_flaw
from muster.text.limited.process import TooSlow
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
    assert found_in(pattern, [text]) is found


@pytest.mark.parametrize("pattern", ["(", "a{2,1}", "[", "++", "(?U)a", "(" * 2000 + ")" * 2000])
def test_a_pattern_that_is_none_is_broken(pattern: str) -> None:
    assert pattern_flaw(pattern)
    with pytest.raises(BadArgument):
        found_in(pattern, ["a"])
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
        "x" * (MAX_PATTERN + 1),
        "((x{1000}){1000}){1000}",
        "x{100000000}",
        "x{99999999999999999999}",
        "(?:" * 90 + "a" + ")+" * 90,
    ],
)
def test_a_pattern_that_would_eat_the_memory_is_refused(pattern: str) -> None:
    assert "too large" in (pattern_flaw(pattern) or "")
    with pytest.raises(BadArgument, match="too large"):
        found_in(pattern, ["x"])


def test_repeats_that_follow_each_other_are_not_nested() -> None:
    assert pattern_flaw("(?:ab)+[(]" * 40 + r"\(+" * 40) is None
    assert pattern_flaw("((a)+b)+") is None


@pytest.mark.parametrize("pattern", ["(a(?R)?b)+c", "(?1)(a)", r"(?<n>a)(?&n)"])
def test_a_pattern_that_refers_to_itself_is_refused(pattern: str) -> None:
    assert "refers to itself" in (pattern_flaw(pattern) or "")


def test_an_escaped_bracket_is_no_reference() -> None:
    assert found_in(r"^\(?1\)$", ["1)"])


# What they cost is seen only by who compiles them: spaces hide the counts from every look at the text.
EXPLODING = [
    "(?x)((((a{99} ) {99} ) {99} ) {12} )",
    "(?x)((((a{99}#\n)#\n{99})#\n{99})#\n{99})",
]


@pytest.mark.parametrize("pattern", EXPLODING)
def test_a_pattern_that_explodes_in_the_compiler_takes_neither_memory_nor_time_here(pattern: str) -> None:
    memory, begun = peak_memory(), time.process_time()
    assert re.search("too long|too much memory", pattern_flaw(pattern) or "")
    assert time.process_time() - begun < 1
    assert peak_memory() - memory < 20_000_000


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"(?<=\$)\d+(?!\d|%)", "costs $120", True),
        (r"(?<=\$)\d+(?!\d|%)", "costs 120", False),
        (r"(\w+) \1", "the the", True),
        (r"(?<word>\w+) (?P=word)", "one two", False),
        (r"(?x) a b  # a comment", "ab", True),
    ],
)
def test_lookaround_and_references_to_groups_work(pattern: str, text: str, found: bool) -> None:
    assert pattern_flaw(pattern) is None
    assert found_in(pattern, [text]) is found


def test_a_pattern_is_found_in_any_of_several_texts() -> None:
    assert found_in(r"(?=b)b", ["a", "b"])
    assert found_in("b", ["a", "b"])
    assert not found_in("b", [])


def test_what_a_search_used_is_taken_from_what_several_share() -> None:
    allowance = CpuAllowance(0.2)
    with pytest.raises(TooSlow):
        found_in("^(a|aa)+$", ["a" * 5000 + "b"], allowance)
    assert allowance.left < 0.1


@pytest.mark.parametrize("path", ["$[?search(@.a, '(a|aa)+$')]", "$[?match(@.a, @.b)]"])
def test_patterns_in_a_path_have_the_same_limits(path: str) -> None:
    hostile = {"a": "a" * 5000 + "b", "b": "(a|aa)+"}
    memory, begun = peak_memory(), time.process_time()
    with pytest.raises(BadOutput, match="takes too long"):
        compile_path(path, "here").all([hostile] * 20)
    assert time.process_time() - begun < 1
    assert compile_path("$[?search(@.a, '((((a{99}){99}){99}){12})')]", "here").all([hostile]) == []
    assert peak_memory() - memory < 20_000_000


def test_patterns_in_a_path_find_what_they_say() -> None:
    values: Json = [{"a": "abc", "n": 1}, {"a": "xabc", "n": 2}, {"a": 7}]
    assert compile_path("$[?search(@.a, 'a.c')].n", "here").all(values) == [1, 2]
    assert compile_path("$[?match(@.a, 'a.c')].n", "here").all(values) == [1]
    assert compile_path("$[?match(@.a, '(?=a).*')].n", "here").all(values) == []  # not an I-Regexp


def test_quick_patterns_stay_here_and_take_no_time() -> None:
    """The worst that is searched for here: each takes as many steps as may be."""
    worst = [(r"\d+x", "1" * 1200), (r"a*a*x", "a" * 90), (r"(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)x", "a" * 5000)]
    for pattern, text in worst:
        assert is_quick(pattern, len(text))
        begun = time.thread_time()
        assert not found_in(pattern, [text])
        assert time.thread_time() - begun < 0.5
    for pattern in (*EXPLODING, "(a+)+", r"(a)\1", "(?=a)", "a{100}", r"\p{L}", "[[:alpha:]]", "(?x)a", "a" * 201):
        assert not is_quick(pattern, 1)


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
