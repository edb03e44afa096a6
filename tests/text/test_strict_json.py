"""A text is one JSON object, or nothing that counts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.domain.canonical import Json
from muster.text.json_documents import LONGEST, read_object
from muster.verify.agents.answers import bounded, cwe_of, replacement_of

OBJECTS = st.dictionaries(
    st.text(max_size=5), st.integers(-(2**63), 2**63) | st.text(max_size=5) | st.none(), max_size=4
)


@settings(max_examples=50, deadline=None)
@given(OBJECTS, st.sampled_from(["{}", " {}\n", "```json\n{}\n```", "```\n{}\n  ```\n", "\ufeff{}"]))
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
        " " * (LONGEST + 1),
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


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40), st.integers(2, 30))
def test_bounded_words_are_never_longer(text: str, longest: int) -> None:
    assert len(bounded(text, longest)) <= longest
