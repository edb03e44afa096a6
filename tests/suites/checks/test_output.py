"""What output checks accept, and what they say when they do not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.suites.checks.output import check_output
from muster.suites.values.case import CheckKind, Golden
from tests.suites.checks.values import check, output, said

FENCED = 'Here you are [1]:\n```json\n{"status": "ok", "n": 2, "list": [{"name": "a"}, {"name": "b"}]}\n```\nAs said.'


@pytest.mark.parametrize(
    ("kind", "value", "answer"),
    [
        ("contains", "ell", "hello"),
        ("not_contains", "x", "hello"),
        ("equals", "hello", "hello\n"),
        ("equals", "hello\n", "hello"),
        ("equals", "", ""),
        ("regex", r"h.l+o$", "oh hello"),
        ("json_path", "$.n", FENCED),
        ("json_path", "$.list[?@.name == 'b']", FENCED),
        ("json_path", "$.gone", '{"gone": null}'),
    ],
)
def test_a_check_that_holds_passes_without_a_word(kind: str, value: str, answer: str) -> None:
    found = check(kind, value, answer)
    assert (found.passed, found.why, found.broken, found.name) == (True, "", False, kind)


@pytest.mark.parametrize(
    ("kind", "value", "answer", "why"),
    [
        ("contains", "x", "hello", "'hello'"),
        ("not_contains", "ell", "hello", "'hello'"),
        ("equals", "hello", " hello", "' hello'"),
        ("equals", "hello", "Hello", "'Hello'"),
        ("regex", "^x", "hello", "'hello'"),
        ("json_path", "$.missing", FENCED, "$.missing"),
        ("json_path", "$.n", "no data at all", "no JSON"),
    ],
)
def test_a_check_that_does_not_hold_fails_and_shows_what_was_found(
    kind: str, value: str, answer: str, why: str
) -> None:
    found = check(kind, value, answer)
    assert not found.passed
    assert not found.broken
    assert why in found.why


@pytest.mark.parametrize("kind", list(CheckKind))
def test_an_answer_that_does_not_exist_passes_nothing(kind: str) -> None:
    wanted = output(kind, "$.x", schema={}, golden=Golden(path="g", text=""))
    assert not check_output(wanted, said()).passed
    assert not check_output(output(kind, "$.x", schema={}, golden=Golden(path="g", text=""), turn=2), said("x")).passed


@pytest.mark.parametrize("turn", [-1, 0, 3])
def test_a_turn_that_is_not_there_fails(turn: int) -> None:
    found = check_output(output("not_contains", "x", turn=turn), said("a", "b"))
    assert not found.passed
    assert "the agent gave 2" in found.why


def test_a_turn_picks_its_answer_and_the_last_counts_else() -> None:
    talk = said("first", "second")
    assert check_output(output("equals", "first", turn=1), talk).passed
    assert check_output(output("equals", "second", turn=2), talk).passed
    assert check_output(output("equals", "second"), talk).passed


@pytest.mark.parametrize("kind", ["contains", "not_contains", "regex", "json_path"])
def test_a_check_that_looks_for_nothing_is_broken(kind: str) -> None:
    found = check(kind, "", "hello")
    assert (found.passed, found.broken) == (False, True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("status", "ok"),
        ("/status", "ok"),
        ("$.status", "ok"),
        ("$['status']", "ok"),
        ("n", "2"),
        ("n", "2.0"),
        ("/list/1/name", "b"),
        ("$.list[*].name", "b"),
        ("$..name", "a"),
        ("/list/0", '{"name":"a"}'),
    ],
)
def test_a_field_says_where_a_value_must_stand(field: str, value: str) -> None:
    assert check("json_path", value, FENCED, field=field).passed
    assert check("equals", value, FENCED, field=field).passed


@pytest.mark.parametrize(
    ("field", "value"), [("status", "OK"), ("status", '"ok"'), ("n", "true"), ("/list/01", "x"), ("gone", "ok")]
)
def test_another_value_or_no_such_place_fails(field: str, value: str) -> None:
    found = check("json_path", value, FENCED, field=field)
    assert not found.passed
    assert field in found.why


def test_a_pointer_reads_its_escapes_and_numbers_of_lists() -> None:
    answer = json.dumps({"a/b": {"~": ["x", "y"]}, "0": "zero"})
    assert check("equals", "y", answer, field="/a~1b/~0/1").passed
    assert check("equals", "zero", answer, field="/0").passed
    assert not check("equals", "y", answer, field="/a~1b/~0/2").passed


def test_a_field_of_another_kind_narrows_it_to_one_place() -> None:
    assert check("contains", "o", FENCED, field="status").passed
    assert not check("contains", "Here", FENCED, field="status").passed
    assert check("regex", "^(?i)OK$", FENCED, field="status").passed
    assert check("not_contains", "Here", FENCED, field="status").passed


def test_not_contains_holds_of_every_place_and_needs_one() -> None:
    assert not check("not_contains", "b", FENCED, field="$.list[*].name").passed
    assert check("not_contains", "z", FENCED, field="$.list[*].name").passed
    assert not check("not_contains", "z", FENCED, field="$.nothing").passed
    assert not check("not_contains", "z", "prose", field="status").passed


def test_a_path_that_is_none_or_finds_too_much_is_broken() -> None:
    assert check("json_path", "$.[", "{}").broken
    assert check("contains", "1", json.dumps([1] * 1001), field="$[*]").broken


def test_a_reference_in_prose_is_no_document() -> None:
    assert check("json_path", "ok", 'It is {"status": "ok"}, see [2].', field="status").passed
    assert not check("json_path", "2", 'It is {"status": "ok"}, see [2].', field="$[0]").passed
    assert not check("json_path", "2", "It is [2].", field="$[0]").passed
    assert check("json_path", "2", "It is\n[2]", field="$[0]").passed
    assert check("json_path", "2", "It is [2, 3].", field="$[0]").passed


@pytest.mark.parametrize("depth", [900, 100_000])
def test_json_nested_too_deeply_fails_and_does_not_raise(depth: int) -> None:
    deep = '{"a":' * depth + "1" + "}" * depth
    assert not check("json_path", "$..b", deep).passed
    assert not check("equals", "2", deep, field="$..a").passed
    assert not check("contains", "2", deep, field="a").passed
    assert not check("json_schema", "", deep, schema={"type": "object"}).passed


SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}


def test_a_schema_is_checked_on_the_json_of_the_answer() -> None:
    assert check("contains_json", "", FENCED, schema=SCHEMA).passed
    wrong = check("json_schema", "", '{"n": "two"}', schema=SCHEMA)
    assert not wrong.passed
    assert "$.n" in wrong.why
    assert not check("json_schema", "", "two", schema=SCHEMA).passed
    assert check("contains_json", "", FENCED, schema={"type": "array", "minItems": 2}, field="list").passed
    assert not check("json_schema", "", FENCED, schema={"type": "array", "minItems": 2}, field="list").passed


@pytest.mark.parametrize("schema", [None, {"type": 5}, {"pattern": "("}, {"required": "n"}])
def test_a_damaged_schema_is_broken(schema: dict[str, object] | None) -> None:
    assert check("json_schema", "", "{}", schema=schema).broken


def test_a_golden_check_needs_its_likeness() -> None:
    golden = Golden(path="golden/a.txt", text="a\nb\nc\nd\n", threshold=0.75)
    assert check("golden_diff", "", "a\nb\nc\nx", golden=golden).passed
    far = check("golden_diff", "", "a\nb\nx\ny", golden=golden)
    assert not far.passed
    assert "0.5" in far.why
    assert check("golden_diff", "", "x").broken
    assert not check("golden_diff", "", '["a", "b"]', golden=golden, field="$[*]").passed


def test_what_is_quoted_is_short_and_cannot_paint_a_terminal() -> None:
    why = check("contains", "x", "\x1b[31mred\n" * 1000).why
    assert len(why) < 260
    assert "\x1b" not in why
    around = check("not_contains", "needle", "y" * 5000 + "needle" + "z" * 5000).why
    assert "needle" in around
    assert len(around) < 260


@given(
    kind=st.sampled_from(list(CheckKind)),
    value=st.text(max_size=12) | st.sampled_from(["$", "$.a", "$..*", "a+", "(?i)x", "[[:alpha:]]"]),
    field=st.none() | st.text(max_size=6) | st.sampled_from(["$", "$..*", "/a/0", "a"]),
    answer=st.text(max_size=40) | st.recursive(st.integers() | st.text(max_size=3), st.lists).map(json.dumps),
    turn=st.none() | st.integers(-2, 2),
)
def test_no_check_of_any_answer_raises(
    kind: CheckKind, value: str, field: str | None, answer: str, turn: int | None
) -> None:
    found = check_output(output(kind, value, field=field, turn=turn, schema={}), said(answer))
    assert found.passed == (found.why == "")
    assert not (found.broken and found.passed)
