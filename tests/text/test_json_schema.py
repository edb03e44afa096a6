"""JSON Schema over answers."""

import re
import resource
from dataclasses import replace
from typing import Any

import pytest

from muster.domain.call import ask
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, InvalidRequest
from muster.text.limited.allowance import CpuAllowance
from muster.text.limited.process import TooSlow
from muster.text.schemas.guard import is_plain
from muster.text.schemas.json_schema import evaluate, flaw, is_quick, require_schema, schema_flaw

SCHEMA = {
    "type": "object",
    "properties": {
        "score": {"type": "number", "maximum": 10},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/t"}},
    },
    "required": ["score"],
    "additionalProperties": False,
    "$defs": {"t": {"type": "string"}},
}


@pytest.mark.parametrize("value", [{"score": 3}, {"score": 9.5, "tags": []}, {"score": 1, "tags": ["a", "b"]}])
def test_an_answer_of_the_right_shape_has_no_flaw(value: Any) -> None:
    assert flaw(value, SCHEMA) is None


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({}, r"\$: 'score' is a required"),
        ({"score": 11}, r"\$\.score: 11 is greater"),
        ({"score": 1, "tags": ["a", 2]}, r"\$\.tags\[1\]: 2 is not of type"),
        ({"score": 1, "more": 1}, r"'more' was unexpected"),
        ([], "is not of type 'object'"),
        (None, "is not of type 'object'"),
    ],
)
def test_a_flaw_is_told_with_its_place(value: Any, place: str) -> None:
    assert re.search(place, flaw(value, SCHEMA) or "")


def test_a_flaw_in_a_long_answer_is_told_in_few_words() -> None:
    assert len(flaw("x" * 100_000, {"type": "object"}) or "") < 400


def test_a_schema_that_is_none_is_refused_before_anything_is_spent() -> None:
    require_schema(replace(ask("x"), schema=SCHEMA))
    require_schema(ask("x"))
    with pytest.raises(InvalidRequest, match="not a JSON Schema"):
        require_schema(replace(ask("x"), schema={"type": "thing"}))


@pytest.mark.parametrize("reference", ["#/nowhere", "http://127.0.0.1:9/never-fetched.json"])
def test_a_reference_to_nowhere_is_a_flaw_and_nothing_is_fetched(reference: str) -> None:
    assert "not in it" in (flaw({}, {"$ref": reference}) or "")


@pytest.mark.parametrize(
    "schema",
    [{"pattern": r"(x+x+)+y"}, {"type": "object", "patternProperties": {r"(x+x+)+y": {"type": "null"}}}],
)
def test_a_pattern_that_would_take_for_ever_is_a_flaw_and_no_hang(schema: dict[str, Any]) -> None:
    hostile = "x" * 5000
    with pytest.raises(TooSlow, match="takes too long"):
        evaluate({hostile: 1} if "type" in schema else hostile, schema, CpuAllowance(0.2))


def doubling(levels: int) -> dict[str, Any]:
    """Return a short schema that leads to 2 to the power of its levels references."""
    steps = {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**steps, str(levels): {}}, "$ref": "#/$defs/0"}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$ref": "#"}, "refers to itself without end"),
        (doubling(60), "takes too long"),
    ],
)
def test_a_schema_without_end_is_a_flaw_and_no_hang(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(BadArgument, match=words):
        evaluate({}, schema, CpuAllowance(0.2))


def test_a_schema_may_follow_references_for_a_large_value() -> None:
    below = {"type": "array", "items": {"$ref": "#/$defs/node"}}
    node = {"type": "object", "properties": {"below": below}}
    schema = {"$defs": {"node": node}, "$ref": "#/$defs/node"}
    assert flaw({"below": [{"below": []}] * 10_000}, schema) is None
    assert "is not of type" in str(flaw({"below": [{"below": []}] * 10 + [1]}, schema))


def test_patterns_of_a_schema_hold() -> None:
    schema = {"type": "object", "patternProperties": {"^n_": {"type": "number"}}, "additionalProperties": False}
    assert flaw({"n_a": 1}, schema) is None
    assert "is not of type 'number'" in str(flaw({"n_a": "1"}, schema))
    assert "does not match" in str(flaw("abc", {"pattern": "^b"}))
    assert flaw("abc", {"pattern": "b"}) is None
    assert flaw(3, {"pattern": "b"}) is None


@pytest.mark.parametrize(
    ("schema", "missing"),
    [
        ({"$ref": "#/$defs/x"}, "#/$defs/x"),
        ({"properties": {"a": {"items": {"$ref": "http://elsewhere.example/x"}}}}, "http://elsewhere.example/x"),
        ({"anyOf": [{"$dynamicRef": "#node"}]}, "#node"),
    ],
)
def test_a_schema_with_a_reference_to_nowhere_is_none(schema: dict[str, Any], missing: str) -> None:
    assert schema_flaw(schema) == f"it refers to {missing!r}, which is not in it"


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"below": {"$ref": "#"}}},
        {"$ref": "#/$defs/x", "$defs": {"x": True}},
        {"items": {"$ref": "#here"}, "$defs": {"x": {"$anchor": "here"}}},
        {"$id": "http://a.example/a", "$defs": {"b": {"$id": "b", "$anchor": "here"}}, "items": {"$ref": "b#here"}},
        {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"x": {}}, "$ref": "#/definitions/x"},
        {"enum": [{"$ref": "#/nowhere"}], "default": {"$ref": "#/nowhere"}},
    ],
)
def test_references_that_a_schema_holds_and_what_only_looks_like_one_are_no_flaw(schema: dict[str, Any]) -> None:
    assert schema_flaw(schema) is None


