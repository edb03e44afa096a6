import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.errors import BadArgument
from muster.pool.chains.templates import Reference, parse_template, spelled_value

TEXT = st.text(max_size=200)
NAMES = st.from_regex(r"[a-z]+(\.[a-z-]+){0,2}", fullmatch=True).filter(lambda name: len(name) < 50)


def never(name: str) -> str:
    raise AssertionError(name)


@given(TEXT.filter(lambda text: "{" not in text and "}" not in text))
def test_a_text_without_braces_is_itself(text: str) -> None:
    assert parse_template(text).expand(never) == text


@given(TEXT)
def test_doubled_braces_are_the_text(text: str) -> None:
    assert parse_template(text.replace("{", "{{").replace("}", "}}")).expand(never) == text


@given(st.lists(st.tuples(TEXT.filter(lambda text: "{" not in text and "}" not in text), NAMES, TEXT), max_size=5))
def test_values_are_put_in_and_never_expanded_again(parts: list[tuple[str, str, str]]) -> None:
    values = {f"{name}.v{index}": value for index, (_, name, value) in enumerate(parts)}
    text = "".join(f"{before}{{{name}.v{index}}}" for index, (before, name, _) in enumerate(parts))
    assert parse_template(text).expand(values.__getitem__) == "".join(before + value for before, _, value in parts)


def test_a_value_that_looks_like_a_name_stays_as_it_is() -> None:
    assert parse_template("{a} {{b}}").expand({"a": "{steps.a.b} {{x}}"}.__getitem__) == "{steps.a.b} {{x}} {b}"


@pytest.mark.parametrize(
    ("value", "text"),
    [("é", "é"), (None, ""), (1.5, "1.5"), (True, "true"), (["é", 1], '["é", 1]'), ({"a": None}, '{"a": null}')],
)
def test_values_other_than_text_are_json(value: object, text: str) -> None:
    assert spelled_value(value) == text


@pytest.mark.parametrize(
    "text", ["{", "}", "a { b", "{}", "{ }", "{a b}", "{a}}", "{{a}", "{a\n}b{", "{" + "a" * 400 + "}"]
)
def test_a_brace_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadArgument):
        parse_template(text)


def test_names_are_found_in_order_and_one_alone_is_known_as_such() -> None:
    template = parse_template("x{a}{{y}}{steps.b.c}")
    assert list(template.names) == ["a", "steps.b.c"]
    assert template.only is None
    assert parse_template("{ a }").only == "a"
    assert parse_template("{a}").parts == (Reference("a"),)
