"""What a reply says, and every way in which it cannot be used: never is silence taken for a clean bill."""

import json
import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.call import Stop
from muster.domain.canonical import Json
from muster.verify.agents.model_agent import FindingsReading, read
from muster.verify.declaration.verification import Shape, Verifier
from muster.verify.findings.answers import MAX_FINDINGS, MAX_REPLACEMENT, MAX_TEXT
from muster.verify.findings.finding import Severity
from muster.verify.sources.source import Chunk, Piece
from tests.verify.agents.stage import AUDITOR, CHUNK, reply, report, said

REVIEWER = replace(AUDITOR, shape=Shape.REVIEW)
TESTER = replace(AUDITOR, shape=Shape.TESTS)
GOOD = report(said())


def reading(text: str, verifier: Verifier = AUDITOR, chunk: Chunk = CHUNK, **more: Any) -> FindingsReading:
    return read(reply(text, **more), verifier, chunk)


def test_a_finding_is_read_with_everything_that_it_says() -> None:
    (found,) = reading(
        report(
            said(
                end_line=5,
                severity="critical",
                finding=" SQL injection ",
                fix="Bind it",
                cwe="CWE-89",
                confidence=0.9,
                rule="B608",
                replacement="    x = 1\n",
            )
        )
    ).findings
    assert (found.file, found.line, found.end_line, found.severity) == ("a.py", 3, 5, Severity.CRITICAL)
    assert (found.finding, found.fix, found.cwe, found.confidence) == ("SQL injection", "Bind it", "CWE-89", 0.9)
    assert (found.rule, found.replacement) == ("B608", "    x = 1\n")


def test_what_may_be_left_out_may_be_null_too() -> None:
    nothing = dict.fromkeys(("end_line", "fix", "cwe", "confidence", "rule", "replacement"))
    bare, full = reading(GOOD), reading(report(said(**nothing), summary=None))
    assert bare == full
    assert (bare.findings[0].end_line, bare.findings[0].confidence, bare.findings[0].fix) == (3, None, "")


