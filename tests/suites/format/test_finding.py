"""Suites are found in files and folders."""

from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.suites.format.reading import MOST_OTHERS, find_suites
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
    write(tmp_path, "other: 1\nnested:\n  schema_version: 1\n", "config.yaml")
    write(tmp_path, "# schema_version: 1\n", "comment.yaml")
    write(tmp_path, '{"schema_version": 1}', "bundle.manifest.json")
    write(tmp_path, "schema_version: 1", ".hidden/cases.yaml")
    write(tmp_path, "schema_version: 1", ".hidden.yaml")
    write(tmp_path, b"\xff\xfe\0", "binary.yaml")
    assert found_in(tmp_path, "") == ["cases.yaml"]


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
