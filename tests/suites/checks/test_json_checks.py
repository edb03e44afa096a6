"""JSON in answers: the whole answer, or one document in it, whose numbers are numbers."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.suites.checks.output import check_output
from muster.suites.format.suite import examine
from muster.suites.values.rules import CURRENT_RULES, rules_in
from tests.suites.checks.values import check, output, said
from tests.suites.format.suites import checked_by, the_flaw, write_suite

OBJECT = {"type": "object", "required": ["a"]}
FENCE = '```json\n{"a": 1}\n```'
PROSE = 'Here it is: {"a": 1}. Anything else?'
TWO = '{"a": 1}\n{"a": 2}'
OLD = rules_in({})
SECOND, THIRD = rules_in({"scoring_rules": 2}), rules_in({"scoring_rules": 3})
BROKEN = (
    '{"a": "bad", "x": {"a": "fine"}',
    '{"x": {"a": 1}',
    '{"x": {"a": 1}, "y": ',
    '{"a": 1,} {"a": 1}',
    '{"a": 1} {"b": ',
    'It is {"x": {"a": 1}, "y": nothing}',
    '```json\n{"x": {"a": 1}\n```',
    '[{"a": 1}',
    '[1, 2, {"a": 1}',
    '[[1, 2], {"a": 1}',
    "{'x': {\"a\": 1}}",
    '{x: "}", y: {"a": 1}}',
    '{x: {"a": 1}',
    '"x": {"a": 1}}',
    '{"a": 1}]',
    '{"a": 1}, "y": 2}',
)
SEVERAL = ('{"a": 1} [1, 2]', '[] {"a": 1}', '{} {"a": 1}', '["x"] {"a": 1}', '{"a": 1} [1]', 'As in [1, 2]: {"a": 1}')
IN_PROSE = (
    PROSE,
    f"As in [1] and names[0], [ ] open, [x] done: {PROSE}",
    f"[1]: a source\n\n{PROSE}",
    f"Dear {{name}}, {{{{x}}}} in [0, 1) or (0, 1], [[wiki]], [a](b): {PROSE}",
    f"{{set | of: 'all'}} {PROSE}",
    '[Note: it is {"a": 1}]',
)


@pytest.mark.parametrize(
    ("answer", "is_json", "json_schema", "contains_json"),
    [
        ('{"a": 1}', True, True, True),
        (' \n{"a": 1}\n', True, True, True),
        (FENCE, False, True, True),
        (PROSE, False, False, True),
        (f"Sure:\n{FENCE}\nAs in [1].", False, False, True),
        (TWO, False, False, False),
        ('First {"a": 1}, or {"a": 2}.', False, False, False),
        (f"{FENCE}\n{FENCE}", False, False, False),
        ('{"a": NaN}', False, False, False),
        ('{"a": 1, "b": [-Infinity]}', False, False, False),
        ('{"a": 1e999}', False, False, False),
        ('It is {"a": NaN}.', False, False, False),
        ('{"a": 1, "a": 2}', False, False, False),
        ('{"b": 1}', False, False, False),
        ("[1]", False, False, False),
        ("no JSON", False, False, False),
        ('{"a": 1', False, False, False),
        ("{'a': 1}", False, False, False),
    ],
)
def test_json_is_the_whole_answer_or_one_document_in_it(
    answer: str, is_json: bool, json_schema: bool, contains_json: bool
) -> None:
    kinds = ("is_json", "json_schema", "contains_json")
    passed = [check(kind, "", answer, schema=OBJECT).passed for kind in kinds]
    assert passed == [is_json, json_schema, contains_json]


def test_json_without_a_schema_is_any_json() -> None:
    assert check("is_json", "", "[1, 2]").passed
    assert check("is_json", "", "5").passed
    assert not check("is_json", "", "five").passed
    assert check("contains_json", "", "It is [1, 2].").passed
    assert not check("contains_json", "", "It is (1, 2).").passed


@pytest.mark.parametrize(
    ("answer", "passes"),
    [
        ('{"b": [1, 2], "a": 1}', True),
        ('{"a": 1.0, "b": [1,2]}\n', True),
        ('{"a": 1, "b": [2, 1]}', False),
        ('{"a": true, "b": [1, 2]}', False),
        ('It is {"a": 1, "b": [1, 2]}', False),
        ('{"a": 1, "b": [1, 2]} {"a": 1}', False),
    ],
)
def test_equals_compares_json_by_value(answer: str, passes: bool) -> None:
    assert check("equals", '{"a":1,"b":[1,2]}', answer).passed is passes


def test_equals_compares_everything_else_as_text() -> None:
    assert not check("equals", "1.50", "1.5").passed
    assert not check("equals", '"yes"', "yes").passed
    assert not check("equals", '{"a": NaN}', '{"a":NaN}').passed


@pytest.mark.parametrize(
    ("kind", "value", "field"), [("contains", "1", "a"), ("json_path", "1", "a"), ("json_path", "$.a", None)]
)
def test_a_second_document_and_what_is_no_number_fail_every_look_into_json(
    kind: str, value: str, field: str | None
) -> None:
    assert check(kind, value, PROSE, field=field).passed
    assert check(kind, value, f"As in [1]: {PROSE}", field=field).passed
    for answer in (TWO, f"{PROSE} {PROSE}", '{"a": 1, "b": NaN}', 'It is {"a": 1, "b": Infinity}'):
        assert not check(kind, value, answer, field=field).passed


@pytest.mark.parametrize(
    ("kind", "value", "more"),
    [
        ("contains_json", "", {"schema": {}}),
        ("contains_json", "", {"schema": OBJECT}),
        ("equals", "1", {"field": "a"}),
        ("not_contains", "bad", {"field": "a"}),
        ("regex", ".", {"field": "$.a"}),
        ("json_path", "$..a", {}),
    ],
)
def test_json_that_is_broken_is_not_looked_into_and_lists_are_documents(
    kind: str, value: str, more: dict[str, Any]
) -> None:
    assert [answer for answer in (*BROKEN, *SEVERAL) if check(kind, value, answer, **more).passed] == []
    assert [answer for answer in IN_PROSE if not check(kind, value, answer, **more).passed] == []


def test_a_document_that_is_broken_is_named_with_its_line() -> None:
    failed = check("contains_json", "", 'It is\n{"x": {"a": 1}', schema={})
    assert failed.why == 'the JSON in the answer is broken or cut off at line 2: \'{"x": {"a": 1}\''


def test_a_text_with_many_brackets_is_gone_through_once() -> None:
    for text in ("[1 " * 20_000, "{x " * 20_000, "[1, " * 20_000, '{x "' * 20_000):
        assert not check("contains_json", "", text, schema={}).passed


def test_answers_of_the_second_rules_are_read_as_they_were() -> None:
    wanted = output("contains_json", "", schema=OBJECT)
    for answer in ('{"x": {"a": 1}', '{"a": 1} [1, 2]'):
        assert check_output(wanted, said(answer), SECOND).passed


def test_answers_of_the_third_rules_are_read_as_they_were() -> None:
    infinite = output("equals", '{"a": 1e999}'), said('{"a": 2e999}')
    reference = output("json_path", "$[0]"), said("It is so, see [1].")
    for one in (infinite, reference):
        assert check_output(*one, THIRD).passed
        assert not check_output(*one, CURRENT_RULES).passed


def test_answers_of_older_runs_are_read_as_they_were() -> None:
    wanted = output("json_schema", "", schema=OBJECT)
    for answer in (PROSE, TWO):
        assert check_output(wanted, said(answer), OLD).passed
        assert not check_output(wanted, said(answer), CURRENT_RULES).passed
    assert not check_output(output("equals", '{"a":1}'), said('{"a": 1}'), OLD).passed
    lax = replace(wanted, schema={"properties": {"a": {"format": "email"}}})
    assert check_output(lax, said('{"a": "nobody"}'), OLD).passed


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"requred": ["a"]}, "unknown keyword 'requred'; did you mean required?"),
        ({"properties": {"a": {"minlength": 3}}}, "unknown keyword 'minlength'; did you mean minLength?"),
        ({"items": [{"type": "string"}]}, "not a valid JSON Schema"),
        ({"allOf": [{"x": 1}]}, "unknown keyword 'x'"),
        ({"additionalItems": False}, "unknown keyword 'additionalItems'"),
        ({"properties": {"a": {"format": "e-mail"}}}, "unknown format 'e-mail'; did you mean email?"),
        (
            {"$schema": "http://example.com/none"},
            "unknown $schema 'http://example.com/none'; use https://json-schema.org",
        ),
        ({"$schema": "https://json-schema.org/draft/2020-21/schema"}, "unknown $schema"),
        ({"$schema": 5}, "not a valid JSON Schema"),
        ({"$defs": {"d": {"$id": "d", "$schema": "http://example.com/none"}}}, "unknown $schema"),
        ({"format": "credit-card"}, "unknown format 'credit-card'; date, date-time, time,"),
    ],
)
@pytest.mark.parametrize("kind", ["json_schema", "is_json", "contains_json"])
def test_unknown_words_of_a_schema_are_flaws(tmp_path: Path, kind: str, schema: dict[str, Any], words: str) -> None:
    assert words in the_flaw(write_suite(tmp_path, checked_by({"kind": kind, "schema": schema})))


def test_words_of_the_draft_and_of_the_users_own_are_known(tmp_path: Path) -> None:
    words = {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"d": {"type": "string"}}}
    schema = {**words, "properties": {"a": {"$ref": "#/definitions/d"}, "x": {"title": "t"}}, "x-mine": 1}
    assert examine(write_suite(tmp_path, checked_by({"kind": "is_json", "schema": schema}))).flaws == ()


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("date-time", "2024-02-29T10:00:00Z", "2024-02-29 10:00"),
        ("time", "10:00:00+02:00", "25:00:00Z"),
        ("email", "a@b.c", "a b@c"),
        ("hostname", "a-b.example", "-a.example"),
        ("ipv4", "127.0.0.1", "127.0.0.256"),
        ("ipv6", "::1", "::g"),
        ("regex", "a+", "("),
        ("uri", "https://a.example/x", "a.example"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
    ],
)
def test_a_format_is_checked(name: str, good: str, bad: str) -> None:
    schema = {"properties": {"a": {"format": name}}}
    assert [check("is_json", "", f'{{"a": "{text}"}}', schema=schema).passed for text in (good, bad)] == [True, False]
    assert check("is_json", "", '{"a": 5}', schema=schema).passed


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"kind": "contains", "value": "x", "schema": {}}, "does not use schema"),
        ({"kind": "regex", "value": "x", "schema_file": "s.json"}, "does not use schema_file"),
        ({"kind": "contains", "value": "x", "golden_path": "g.txt"}, "does not use golden_path"),
        ({"kind": "is_json", "value": '{"type": "object"}'}, "does not use value"),
        ({"kind": "is_json", "schema": {}, "schema_file": "s.json"}, "does not use both schema and schema_file"),
    ],
)
def test_what_a_check_does_not_use_is_wrong(tmp_path: Path, wrong: dict[str, Any], words: str) -> None:
    assert words in the_flaw(write_suite(tmp_path, checked_by(wrong)))
