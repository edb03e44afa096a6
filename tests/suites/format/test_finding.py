"""Suites are found in files and folders."""

import os
from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.suites.format.discovery import MOST_OTHERS, find_suites
from tests.suites.format.suites import write


def found_in(folder: Path, *paths: str) -> list[str]:
    return [file.relative_to(folder).as_posix() for file in find_suites([folder / path for path in paths])]


def test_a_folder_gives_its_suites_in_order(tmp_path: Path) -> None:
    write(tmp_path, "broken: [", "b/cases.yaml")
    write(tmp_path, "", "a/deep/cases.toml")
    write(tmp_path, "", "c/cases.yml")
    write(tmp_path, "x: 1\nschema_version: 1\n", "c/extra.yaml")
    write(tmp_path, "schema_version = 1\n", "c/more.toml")
    write(tmp_path, '{\n  "schema_version": 1}\n', "c/json.yaml")
    write(tmp_path, '{"schema_version": 1}\n', "c/line.yml")
    assert found_in(tmp_path, "") == [
        "a/deep/cases.toml",
        "b/cases.yaml",
        "c/cases.yml",
        "c/extra.yaml",
        "c/json.yaml",
        "c/line.yml",
        "c/more.toml",
    ]


def test_other_files_are_none_of_it(tmp_path: Path) -> None:
    write(tmp_path, "", "cases.yaml")
    write(tmp_path, "other: 1\nnested:\n  schema_version: 1\n  cases: []\n", "config.yaml")
    write(tmp_path, "# schema_version: 1\ncases_of: x\nmy cases: 1\n", "comment.yaml")
    write(tmp_path, "title = 1\n[tool.other]\ncases = [1]\nschema_version = 2\n", "pyproject.toml")
    write(tmp_path, '{"schema_version": 1, "skill_or_agent": "x", "case_ids": []}', "bundle.manifest.json")
    write(tmp_path, '{"cases": [1]}', "data.json")
    write(tmp_path, b"\xff\xfe\0", "binary.yaml")
    assert found_in(tmp_path, "") == ["cases.yaml"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("no-version.yaml", "skill_or_agent: s\ncases:\n  - id: s/one\n"),
        ("misspelt.yaml", "schema_verison: 1\ncases: []\n"),
        ("only-cases.yml", "# mine\n---\ncases:\n- id: s/one\n"),
        ("only-name.yaml", "skill_or_agent: s\ncase: []\n"),
        ("quoted.yaml", "'cases':\n- id: s/one\n"),
        ("indented.yaml", "  name: x\n  schema_version: 1\n"),
        ("line.yaml", '{"name": "x", "schema_version": 1, "cases": []}'),
        ("spread.yaml", '{\n    "name": "x",\n    "cases": [\n]}'),
        ("tables.toml", "name = 1\n[defaults]\nx = 1\n[[cases]]\nid = 's/one'\n"),
        ("wide.yaml", "schema_version: 1\ncases: []\n".encode("utf-16")),
        ("marked.yaml", b"\xef\xbb\xbfschema_version: 1\n"),
        (".hidden.yaml", "schema_version: 1\n"),
        (".hidden/cases.yaml", ""),
        (".github/suites/more.yaml", "cases: []\n"),
    ],
)
def test_whatever_looks_like_a_suite_is_one(tmp_path: Path, name: str, text: str | bytes) -> None:
    write(tmp_path, text, name)
    assert found_in(tmp_path, "") == [name]


@pytest.mark.parametrize("name", ["cases.json", "deep/Cases.JSON", "refunds.json"])
def test_a_suite_that_is_called_json_is_refused_with_the_name_that_it_needs(tmp_path: Path, name: str) -> None:
    write(tmp_path, "", "cases.yaml")
    write(tmp_path, '{"schema_version": 1, "skill_or_agent": "s", "cases": []}', name)
    with pytest.raises(BadFile, match="looks like a suite, and the name of a suite must end in") as caught:
        find_suites([tmp_path])
    assert caught.value.suggestions == (f"rename it to {Path(name).stem}.yaml: JSON is YAML too",)


