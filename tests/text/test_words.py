"""Predicates of errors: choices with the nearest one, and types in plain words."""

import pytest

from muster.text.words import choice_error, conversion_words, count


@pytest.mark.parametrize(
    ("values", "given", "told"),
    [
        (("live", "batch"), "bath", "must be live or batch, not 'bath'. Did you mean 'batch'?"),
        (("html", "json", "junit"), "hmtl", "must be one of html, json, junit, not 'hmtl'. Did you mean 'html'?"),
        (("html", "json", "junit"), "pdf", "must be one of html, json, junit, not 'pdf'"),
        (("html", "json"), 7, "must be html or json, not 7"),
    ],
)
def test_a_wrong_choice_is_told_with_all_choices_and_the_nearest(
    values: tuple[str, ...], given: object, told: str
) -> None:
    assert choice_error(values, given) == told


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("Expected `object`, got `str`", "must be a mapping, not a string"),
        ("Expected `int` >= 1", "must be an integer >= 1"),
        ("Object contains unknown field `nth`", "unknown key 'nth'"),
        ("something else", "something else"),
    ],
)
def test_a_value_of_another_type_is_told_in_plain_words(what: str, told: str) -> None:
    assert conversion_words(what) == told


def test_a_mapping_is_called_what_the_file_calls_it() -> None:
    assert conversion_words("Expected `object`, got `array`", "a table") == "must be a table, not a list"


def test_one_thing_is_singular() -> None:
    assert [count(1, "entry", "entries"), count(2, "entry", "entries"), count(1, "case"), count(0, "case")] == [
        "1 entry",
        "2 entries",
        "1 case",
        "0 cases",
    ]
