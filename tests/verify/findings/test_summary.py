"""A summary agrees with the findings; in words it says that there are none, or it does not count."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.verify.findings.answers import speaks_flaw, summary_flaw
from tests.verify.findings.values import finding

NONE = [
    "No issues found.",
    "No critical or high issues were detected",
    "no critical, high, medium or low severity issues were found in this code.",
    "No critical/high issues.",
    "No findings",
    "No security vulnerabilities or bugs found",
    "There are no issues.",
    "I found no problems in the code!",
    "Nothing to report",
    "Nothing found.",
    "None",
    "Clean.",
    "OK",
    "Looks good",
    "The code looks good.",
    "LGTM",
    "No issues found. The code is clean.",
    "0 critical, 0 high, 0 medium, 0 low",
    "0 issues",
    " No\n findings ",
]
MORE = [
    "There is a critical SQL injection in line 2.",
    "Critical vulnerabilities were found.",
    "I found a bug.",
    "I could not review the code: the file was truncated.",
    "5 critical issues, 3 high",
    "There are two problems in a.py.",
    "Critical: 2, high: 0",
    "one injection",
    "12\nfindings",
    "No issues found, except an injection.",
    "No issues found. But line 2 is wrong.",
    "No issues found?",
    "No. Issues found.",
    "No low, critical issues found",
    "No low and critical issues found",
    "No critical, 1 high",
    "Not clean",
    "Not OK.",
    "no longer clean",
    "0.5 issues",
    "Looked at 2 files; nothing to report.",
    "The code is of high quality.",
    "Nothing was reviewed",
    "None of it could be read",
    "No code",
    "No",
    "...",
    "\ud800",
    "No issues found. " * 50,
]
WORDS = st.lists(
    st.sampled_from(
        ["no", "No", "0", "3", "\u0663", "critical", "high", "low", "severity", "issues", "found", "were", "or", "and",
         "none", "clean", "not", "bug", "but", ",", ".", ", ", "/", ". ", "there are", "nothing", "to report"]
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip
SEVERE = re.compile(r"critical|high|medium|low", re.IGNORECASE)


@pytest.mark.parametrize("words", NONE)
def test_words_that_say_that_there_is_nothing_are_accepted_beside_nothing_alone(words: str) -> None:
    assert summary_flaw(words, []) == ""
    assert summary_flaw(words, [finding()]) != ""


@pytest.mark.parametrize("words", MORE, ids=lambda words: ascii(words)[:40])
def test_any_other_words_are_a_flaw(words: str) -> None:
    assert "the summary says in words" in summary_flaw(words, [])
    assert "the text says in words" in speaks_flaw(words, [], "the text")


@given(st.builds(str.join, st.sampled_from([" ", ""]), WORDS) | st.text(max_size=20))
def test_no_words_pass_with_a_number_or_with_a_severity_that_is_not_denied(words: str) -> None:
    if not words.strip() or summary_flaw(words, []):
        return
    assert not [letter for letter in words if letter.isdigit() and letter != "0"]
    for sentence in words.lower().split("."):
        before, severe, _ = sentence.partition(found[0] if (found := SEVERE.search(sentence)) else "\0")
        assert not severe or re.search(r"\b(?:no|0|zero)\b", before)


@given(st.sampled_from(NONE), st.sampled_from(["1", "a critical issue", "7 bugs", "but not really", "high"]))
def test_nothing_can_be_added_to_words_that_are_accepted(words: str, more: str) -> None:
    for said in (f"{words} {more}", f"{more} {words}", f"{words}. {more}", f"{words}, {more}"):
        assert summary_flaw(said, [])


def test_counts_must_agree_and_silence_always_does() -> None:
    assert summary_flaw(None, []) == summary_flaw("", [finding()]) == summary_flaw(" \n", []) == ""
    assert summary_flaw({"high": 1, "total": 2}, [finding()]) == "total is 2 in the summary and 1 in the findings"


def test_a_hostile_summary_takes_no_time_and_is_quoted_in_short() -> None:
    for words in ("several critical " * 200_000, "no " * 100, "no critical, " * 23, "0 low, " * 40 + "x"):
        assert len(summary_flaw(words, [])) < 200
