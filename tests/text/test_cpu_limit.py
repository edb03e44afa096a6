"""Schemas that may use so much CPU and no more, whatever they are given."""

from typing import Any

import pytest

from muster.text.limited.allowance import CpuAllowance
from muster.text.limited.process import TooSlow
from muster.text.schemas.json_schema import evaluate, schema_flaw


def work(rounds: int) -> int:
    return sum(map(_step, range(rounds)))


def _step(number: int) -> int:
    return number % 7


def test_pieces_of_work_share_an_allowance_and_leave_the_rest() -> None:
    allowance = CpuAllowance(100)
    for _ in range(3):
        before = allowance.left
        with allowance.spending():
            work(10_000)
        assert 0 < allowance.left < before
    allowance.spend(200)
    assert allowance.left < 0


def unevaluated(depth: int) -> dict[str, Any]:
    """Return a short schema whose evaluation doubles with every level."""
    schema: dict[str, Any] = {"properties": {"a": {}}}
    for _ in range(depth):
        schema = {"anyOf": [schema], "unevaluatedProperties": True}
    return schema


def nested(depth: int) -> Any:
    return [nested(depth - 1), depth] if depth else []


BOMBS: dict[str, tuple[Any, dict[str, Any]]] = {
    "unevaluated": ({"a": 1, "b": 2}, unevaluated(30)),
    "enum": ([{"a": n} for n in range(3000)], {"items": {"enum": [{"b": n} for n in range(3000)]}}),
    "unique": ([[{"a": n}] for n in range(20_000)], {"uniqueItems": True}),
    "patterns": ("a" * 24 + "b", {"allOf": [{"pattern": f"(a|aa)+{number}$"} for number in range(3000)]}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_schema_that_would_be_evaluated_without_end_takes_too_long(name: str) -> None:
    value, schema = BOMBS[name]
    with pytest.raises(TooSlow):
        evaluate(value, schema, CpuAllowance(0.2))


def test_a_schema_that_would_be_checked_without_end_is_none() -> None:
    quadratic = {"$schema": "http://json-schema.org/draft-04/schema#", "enum": [{"a": n} for n in range(5_000)]}
    assert schema_flaw(quadratic, CpuAllowance(0.2)) == "it takes too long to check; make it simpler"


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": 7},
        {"$schema": "http://json-schema.org/draft-03/schema#", "extends": {"$ref": "#/x"}},
        {"const": 1, "$ref": "#/const"},
        {"$ref": "#/$ref"},
    ],
)
def test_whatever_is_strange_about_a_schema_is_a_flaw(schema: dict[str, Any]) -> None:
    assert schema_flaw(schema)
