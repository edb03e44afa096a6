"""Findings of different agents that say the same are one, in whatever order they came."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.verify.findings.assessment import add, count, less
from muster.verify.findings.finding import RANKS, Counts, Finding, Severity
from muster.verify.findings.merging import alike, merge, same
from tests.verify.findings.values import BY_AGENT, finding

ByAgent = Sequence[tuple[str, Sequence[Finding]]]


def test_the_same_from_two_agents_is_one_with_both_names() -> None:
    one = finding(3, 5, cwe="CWE-89", finding="SQL injection", severity=Severity.MEDIUM, confidence=0.9, fix="bind")
    other = finding(5, 6, cwe="CWE-89", finding="Input ends up in a query", severity=Severity.CRITICAL, confidence=0.2)
    (merged,) = merge([("zoe", [one]), ("bob", [other])])
    assert merged.by == ("bob", "zoe")
    assert [(said.agent, said.severity, said.line, said.finding) for said in merged.origins] == [
        ("bob", Severity.CRITICAL, 5, "Input ends up in a query"),
        ("zoe", Severity.MEDIUM, 3, "SQL injection"),
    ]
    assert (merged.finding.severity, merged.finding.line, merged.finding.end_line) == (Severity.CRITICAL, 5, 6)
    assert (merged.finding.finding, merged.finding.fix, merged.finding.confidence) == (
        "Input ends up in a query",
        "bind",
        0.9,
    )


@pytest.mark.parametrize(
    "other",
    [
        finding(4),
        finding(file="b.py"),
        finding(finding="Something else altogether"),
        finding(finding="Something else", cwe="CWE-1"),
        finding(finding="Something else", rule="E1"),
    ],
    ids=["next line", "other file", "other words", "only one has a weakness", "only one has a rule"],
)
def test_what_is_elsewhere_or_otherwise_stays_apart(other: Finding) -> None:
    assert len(merge([("ann", [finding()]), ("bob", [other])])) == 2


@pytest.mark.parametrize(
    ("one", "other", "are"),
    [
        ("The variable is formatted into the query", "the variable is formatted into a query!", True),
        ("Formatting user input", "formatted USER inputs", True),
        ("unused variable x", "unused variable y", False),
        ("unused import os", "unused import sys", False),
        ("", "", True),
        ("!", "?", False),
        ("", "word", False),
        ("数式が間違い", "数式が間違い", True),
    ],
)
def test_texts_are_alike_when_they_share_most_words(one: str, other: str, are: bool) -> None:
    assert alike(one, other) is alike(other, one) is are


def test_what_one_agent_reports_is_never_merged_with_itself() -> None:
    ours = [finding(rule="F821", finding=f"undefined name {name}") for name in "abc"]
    assert [one.by for one in merge([("ann", ours), ("ann", ours)])] == [("ann",)] * 6
    theirs = [finding(rule="F821", finding=f"undefined name {name}") for name in "bc"]
    found = {one.finding.finding[-1]: one.by for one in merge([("ann", ours), ("bob", theirs)])}
    assert found == {"a": ("ann",), "b": ("ann", "bob"), "c": ("ann", "bob")}


def test_no_chain_of_neighbours_runs_through_a_file() -> None:
    chain = [finding(line, line + 2, cwe="CWE-1", finding=f"place {line}") for line in range(1, 101, 2)]
    found = merge([(f"agent {line}", [one]) for line, one in enumerate(chain)])
    assert len(found) > 10
    assert all(any(same(one, merged.finding) for merged in found) for one in chain)


def test_a_replacement_is_taken_only_for_the_same_lines() -> None:
    leader = finding(3, 4, severity=Severity.CRITICAL)
    shorter = ("bob", [finding(3, replacement="no")])
    (merged,) = merge([("ann", [leader]), shorter, ("cyd", [finding(3, 4, replacement="yes")])])
    assert merged.finding.replacement == "yes"
    (merged,) = merge([("ann", [leader]), shorter])
    assert merged.finding.replacement is None


def test_the_worst_stand_first() -> None:
    given_ = [finding(line, severity=severity, rule=f"r{line}") for line, severity in enumerate([*Severity] * 2, 1)]
    random.Random(3).shuffle(given_)
    found = [(RANKS[one.finding.severity], one.finding.line) for one in merge([("ann", given_)])]
    assert found == sorted(found)


def test_thousands_of_findings_on_one_line_are_merged_in_little_time() -> None:
    crowd = [finding(1, 1 + n % 3, finding=f"w{n} x{n} y{n}", cwe=f"CWE-{n % 1500 + 1}") for n in range(3_000)]
    assert len(merge([("ann", crowd[::2]), ("bob", crowd[1::2])])) >= 1_500
    assert len(merge([("ann", crowd)])) == 3_000
    assert len(merge([("ann", [finding(n, n + 900, finding=f"w{n}") for n in range(1, 2_000)])])) == 1_999


@given(BY_AGENT)
def test_nothing_is_lost(given_: ByAgent) -> None:
    found = merge(given_)
    for agent, findings in given_:
        for one in findings:
            covering = [m for m in found if agent in m.by and same(one, m.finding)]
            assert any(RANKS[m.finding.severity] <= RANKS[one.severity] for m in covering)
    assert {agent for one in found for agent in one.by} == {agent for agent, findings in given_ if findings}


@given(BY_AGENT, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(given_: ByAgent, chance: random.Random) -> None:
    alone = [(agent, [one]) for agent, findings in given_ for one in findings]
    chance.shuffle(alone)
    assert merge(alone) == merge(given_)


@given(BY_AGENT)
def test_every_finding_is_an_origin_of_exactly_one(given_: ByAgent) -> None:
    said = Counter(agent for agent, findings in given_ for _ in findings)
    assert Counter(agent for one in merge(given_) for agent in one.by) == said


def test_counts_are_ours() -> None:
    counts = count([finding(), finding(severity=Severity.LOW), finding(severity=Severity.LOW)], 2)
    assert counts == Counts(high=1, low=2, rejected=2)
    assert counts.total == 3
    assert add(counts, counts) == Counts(high=2, low=4, rejected=4)
    assert less(counts, Counts(high=5, low=1)) == Counts(low=1, rejected=2)