@pytest.mark.parametrize(
    "text", [f"```json\n{GOOD}\n```", f"```\n{GOOD}\n```\n", f"\ufeff {GOOD}\n", GOOD.replace(": ", ":\n")]
)
def test_json_may_stand_in_one_fence_around_the_whole(text: str) -> None:
    assert len(reading(text).findings) == 1


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("No issues found.", "not one JSON object"),
        ("PASS", "not one JSON object"),
        (f"Here it is:\n{GOOD}", "not one JSON object"),
        (f"{GOOD}\nHope that helps!", "not one JSON object"),
        (f"Here:\n```json\n{GOOD}\n```", "not one JSON object"),
        (f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```", "not one JSON object"),
        (f"```json {GOOD}```", "not one JSON object"),
        (f"{GOOD}{GOOD}", "not one JSON object"),
        (GOOD[:-5], "not one JSON object"),
        ("[]", "no object"),
        ("null", "no object"),
        ("{}", 'no list under the key "findings"'),
        ('{"findings": null}', 'no list under the key "findings"'),
        ('{"findings": {}}', 'no list under the key "findings"'),
        ('{"status": "PASS", "findings": []}', "status"),
        ('{"findings": [], "findings": []}', "'findings' twice"),
        ('{"findings": [{"file": "a.py", "line": 1, "line": 3}]}', "'line' twice"),
        ('{"findings": [NaN]}', "NaN"),
        ('{"findings": [], "summary": {"total": Infinity}}', "Infinity"),
        (report(said(line=1)).replace('"line": 1', '"line": 1e999'), "beyond all bounds"),
        (report(said(line=10**30)), "64 bits"),
        (report(said(line=1)).replace('"line": 1', '"line": ' + "9" * 5000), "not one JSON object"),
        (report(said(line=True)), "line"),
        (report(said(line="3")), "line"),
        (report(said(line=1.5)), "line"),
        (report(said(line=None)), "'line' is a required property"),
        (report(said(file=None)), "'file' is a required property"),
        (report(said(file=7)), "file"),
        (report(said(severity="blocker")), "'blocker' is no severity"),
        (report(said(severity="")), "'' is no severity"),
        (report(said(finding=" ")), "finding"),
        (report(said(confidence=1.01)), "confidence"),
        (report(said(confidence=-0.1)), "confidence"),
        (report(said(confidence=True)), "confidence"),
        (report(said(extra=1)), "extra"),
        (report("a.py:3 is wrong"), "object"),
        (report(None), "object"),
        (report(*[said()] * (MAX_FINDINGS + 1)), "1,001 findings"),
        ('{"findings": [' + "[" * 100_000 + "]" * 100_000 + "]}", "nested"),
        (report([[[said()]]]), "object"),
        (report(score=9), "score"),
        (report(coverage=80), "coverage"),
        ("", "it is empty"),
        (" \n", "it is empty"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_what_is_not_one_report_and_nothing_else_is_a_flaw(text: str, complaint: str) -> None:
    found = reading(text)
    assert complaint in found.flaw
    assert (found.findings, found.rejected, found.score, found.coverage) == ((), (), None, None)


def test_a_report_that_was_cut_or_refused_is_a_flaw_even_when_it_can_be_read() -> None:
    assert "cut off" in reading(GOOD, stop=Stop.MAX_TOKENS).flaw
    assert "refusal" in reading(report(), stop=Stop.REFUSED).flaw


def test_a_report_that_is_too_long_is_a_flaw() -> None:
    assert "longer than" in reading(report(said(finding="x" * 4_000_000))).flaw


@pytest.mark.parametrize(
    "summary",
    [
        {"total": 3},
        {"total": 1, "high": 0},
        {"critical": 1},
        {"total": 1, "critical": 0, "high": 1, "medium": 0, "low": 1},
        {"total": True},
        {"total": "1"},
        {"issues": 1},
        [1],
    ],
)
def test_counts_that_disagree_with_the_findings_are_a_flaw(summary: Json) -> None:
    assert reading(report(said(), summary=summary)).flaw


@pytest.mark.parametrize(
    "summary",
    [{"total": 1, "critical": 0, "high": 1, "medium": 0, "low": 0}, {}, {"high": 1, "low": None}, " ", None],
)
def test_a_summary_that_agrees_is_accepted(summary: Json) -> None:
    assert len(reading(report(said(), summary=summary)).findings) == 1


@pytest.mark.parametrize("words", ["There is a critical SQL injection in line 2.", "I could not review the code."])
def test_no_findings_and_words_that_say_more_are_a_flaw_in_a_summary_and_beside_data(words: str) -> None:
    assert "the summary says in words" in reading(report(summary=words)).flaw
    assert "the text beside the data says in words" in reading(words, data={"findings": []}).flaw


@pytest.mark.parametrize("words", ["5 critical issues, 3 high", "No issues found.", "Here you are"])
def test_findings_and_any_words_are_a_flaw(words: str) -> None:
    assert "says in words" in reading(report(said(severity="low"), summary=words)).flaw
    assert "says in words" in reading(words, data={"findings": [said()]}).flaw


def test_no_findings_and_words_that_say_so_are_a_clean_report() -> None:
    assert reading(report(summary="No issues found.")) == FindingsReading()
    assert reading("No issues found.", data={"findings": []}) == FindingsReading()


@pytest.mark.parametrize("word", ["High", "HIGH", " high "])
def test_a_severity_may_be_in_letters_of_any_size(word: str) -> None:
    assert reading(report(said(severity=word))).findings[0].severity is Severity.HIGH


@pytest.mark.parametrize(
    ("given_", "kept"),
    [
        ("89", "CWE-89"),
        (89, "CWE-89"),
        ("cwe-89", "CWE-89"),
        ("CWE_089", "CWE-89"),
        ("CWE 89: SQL injection", "CWE-89"),
        ("CWE-89, CWE-564", "CWE-89"),
        ("n/a", ""),
        ("CWE-0", ""),
        ("CWE-1234567", ""),
        ("", ""),
    ],
)
def test_a_weakness_has_one_spelling_and_what_is_none_is_left_out(given_: Json, kept: str) -> None:
    assert reading(report(said(cwe=given_))).findings[0].cwe == kept


@pytest.mark.parametrize(
    ("finding", "why"),
    [
        (said("nowhere.py"), "this file was not shown"),
        (said("/a.py"), "this file was not shown"),
        (said(" a.py"), "this file was not shown"),
        (said("b.py"), "this file was not shown"),
        (said("lib/../a.py"), "this file was not shown"),
        (said(""), "this file was not shown"),
        (said("x" * 5000), "this file was not shown"),
        (said(line=0), "line 0 was not shown"),
        (said(line=-1), "line -1 was not shown"),
        (said(line=11), "line 11 was not shown; lines 1 to 10 were"),
        (said(line=10, end_line=11), "lines 10 to 11 were not shown"),
        (said(line=5, end_line=4), "ends at line 4, before"),
        (said("lib/b.py", 20), "line 20 was not shown; lines 21 to 40 were"),
        (said("lib/b.py", 41), "line 41 was not shown"),
        (said(line=2**63), "not shown"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_finding_at_a_place_that_was_not_shown_is_rejected_and_is_no_flaw(finding: dict[str, Json], why: str) -> None:
    found = reading(report(finding, said()))
    assert (found.flaw, len(found.findings)) == ("", 1)
    assert why in found.rejected[0].why
    assert len(found.rejected[0].finding.file) <= 1024


def test_a_path_may_begin_with_a_dot_and_be_composed_otherwise() -> None:
    name = unicodedata.normalize("NFD", "café.py")
    chunk = Chunk(name="c", pieces=(Piece(path=name, first=1, last=3, of=3),), text="")
    for spelled in (name, f"./{name}", unicodedata.normalize("NFC", name)):
        assert reading(report(said(spelled)), chunk=chunk).findings[0].file == name
    assert reading(report(said("./a.py"))).findings[0].file == "a.py"


def test_two_pieces_that_touch_are_one_and_a_gap_is_not_bridged() -> None:
    pieces = tuple(Piece(path="a.py", first=first, last=last, of=99) for first, last in ((30, 40), (1, 12), (10, 20)))
    chunk = Chunk(name="c", pieces=pieces, text="")
    found = reading(report(said(line=5, end_line=18), said(line=18, end_line=31), said(line=25)), chunk=chunk)
    assert [one.line for one in found.findings] == [5]
    assert "lines 1 to 20, 30 to 40 were" in found.rejected[0].why


def test_texts_are_bounded_and_hold_no_control_characters() -> None:
    wild = said(finding="x" * 9000, fix="\x1b[31mred\x00\r\nline\ud800", rule="r" * 900, replacement="y" * 30_000)
    (found,) = reading(report(wild)).findings
    assert len(found.finding) == MAX_TEXT
    assert found.finding.endswith("…")
    assert found.fix == "\ufffd[31mred\ufffd\nline\ufffd"
    assert (len(found.rule), found.replacement) == (200, None)
    kept = reading(report(said(replacement="z" * MAX_REPLACEMENT))).findings[0].replacement
    assert kept == "z" * MAX_REPLACEMENT
    assert reading(report(said(replacement="a\x00b"))).findings[0].replacement is None


@pytest.mark.parametrize("parts", [{"security": 9, "tests": None}, [{"name": "security", "score": 9}]])
def test_a_review_has_a_score_and_maybe_parts(parts: Json) -> None:
    found = reading(report(score=9.5, parts=parts), REVIEWER)
    assert (found.score, found.parts, found.flaw) == (9.5, {"security": 9.0}, "")
    assert reading(report(score=10), REVIEWER).parts == {}


@pytest.mark.parametrize(
    ("more", "verifier"),
    [
        ({}, REVIEWER),
        ({"score": None}, REVIEWER),
        ({"score": 10.1}, REVIEWER),
        ({"score": -1}, REVIEWER),
        ({"score": "9"}, REVIEWER),
        ({"score": True}, REVIEWER),
        ({"score": 9, "parts": {"security": 11}}, REVIEWER),
        ({"score": 9, "parts": {"security": "9"}}, REVIEWER),
        ({"score": 9, "parts": [{"name": "a", "score": 1}, {"name": "a ", "score": 9}]}, REVIEWER),
        ({"score": 9, "parts": {str(n): 1 for n in range(51)}}, REVIEWER),
        ({"score": 9, "coverage": 9}, REVIEWER),
        ({}, TESTER),
        ({"coverage": 101}, TESTER),
        ({"coverage": "80%"}, TESTER),
        ({"coverage": 80, "score": 9}, TESTER),
    ],
)
def test_a_measure_that_is_missing_or_out_of_range_is_a_flaw(more: dict[str, Json], verifier: Verifier) -> None:
    assert reading(report(**more), verifier).flaw


def test_tests_have_a_coverage() -> None:
    assert reading(report(coverage=81.5), TESTER).coverage == 81.5


def test_the_users_own_schema_must_be_fitted_and_may_allow_more() -> None:
    own = {"properties": {"mood": {"enum": ["good"]}}, "required": ["mood"]}
    strict = replace(AUDITOR, schema=own)
    assert not reading(report(mood="good"), strict).flaw
    assert "mood" in reading(report(mood="bad"), strict).flaw
    assert "mood" in reading(report(), strict).flaw
    assert "other" in reading(report(mood="good", other=1), strict).flaw
    assert not reading(report(mood="good", other=1), replace(AUDITOR, schema={"additionalProperties": True})).flaw


def test_what_the_users_schema_allows_still_counts_as_we_count() -> None:
    allowing = replace(AUDITOR, schema={"additionalProperties": True, "properties": {"coverage": {}}})
    assert reading(report(score=3), allowing).score == 3.0
    assert reading(report(score="high"), allowing).flaw
    assert reading(report(coverage="80"), allowing).flaw


def test_data_beside_a_text_counts_only_where_the_text_is_no_object() -> None:
    assert len(reading("", data={"findings": [said()]}).findings) == 1
    assert reading("", data={"findings": []}) == FindingsReading()
    dug_out = reading(f"The file says {report()} but I see an injection", data={"findings": []})
    assert "not one JSON object" in dug_out.flaw
    assert "no object" in reading("fine", data=[]).flaw


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["file", "line", "end_line", "severity", "finding", "cwe", "confidence", "replacement", "x"])


@given(
    findings=VALUES | st.lists(st.dictionaries(NAMES, VALUES, max_size=9), max_size=3),
    more=st.dictionaries(st.sampled_from(["summary", "score", "parts", "coverage", "y"]), VALUES, max_size=3),
    shape=st.sampled_from(Shape),
)
def test_no_reply_breaks_the_reader_and_what_is_found_was_shown(
    findings: Any, more: dict[str, Json], shape: Shape
) -> None:
    text = json.dumps({"findings": findings, **more})
    found = reading(text, replace(AUDITOR, shape=shape))
    for one in found.findings:
        assert any(one.file == piece.path and piece.first <= one.line <= piece.last for piece in CHUNK.pieces)
    if not found.flaw:
        assert len(found.findings) + len(found.rejected) == len(findings)


@given(st.text(max_size=200) | st.text(alphabet='{}[]",:`\n findings', max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    found = reading(text)
    assert found.flaw or found.findings == ()
