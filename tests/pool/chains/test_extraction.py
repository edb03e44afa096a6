import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadArgument, BadOutput
from muster.pool.chains.extraction import extracted, parse_path, spelled_path, value_at

DATA = {"items": [{"title": "one", "a b": [[1], [2, 3]]}], "n": None}


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("items[0].title", "one"),
        ("items[0].a b[1][0]", 2),
        ("items", DATA["items"]),
        ("n", None),
        ("$", DATA),
    ],
)
def test_a_path_leads_to_a_value(path: str, value: object) -> None:
    assert value_at(DATA, parse_path(path)) == value


@pytest.mark.parametrize("path", ["", ".", "a.", ".a..b", "a[", "a[x]", "a[-1]", "a]b", "a[0]b", "[0", "a" * 400])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(BadArgument, match="is not a path"):
        parse_path(path)


@given(st.lists(st.from_regex(r"[a-z_][a-z0-9_-]*", fullmatch=True) | st.integers(0, 99), min_size=1, max_size=6))
def test_a_path_is_read_as_it_is_written(steps: list[str | int]) -> None:
    assert parse_path(spelled_path(tuple(steps))) == tuple(steps)


@pytest.mark.parametrize(
    "output",
    [
        json.dumps(DATA),
        f"```json\n{json.dumps(DATA)}\n```",
        f"Here it is:\n```json\n{json.dumps(DATA, indent=2)}\n```\nThat is all.",
        f"It is {json.dumps(DATA)}, as you wished.",
    ],
)
def test_json_is_found_fenced_or_not(output: str) -> None:
    assert extracted(output, {"first": "items[0].title"}, None) == {"first": "one"}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("items[3].title", r"nothing at items\[3\], which is missing in a list of 1"),
        ("items[0].x", "missing in an object with 'title', 'a b'"),
        ("n.x", "neither an object nor a list"),
    ],
)
def test_a_missing_path_is_an_error_with_its_place(path: str, words: str) -> None:
    with pytest.raises(BadOutput, match=words):
        extracted(json.dumps(DATA), {"v": path}, None)


def test_an_output_without_json_and_one_that_does_not_fit_are_errors() -> None:
    with pytest.raises(BadOutput, match="no JSON"):
        extracted("nothing here", {"v": "a"}, None)
    with pytest.raises(BadOutput, match="does not fit the schema"):
        extracted('{"a": "x"}', {}, {"type": "object", "properties": {"a": {"type": "integer"}}})
    assert extracted("nothing here", {}, None) == {}