def test_linked_folders_are_searched_once(tmp_path: Path) -> None:
    write(tmp_path, "", "elsewhere/cases.yaml")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "one").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "here" / "two").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "here" / "lost").symlink_to(tmp_path / "nowhere")
    assert found_in(tmp_path, "here") == ["here/one/cases.yaml"]


@pytest.mark.parametrize("name", [".git", ".venv", "node_modules", ".muster", "env-3.11"])
def test_folders_of_other_tools_are_left_alone(tmp_path: Path, name: str) -> None:
    write(tmp_path, "", "cases.yaml")
    write(tmp_path, "", f"deep/{name}/x/cases.yaml")
    write(tmp_path, "", "deep/env-3.11/pyvenv.cfg")
    write(tmp_path, "", ".#cases.yaml")
    assert found_in(tmp_path, "") == ["cases.yaml"]


def test_what_git_ignores_is_left_alone_in_a_repository(tmp_path: Path) -> None:
    names = ("a/cases.yaml", "build/x/cases.yaml", "a/old/cases.yaml", "a/tmp-1.yaml", "a/tmp-2.yaml", "x/y/out.yaml")
    for name in names:
        write(tmp_path, "schema_version: 1\n", name)
    write(tmp_path, "# made\nbuild/\n/a/tmp-[1-9].yaml\n!/a/tmp-2.yaml\nx/**/out.yaml\n", ".gitignore")
    write(tmp_path, "old/\n", "a/.gitignore")
    assert found_in(tmp_path, "") == sorted(names)  # without a repository the files say nothing
    write(tmp_path, "a/none.yaml\n", ".git/info/exclude")
    assert found_in(tmp_path, "") == ["a/cases.yaml", "a/tmp-2.yaml"]
    assert found_in(tmp_path, "build") == ["build/x/cases.yaml"]  # it was named


def test_what_cannot_be_looked_into_is_told(tmp_path: Path) -> None:
    write(tmp_path, "", "cases.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    assert found_in(tmp_path, "") == ["cases.yaml"]
    write(tmp_path, b"x" * 8_000_001, "long.yaml")
    with pytest.raises(BadFile, match="it is unknown whether it is a suite: the line is longer than"):
        find_suites([tmp_path])


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, "nothing", "any.yaml")
    assert found_in(tmp_path, "any.yaml") == ["any.yaml"]
    with pytest.raises(BadFile, match=r"must end in one of \.yaml, \.yml, \.toml"):
        find_suites([write(tmp_path, "x", "notes.txt")])


def test_what_is_named_twice_is_found_once(tmp_path: Path) -> None:
    write(tmp_path, "", "b/cases.yaml")
    write(tmp_path, "", "a/cases.yaml")
    assert found_in(tmp_path, "b/cases.yaml", "", "a") == ["b/cases.yaml", "a/cases.yaml"]


def test_a_link_to_a_folder_above_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path, "", "a/cases.yaml")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    assert found_in(tmp_path, "") == ["a/cases.yaml"]


def test_nothing_found_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no cases\.yaml, and no other YAML or TOML file") as caught:
        find_suites([tmp_path])
    assert caught.value.exit_code == 5
    write(tmp_path, "", "a/cases.yaml")
    with pytest.raises(NotFound, match=r"no such file or folder: .*nowhere"):
        find_suites([tmp_path, tmp_path / "nowhere"])


def test_the_root_of_the_file_system_is_refused_at_once() -> None:
    with pytest.raises(BadArgument, match="/ is the root of the file system"):
        find_suites([Path("/")])


def test_a_folder_with_thousands_of_other_files_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "", "cases.yaml")
    for number in range(MOST_OTHERS + 1):
        (tmp_path / f"{number}.toml").touch()
    with pytest.raises(BadArgument, match=r"has more than 5,000 YAML and TOML files that are not suites"):
        find_suites([tmp_path])
    (tmp_path / "0.toml").unlink()
    assert found_in(tmp_path, "") == ["cases.yaml"]