@pytest.mark.parametrize("more", [False, {"type": "string"}])
@pytest.mark.parametrize("draft", ["2020-12/schema", "2019-09/schema"])
def test_patterns_of_properties_are_searched_for_within_a_limit(more: Any, draft: str) -> None:
    slow = {"$schema": f"https://json-schema.org/draft/{draft}", "patternProperties": {"^(a|aa)+$": {}}}
    with pytest.raises(TooSlow):
        evaluate({"a" * 40 + "!": 1}, {**slow, "additionalProperties": more}, CpuAllowance(0.2))


def test_what_is_neither_named_nor_matched_is_additional() -> None:
    schema = {"properties": {"a": {}}, "patternProperties": {"^x-": {}}, "additionalProperties": {"type": "string"}}
    assert evaluate({"a": 1, "x-b": 2, "c": "three"}, schema) is None
    assert evaluate({"c": 3}, schema) == "$.c: 3 is not of type 'string'"
    closed = {**schema, "additionalProperties": False}
    assert evaluate({"a": 1, "c": 3, "d": 4}, closed) == "$: 'c', 'd' do not match any of the regexes: '^x-'"


SLOW_IN_C: dict[str, tuple[Any, dict[str, Any]]] = {
    "another dialect inside": (
        "a" * 60 + "!",
        {"allOf": [{"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a|aa)+$"}]},
    ),
    "pairs of numbers": ([0] * 60_000, {"items": True, "unevaluatedItems": False}),
    "patterns of what is left": (
        {"a" * 40 + "!": 1},
        {"allOf": [{"patternProperties": {"^(a|aa)+$": {}}}], "unevaluatedProperties": False},
    ),
}


@pytest.mark.parametrize("name", SLOW_IN_C)
def test_what_takes_long_in_compiled_code_is_ended_too(name: str) -> None:
    value, schema = SLOW_IN_C[name]
    allowance = CpuAllowance(0.3)
    with pytest.raises(TooSlow):
        evaluate(value, schema, allowance)
    assert allowance.left <= 0
    assert evaluate(1, {"$ref": "#/$defs/x", "$defs": {"x": {"type": "integer"}}}) is None  # by another process


def test_a_schema_whose_pattern_takes_long_to_compile_is_none() -> None:
    pattern = "(?i)[" + "".join(f"{chr(0x100 + number)}-\uffff" for number in range(3000)) + "]"
    assert schema_flaw({"pattern": pattern}, CpuAllowance(0.3)) == "it takes too long to check; make it simpler"


def test_a_schema_that_eats_the_memory_is_not_evaluated() -> None:
    leaf: dict[str, Json] = {"d": {"anyOf": [False] * 250}}
    schema: dict[str, Json] = {"$defs": leaf, "anyOf": [{"$ref": "#/$defs/d"}] * 250}
    with pytest.raises(BadArgument, match="takes too much memory"):
        evaluate("x" * 95_000, schema, CpuAllowance(20))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1_000_000


def test_many_objects_of_many_kinds_fit() -> None:
    kinds: list[Json] = [
        {"type": "object", "properties": {"kind": {"const": f"k{n}"}}, "required": ["kind"]} for n in range(8)
    ]
    value: Json = [{"kind": f"k{number % 8}"} for number in range(500)]
    assert evaluate(value, {"type": "array", "items": {"oneOf": kinds}}) is None
    assert evaluate(list(range(10_000)), {"items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}) is None


def test_the_place_of_a_flaw_is_told_in_few_words() -> None:
    schema: dict[str, Json] = {"additionalProperties": {"additionalProperties": {"type": "string"}}}
    assert len(evaluate({"a" * 40_000: {"b" * 40_000: 1}}, schema) or "") < 700


PLAIN: list[Json] = [
    True,
    {"pattern": r"\S"},
    {"pattern": r"^[a-z]\d\d-x$"},
    {"type": "object", "properties": {"a": {"enum": [1, {"$ref": "x"}]}}, "additionalProperties": False},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "items": {"anyOf": [{"type": "null"}, {"not": {}}]}},
]
NOT_PLAIN: list[Json] = [
    {"pattern": "a*"},
    {"pattern": "a?"},
    {"pattern": "(a)"},
    {"pattern": "a{9}"},
    {"pattern": r"\1"},
    {"pattern": 1},
    {"properties": {"a": {"$ref": "#"}}},
    {"uniqueItems": True},
    {"allOf": [{"$schema": "https://json-schema.org/draft/2020-12/schema"}]},
    {"items": [{"type": "string"}]},
    {"properties": 1},
    {"anyOf": {}},
    [],
]


def test_only_a_small_plain_schema_is_evaluated_at_once() -> None:
    small: dict[str, Json] = {"type": "object", "required": ["a"]}
    assert is_quick("{}", small)
    assert not is_quick("x" * 1_000_000, small)
    assert not is_quick("{}", {"properties": {f"p{number}": {"type": "string"} for number in range(1000)}})
    assert not is_quick("{}", {"$ref": "#"})


def test_a_schema_is_plain_when_it_only_compares() -> None:
    assert [is_plain(one) for one in PLAIN] == [True] * len(PLAIN)
    assert [is_plain(one) for one in NOT_PLAIN] == [False] * len(NOT_PLAIN)
