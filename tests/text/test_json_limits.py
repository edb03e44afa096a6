"""What every store reads back as it was."""

import json

import pytest

from muster.domain.canonical import Json
from muster.text.json_documents import flaw_of


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
