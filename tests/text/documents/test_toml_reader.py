"""TOML, read whole, with the lines of its cases."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.text.document_tree import Unreadable
from muster.text.documents.toml_reader import TomlFile
from tests.suites.format.suites import sound, the_case, write

SUITE = '''\
schema_version = 1
skill_or_agent = "greeter"

[defaults]
timeout_secs = 30
tags = ["smoke"]

[[cases]] # the first
id = "greeter/one"
description = """
[[cases]]
""" # no case begins in a string

  [cases.input]
  context = { since = 2024-01-01, at = 12:30:00 }
  [[cases.input.messages]]
  role = "user"
  content = 'Say """ and [[cases]]'
  [[cases.expected.output]]
  kind = "contains"
  value = "Hello"

[[ "cases" ]]
id = "greeter/two"
input.messages = [{ role = "model", content = "Hi" }]
expected.output = [{ kind = "equals", value = "Hi" }]
'''


def lines(folder: Path, text: str) -> list[int]:
    return [line for _, line in TomlFile(write(folder, text, "cases.toml")).cases()]


def refusal(folder: Path, text: str) -> tuple[int | None, str]:
    with pytest.raises(Unreadable) as caught:
        TomlFile(write(folder, text, "cases.toml")).head()
    return caught.value.line, caught.value.message


def test_a_suite_in_toml_is_a_suite(tmp_path: Path) -> None:
    path = write(tmp_path, SUITE, "cases.toml")
    assert sound(path).cases == 2
    assert lines(tmp_path, SUITE) == [8, 23]


def test_the_lines_of_keys_are_known(tmp_path: Path) -> None:
    found = TomlFile(write(tmp_path, SUITE, "cases.toml")).head()
    assert found.lines == {"schema_version": 1, "skill_or_agent": 2, "defaults": 4, "cases": 8}


def test_moments_are_text(tmp_path: Path) -> None:
    only = SUITE.partition('[[ "cases" ]]')[0]
    found = the_case(write(tmp_path, only, "cases.toml"))
    assert found.context == {"since": "2024-01-01", "at": "12:30:00"}
    assert (found.timeout, found.tags) == (30, ("smoke",))


def test_cases_in_one_list_stand_where_the_list_stands(tmp_path: Path) -> None:
    assert lines(tmp_path, 'a = 1\ncases = [\n{ id = "a" },\n{ id = "b" },\n]\n') == [2, 2]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('a = "x\n', 1, "invalid TOML"),
        ("a = 1\na = 2\n", 2, "invalid TOML: Cannot overwrite a value"),
        ("a = [1,\n", 2, "invalid TOML"),
        ("a = 1\ncases = 5\n", 2, "cases must be a list: begin each item with [[cases]]"),
        ("a = " + "[" * 5000, None, "RecursionError"),
        ("a = " + "9" * 5000, None, "digits"),
    ],
)
def test_what_is_no_toml_is_refused(tmp_path: Path, text: str, line: int | None, words: str) -> None:
    found, message = refusal(tmp_path, text)
    assert words in message
    assert found == line


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a = [1,\n", (2, 1)),
        ("a = [1,", (1, 8)),
        ("b = 1\na = ", (2, 5)),
        ('a = """x\ny', (2, 2)),
        ("a = 1\na = 2", (2, 6)),
    ],
)
def test_what_ends_too_early_is_told_with_line_and_column(tmp_path: Path, text: str, place: tuple[int, int]) -> None:
    with pytest.raises(Unreadable) as caught:
        TomlFile(write(tmp_path, text, "cases.toml")).head()
    assert (caught.value.line, caught.value.column) == place


texts = st.sampled_from(
    [
        'x = "[[cases]]"',
        "x = '[[cases]] # \"'",
        'x = """\n[[cases]]\n"""',
        'x = """a\\"""\n[[cases]]\n""""',
        "x = '''\n[[cases]]\n\"\"\"'''",
        "x = '''a'' '''",
        'x = """"quoted"""""',
        "x = [\n1, # ]\n2]",
        "# [[cases]] '''",
        "[cases.t]\ny = '''\n'''",
        "[[cases.list]]\nz = 1",
    ]
)


@given(st.lists(st.lists(texts, max_size=3, unique=True), min_size=1, max_size=5))
def test_cases_are_found_between_strings_of_all_kinds(
    tmp_path_factory: pytest.TempPathFactory, cases: list[list[str]]
) -> None:
    text, expected = "", []
    for case in cases:
        expected.append(text.count("\n") + 1)
        # One key may stand there once only, and what is in a table comes after the rest.
        keyed = [part for part in case if part.startswith("x")][:1]
        text += "\n".join(["[[cases]]", *keyed, *(part for part in case if not part.startswith("x"))]) + "\n"
    assert lines(tmp_path_factory.getbasetemp(), text) == expected
