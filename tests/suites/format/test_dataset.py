"""Rows become cases."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.suites.format.suite import open_suite
from muster.suites.format.variables import rows
from muster.text.document_tree import Unreadable
from tests.suites.format.suites import a_case, asking, checked_by, flaws, sound, the_flaw, write, write_suite

CITIES = 'city,question\nBern,Where is Bern?\nLyon,"Where, pray,\nis Lyon?"\n'


def rows_of(folder: Path, text: str | bytes, name: str = "rows.csv") -> list[tuple[int, int, Any]]:
    return [(row.number, row.line, row.values) for row in rows(write(folder, text, name))]


def with_rows(folder: Path, text: str | bytes, case: dict[str, Any], name: str = "rows.jsonl") -> Path:
    write(folder, text, name)
    return write_suite(folder, {**case, "dataset": {"file": name, **case.get("dataset", {})}})


def test_every_row_becomes_a_case(tmp_path: Path) -> None:
    write(tmp_path, CITIES, "rows.csv")
    case = asking("{{question}}", dataset={"file": "rows.csv", "id": "city"}, tags=["{{city}}"])
    bern, lyon = open_suite(write_suite(tmp_path, case)).cases()
    assert (bern.id, bern.messages[0].text, bern.tags) == ("greeter/one/Bern", "Where is Bern?", ("Bern",))
    assert (lyon.id, lyon.messages[0].text) == ("greeter/one/Lyon", "Where, pray,\nis Lyon?")
    assert (bern.line, lyon.line) == (4, 4)


def test_rows_without_a_name_are_numbered(tmp_path: Path) -> None:
    path = with_rows(tmp_path, '{"a": 1}\n\n{"a": 2}\n', asking("{{a}}"))
    assert [case.id for case in open_suite(path).cases()] == ["greeter/one/1", "greeter/one/2"]


def test_a_dataset_may_be_named_alone(tmp_path: Path) -> None:
    write(tmp_path, CITIES, "rows.csv")
    assert sound(write_suite(tmp_path, a_case(dataset="rows.csv"))).cases == 2


def test_csv_rows_know_the_lines_on_which_they_end(tmp_path: Path) -> None:
    found = rows_of(tmp_path, b"\xef\xbb\xbf" + CITIES.replace("\n", "\r\n").encode())
    assert [(number, line) for number, line, _ in found] == [(1, 2), (2, 4)]
    assert found[0][2] == {"city": "Bern", "question": "Where is Bern?"}


def test_values_that_are_no_text_are_spelled_as_json(tmp_path: Path) -> None:
    row = {"n": 1, "f": 1.5, "t": True, "l": ["ä", {"a": None}]}
    path = with_rows(tmp_path, json.dumps(row), asking("{{n}} {{f}} {{t}} {{l}}"))
    (found,) = open_suite(path).cases()
    assert found.messages[0].text == '1 1.5 true ["ä", {"a": null}]'


def test_columns_go_before_variables_of_the_case_and_of_the_suite(tmp_path: Path) -> None:
    write(tmp_path, '{"c": "row"}\n', "rows.jsonl")
    case = asking("{{a}} {{b}} {{c}}", dataset="rows.jsonl", variables={"b": "case", "c": "case"})
    path = write_suite(tmp_path, case, variables={"a": "suite", "b": "suite", "c": "suite"})
    (found,) = open_suite(path).cases()
    assert found.messages[0].text == "suite case row"


@pytest.mark.parametrize(
    ("text", "name", "line", "words"),
    [
        ("", "rows.csv", 1, "first line with the names of the columns is missing"),
        ("a,a\n", "rows.csv", 1, "every column needs a unique name"),
        ("a,\n", "rows.csv", 1, "every column needs a unique name"),
        ("a,b\n1\n", "rows.csv", 2, "this row has 1 cells, but there are 2 columns"),
        ('a,b\n1,"2\n', "rows.csv", 2, "not valid CSV"),
        ("a\n" + "x" * 200_000 + "\n", "rows.csv", 2, "use JSONL for longer texts"),
        (b"a\n\xff\n", "rows.csv", 2, "not UTF-8"),
        (b"a\nx\0\n", "rows.csv", 2, "a NUL character"),
        ('{"a": 1}\n{"a":\n', "rows.jsonl", 2, "not valid JSON"),
        ("[1]\n", "rows.jsonl", 1, "a row must be an object"),
        (b'{"a": "\xff"}\n', "rows.jsonl", 1, "not valid JSON"),
        ("[" * 100_000, "rows.ndjson", 1, "not valid JSON"),
        ("x" * 8_000_001, "rows.jsonl", 1, "the line is longer than 8,000,000 bytes"),
        ("a", "rows.txt", None, "a dataset must be one of .csv, .jsonl, .ndjson"),
    ],
)
def test_rows_that_cannot_be_read_are_refused(
    tmp_path: Path, text: str | bytes, name: str, line: int | None, words: str
) -> None:
    with pytest.raises(Unreadable) as caught:
        rows_of(tmp_path, text, name)
    assert words in caught.value.message
    assert caught.value.line == line


def test_a_broken_row_is_told_where_the_dataset_is_named(tmp_path: Path) -> None:
    path = with_rows(tmp_path, '{"a": 1}\n{\n', asking("{{a}}"))
    ((line, case, message),) = flaws(path)
    assert (line, case) == (4, "greeter/one")
    assert message.startswith("dataset: rows.jsonl:2: not valid JSON")


@pytest.mark.parametrize(("text", "words"), [("", "has no rows"), ("\n\n", "has no rows")])
def test_a_dataset_without_rows_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in the_flaw(with_rows(tmp_path, text, a_case()))


def test_a_dataset_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert the_flaw(write_suite(tmp_path, a_case(dataset="no.csv"))).startswith("dataset: there is no file no.csv")
    assert "may not be named" in the_flaw(write_suite(tmp_path, a_case(dataset="../rows.csv")))


def test_each_row_is_checked_for_what_it_brings(tmp_path: Path) -> None:
    text = "\n".join(
        json.dumps(row)
        for row in (
            {"id": "fine", "a": "x"},
            {"id": "lacks"},
            {"id": "null", "a": None},
            {"a": "no id"},
            {"id": "fine", "a": "again"},
            {"id": "long" * 60, "a": "x"},
            {"id": "a\tb", "a": "x"},
            {"id": "empty", "a": "y", "tag": ""},
        )
    )
    case = asking("{{a}}", dataset={"id": "id"}, tags=["{{tag}}"], variables={"tag": "t"})
    found = flaws(with_rows(tmp_path, text, case))
    assert [(case.rpartition("/")[2][:8], message.partition(": ")[0]) for _, case, message in found] == [
        ("lacks", "rows.jsonl:2"),
        ("null", "rows.jsonl:3"),
        ("4", "rows.jsonl:4"),
        ("fine", "id"),
        ("longlong", "rows.jsonl:6"),
        ("a\tb", "rows.jsonl:7"),
        ("empty", "rows.jsonl:8"),
    ]
    assert "input.messages[0].content: unknown variable 'a' (known: tag)" in found[0][2]


def test_patterns_of_every_row_are_tried(tmp_path: Path) -> None:
    check = {"kind": "regex", "value": "^{{p}}$"}
    same = {"kind": "regex", "value": "("}
    path = with_rows(tmp_path, '{"p": "a"}\n{"p": "("}\n{"p": "b"}\n', checked_by(check, same))
    # The broken pattern that all rows share makes each of them an error.
    assert [case.rpartition("/")[2] for _, case, _ in flaws(path)] == ["1", "2", "2", "3"]


def test_what_rows_bring_is_bounded(tmp_path: Path) -> None:
    text = json.dumps({"a": "x" * 1_000_000})
    path = with_rows(tmp_path, text, asking("{{a}}" * 9))
    assert "more than 8,000,000 characters" in the_flaw(path)


def test_many_rows_are_given_one_by_one(tmp_path: Path) -> None:
    lines = [json.dumps({"a": index}) for index in range(2000)]
    cases = open_suite(with_rows(tmp_path, "\n".join([*lines, "broken"]), asking("{{a}}"))).cases()
    assert [next(cases).messages[0].text for _ in range(2000)] == [str(index) for index in range(2000)]


cells = st.text(max_size=12).filter(lambda cell: "\0" not in cell)


@given(st.lists(st.tuples(cells, cells), min_size=1, max_size=5))
def test_what_csv_writers_write_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, table: list[tuple[str, str]]
) -> None:
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *table])
    folder = tmp_path_factory.getbasetemp()
    assert [tuple(values.values()) for _, _, values in rows_of(folder, text.getvalue())] == table
