"""JSON in texts of others: found in noise, read strictly, within limits."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.program.answer import END, START, find_marked
from muster.agents.program.exec_protocol import is_evaluations, is_proposal
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.text.json_documents import MAX_TEXT, find, find_value, flaw_of, json_fault, parseable, read_object, readable
from muster.verify.findings.answers import bounded, cwe_of, replacement_of

PAYLOAD = {"thought_process": "think", "content": "answer"}
SPELLED = json.dumps(PAYLOAD)
OTHER = json.dumps({"thought_process": "draft", "content": "draft"})


def proposal(text: str) -> Any:
    return find_marked(text, is_proposal)


def test_clean_output_is_the_payload() -> None:
    assert proposal(SPELLED) == PAYLOAD


def test_markers_show_the_payload_between_log_lines() -> None:
    assert proposal(f"Loading model...\nWARNING: some\n{START}\n{SPELLED}\n{END}\nCleanup done.\n") == PAYLOAD


def test_without_markers_the_last_object_counts() -> None:
    assert proposal(f"WARNING: deprecated\nSome debug info\n{OTHER}\n{SPELLED}") == PAYLOAD


def test_an_object_is_taken_as_a_whole_with_what_is_nested_in_it() -> None:
    found = find('junk {"inner": {"a": 1}, "outer": true}', lambda value: "outer" in value)
    assert found == {"inner": {"a": 1}, "outer": True}


@pytest.mark.parametrize("fence", ["```json", "```", "```JSON", "```json "])
@pytest.mark.parametrize("tail", ["```", "```\n  ", "", "\n```"])
def test_fences_are_no_obstacle(fence: str, tail: str) -> None:
    assert proposal(f"{fence}\n{SPELLED}\n{tail}") == PAYLOAD
    assert proposal(f"noise\n{START}\n{fence}\n{SPELLED}\n{tail}\n{END}\n{OTHER}") == PAYLOAD


def test_an_object_over_several_lines_in_a_fence_is_found() -> None:
    assert proposal(f"Here it is:\n```json\n{json.dumps(PAYLOAD, indent=2)}\n```\nDone.") == PAYLOAD


def test_a_fence_and_its_object_may_stand_on_one_line() -> None:
    assert proposal(f"{START} ```json {SPELLED}``` {END}{OTHER}") == PAYLOAD


def test_what_is_marked_wins_over_what_comes_after_it() -> None:
    assert proposal(f"{START}{SPELLED}{END}\n{OTHER}") == PAYLOAD


def test_the_last_of_several_marked_objects_wins() -> None:
    assert proposal(f"{START}{OTHER}{END}\n{START}{SPELLED}{END}") == PAYLOAD


def test_a_marker_means_nothing_to_who_does_not_know_it() -> None:
    assert find(f"{START}{SPELLED}{END}\n{OTHER}", is_proposal) == json.loads(OTHER)


def test_a_marker_needs_no_end() -> None:
    assert proposal(f"{START}{SPELLED}") == PAYLOAD


@pytest.mark.parametrize("inside", [END, START, f"{START} {{}} {END}", "{", "}", '"}', '{"', "\\", "```"])
def test_what_is_inside_of_strings_means_nothing(inside: str) -> None:
    payload = {"thought_process": inside, "content": f"print {inside} at the end"}
    for text in (json.dumps(payload), f"{START}\n{json.dumps(payload)}\n{END}", f"{OTHER} {{ {json.dumps(payload)} }}"):
        assert proposal(text) == payload


@pytest.mark.parametrize("after", ["nothing", "", '{"a": 1}', '{"a": ', "[1]", END, "```json\n```", '{"a": NaN}'])
def test_a_marker_before_something_else_leaves_the_whole_text(after: str) -> None:
    assert proposal(f"write {START} first\n{SPELLED}\nthen {START} {after}") == PAYLOAD


@pytest.mark.parametrize(
    "text",
    [
        f"junk {{ {SPELLED}",
        f"junk {{ {SPELLED} }}",
        f"{{'a': 1}} {SPELLED} }}}}",
        f'{{"a": {SPELLED}',
        f"[1, {SPELLED}]",
        f'{{"open {SPELLED}',
        f'{SPELLED} {{"open',
        f"{SPELLED}{{}}",
        f"}}{SPELLED}{{",
    ],
)
def test_loose_braces_around_it_do_not_hide_it(text: str) -> None:
    assert proposal(text) == PAYLOAD


def test_what_is_nested_in_another_object_does_not_count() -> None:
    echo = json.dumps({"phase": "propose", "context": {"candidates": [{"id": "A", "proposal": PAYLOAD}]}})
    assert proposal(echo) is None
    assert proposal(f"{OTHER}\n{echo}") == json.loads(OTHER)


def test_objects_of_other_shapes_do_not_count() -> None:
    assert proposal('{"thought_process": 1, "content": "x"} {"content": "x"} {} []') is None
    assert find('{"evaluations": 3} {"evaluations": ["A"]}', is_evaluations) is None


def test_text_without_an_object_holds_none() -> None:
    assert proposal("not json at all") is None
    assert proposal("") is None


def test_an_object_larger_than_the_first_look_is_found() -> None:
    payload = {"thought_process": "é" * 100_000, "content": '{"' * 50_000}
    for ascii_only in (True, False):
        assert proposal(f"log {{\n{json.dumps(payload, ensure_ascii=ascii_only)}\nlog }}") == payload


@pytest.mark.parametrize("size", range(4080, 4110))
def test_an_object_that_the_first_look_cuts_is_found_wherever_it_is_cut(size: int) -> None:
    text = (
        '{"pad": "' + "x" * size + '", "word": true, "n": -1.5e3, "s": "\\u00e9", "thought_process": "", "content": ""}'
    )
    assert proposal(text) == json.loads(text)


def test_nesting_without_end_is_survived() -> None:
    assert proposal('{"a":' * 1200 + SPELLED) == PAYLOAD
    assert proposal('{"a":' + "[" * 100_000) is None


def test_a_number_of_too_many_digits_is_survived() -> None:
    assert proposal('{"n": ' + "9" * 5000 + "}\n" + SPELLED) == PAYLOAD


def test_an_answer_after_too_much_broken_json_is_found_in_the_last_lines() -> None:
    line = json.dumps(
        {"level": "info", "parts": [{"name": "x", "value": {"n": n, "text": "y" * 20}} for n in range(90)]}
    )
    log = "\n".join([line[:3000]] * 1000)
    assert proposal(f"{log}\n{SPELLED}\n{line[:500]}") == PAYLOAD
    assert proposal(f"{log}\n" + json.dumps({**PAYLOAD, "content": "z" * 30_000}))["content"] == "z" * 30_000


THREE_MEGABYTES = 3_000_000
# About two seconds of work; a search that is quadratic in its input would take hours.
SOON = pytest.mark.timeout(90)


def hostile(piece: str) -> str:
    return piece * (THREE_MEGABYTES // len(piece))


@pytest.mark.parametrize(
    "text",
    [
        lambda: hostile('{"a":'),
        lambda: hostile('{"a":' + " " * 5000),
        lambda: hostile(f'{START} {{"a":'),
        lambda: '{"k":[' * 400 + hostile("1,"),
    ],
    ids=["nested", "nested far apart", "nested after markers", "never closed"],
)
@SOON
def test_hostile_output_is_given_up_soon(text: Callable[[], str]) -> None:
    with pytest.raises(BadOutput, match="too much broken JSON") as caught:
        proposal(text())
    assert START in caught.value.suggestions[0]


@pytest.mark.parametrize(
    "text",
    [lambda: ('{"x' + "y" * 97) * 100_000, lambda: hostile("{"), lambda: hostile("{ "), lambda: hostile("{}")],
    ids=["unterminated", "braces", "spaces", "empty"],
)
@SOON
def test_other_hostile_output_is_gone_through_soon(text: Callable[[], str]) -> None:
    assert proposal(text() + "\n" + SPELLED) == PAYLOAD


def test_a_marked_payload_is_found_before_hostile_output() -> None:
    assert proposal(f"{START}{SPELLED}{END}" + '{"a":' * 200_000) == PAYLOAD


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', 'so: [{"a": {"b": [{"c": 0, "c": 1}]}}]'])
def test_an_object_with_a_key_twice_is_refused(text: str) -> None:
    with pytest.raises(BadOutput, match="a key twice"):
        find_value(text, {})
    with pytest.raises(BadOutput, match="a key twice"):
        find(text.strip("so: []"), lambda value: "a" in value)


def test_bytes_that_are_no_text_are_shown_as_escapes() -> None:
    assert readable(b"caf\xe9 \xff") == "caf\\xe9 \\xff"
    assert proposal(parseable(b'\xff{"thought_process": "\xe9", "content": "\xc3\xa9\xff"}\xfe')) == {
        "thought_process": "\\xe9",
        "content": "é\\xff",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"score": 0.8}', {"score": 0.8}),
        ('```json\n{"score": 0.8}\n```', {"score": 0.8}),
        ('```\n{"score": 0.8}\n```\n  ', {"score": 0.8}),
        ('```json\n{\n  "score": 0.85,\n  "why": "good"\n}\n```', {"score": 0.85, "why": "good"}),
        ('As shown in [1], it is {"score": 1}, see [2].', {"score": 1}),
        ('{"draft": 1} and then {"score": 1}', {"score": 1}),
    ],
)
def test_the_object_that_a_schema_asks_for_is_found(text: str, value: Json) -> None:
    assert find_value(text, {"type": "object"}) == value


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("[1, 2]", {"type": "array"}, [1, 2]),
        ('{"a": 1} [3] {"b": 2}', {"type": "array"}, [3]),
        (" 42 ", {"type": "integer"}, 42),
        ("null", {}, None),
        ("it is [1]", {"type": ["array", "null"]}, [1]),
    ],
)
def test_other_values_of_a_schema_are_found(text: str, schema: Any, value: Json) -> None:
    assert find_value(text, schema) == value


@pytest.mark.parametrize("text", ["", "no", "{", "```json\nno\n```", "```", "``````", "it is 42"])
def test_text_without_the_value_of_a_schema_is_refused_and_its_beginning_shown(text: str) -> None:
    with pytest.raises(BadOutput, match="holds no JSON") as caught:
        find_value(text, {})
    assert (repr(text) in caught.value.message) == bool(text)


NAMES = st.sampled_from(["level", "msg", "content", "thought", "type", "é", "a{b", 'q"'])
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=12) | st.sampled_from([START, END, "{", "}"])
VALUES = st.recursive(
    LEAVES | st.just(PAYLOAD),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.builds(json.dumps, st.dictionaries(NAMES, VALUES, max_size=3), ensure_ascii=st.booleans())
# A line that begins an object and leaves it open must end with something else, or the next line could complete it.
LOOSE = st.text(st.sampled_from("{}[]\":,\\ abé😀`'1"), max_size=30).map(lambda text: text + " end")
FENCES = st.sampled_from(["```", "```json", START, END, "", "{ ok", '{"a": {', "[INFO] {x}"])
LINES = st.lists(OBJECTS | LOOSE | FENCES.map(lambda text: text + " ."), max_size=8).map("\n".join)
TEXTS = st.text(max_size=40) | st.sampled_from([START + "{}", END, '{"', "}", '{"content": 1}', "```"])
PAYLOADS = st.fixed_dictionaries({"thought_process": TEXTS, "content": TEXTS}, optional={"more": VALUES})
DRAFTS = st.sampled_from(["", OTHER + "\n"])


@given(
    before=LINES,
    draft=DRAFTS,
    lead=st.sampled_from(["", "junk ", "{ ", "```json\n", "payload: ", "{{", "[", START, START + "\n```json\n"]),
    payload=PAYLOADS,
    indent=st.sampled_from([None, 2]),
    after=LINES,
)
def test_the_payload_that_comes_last_is_found_in_any_noise(
    before: str, draft: str, lead: str, payload: dict[str, Json], indent: int | None, after: str
) -> None:
    text = f"{before}\n{draft}{lead}{json.dumps(payload, indent=indent, ensure_ascii=False)}\n{after}"
    assert proposal(text) == payload


PLAIN_OBJECTS = st.dictionaries(
    st.text(max_size=5), st.integers(-(2**63), 2**63) | st.text(max_size=5) | st.none(), max_size=4
)


@given(PLAIN_OBJECTS, st.sampled_from(["{}", " {}\n", "```json\n{}\n```", "```\n{}\n  ```\n", "\ufeff{}"]))
def test_an_object_is_read_as_it_is(value: dict[str, Json], around: str) -> None:
    assert read_object(around.replace("{}", json.dumps(value))) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "```",
        "```json\n```",
        "```json\n{}",
        "{}\n```",
        "``` not a language\n{}\n```",
        "```json\n{}\n``` and so on",
        "{} {}",
        "{'a': 1}",
        '{"a": 1,}',
        '{"a": {"b": 1, "b": 1}}',
        '{"a": -Infinity}',
        "[{}]",
        '"{}"',
        "{" * 200_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        '{"a":' * 150 + "1" + "}" * 150,
        " " * (MAX_TEXT + 1),
        "```" + "\n" * 100_000,
    ],
    ids=lambda value: str(value)[:30],
)
def test_anything_else_has_a_flaw(text: str) -> None:
    assert isinstance(read_object(text), str)


def test_words_are_kept_within_bounds() -> None:
    assert bounded("  short ", 10) == "short"
    assert bounded("x" * 11, 10) == "x" * 9 + "…"
    assert bounded("a\tb\nc\x07", 10) == "a\tb\nc\ufffd"
    assert replacement_of(None) is None
    assert replacement_of("\r\n\tx ") == "\r\n\tx "
    assert cwe_of("CWE-00079") == "CWE-79"


@given(st.text(max_size=40), st.integers(2, 30))
def test_bounded_words_are_never_longer(text: str, longest: int) -> None:
    assert len(bounded(text, longest)) <= longest


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"x": float("nan")}, "NaN"),
        ({"x": [1, float("-inf")]}, "NaN"),
        ({"x": 2**64}, "64 bits"),
        ({"x": -(2**63) - 1}, "64 bits"),
        (json.loads("[" * 200 + "]" * 200), "nested"),
    ],
)
def test_data_that_no_store_gives_back_has_a_flaw(value: Json, why: str) -> None:
    assert why in (flaw_of(value) or "")


def test_data_that_can_be_kept_has_no_flaw() -> None:
    assert flaw_of({"a": [1.5, True, None, "x", 2**64 - 1, {"b": {}}], "c": json.loads("[" * 90 + "]" * 90)}) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hello", "a value is expected at line 1, column 1"),
        ("{'a': 1}", "a key in double quotes is expected at line 1, column 2"),
        ('{"a": 1\n "b": 2}', "a comma or the closing bracket is expected at line 2, column 2"),
        ('{"a" 1}', "a colon is expected after the key at line 1, column 6"),
        ("{} {}", "something follows the end of the value at line 1, column 4"),
        ('"a', "a string has no closing quote at line 1, column 1"),
        ("[" * 100_000, "it is nested too deep"),
    ],
)
def test_what_is_not_json_is_told_in_plain_words_with_its_place(text: str, told: str) -> None:
    with pytest.raises((ValueError, RecursionError)) as caught:
        json.loads(text)
    assert json_fault(caught.value) == told
