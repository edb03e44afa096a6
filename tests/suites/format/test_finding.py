"""Suites are found in files and folders."""

import os
import subprocess
from pathlib import Path

import pytest

from muster.domain.errors import BadArgument, BadFile, NotFound
from muster.suites.format.discovery import MAX_OTHER_FILES, find_suites
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
    write(tmp_path, '{"x": {"schema_version": 1, "cases": []}}', "nested.json")
    write(tmp_path, '{"x": {"schema_version": 1, "cases": []}}', "nested.yaml")
    write(tmp_path, "x: {schema_version: 1, cases: []}\nschemaVersion: 2\n", "other.yaml")
    write(tmp_path, "text: |\n  schema_version: 1\nlist:\n- cases\n- schema_version: 1\n", "text.yaml")
    write(tmp_path, "- schema_version: 1\n- [{cases: []}]\n- cases\n", "list.yaml")
    write(tmp_path, "country: x\ncases: 12\n", "covid.yaml")
    write(tmp_path, "country: x\ncases: [12, 15]\n", "covid-days.yaml")
    write(tmp_path, "cases = 12\n", "covid.toml")
    write(tmp_path, "Cases: [{id: 1, name: x}]\n", "crates.yaml")
    write(tmp_path, "schema_version: 1\n", "more.yaml.bak")
    write(tmp_path, "schema_version is a word\n", "notes.yaml.txt")
    write(tmp_path, '{"input": "x", "expected": "y"}\n', "cases.jsonl")
    write(tmp_path, "x", "cases.csv")
    write(tmp_path, "{{ template }}\nsome: cases\n", "template.yaml")
    write(tmp_path, "x: " + "[" * 200_000 + " cases", "deep.yaml")
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
        ("flow.yaml", "{schema_version: 1, skill_or_agent: t, cases: [{id: t/one}]}"),
        ("flow-lines.yaml", "# mine\n{\n  name: x,\n  'cases': []\n}\n"),
        ("cut-off.yaml", "{name: x, cases: [\n"),
        ("explicit.yaml", "name: x\n? cases\n: []\n"),
        ("anchored.yaml", "name: x\n&a cases: []\n"),
        ("tagged.yaml", "name: x\n!!str cases: []\n"),
        ("returns.yaml", "name: x\rcases: []\r"),
        ("capitals.yaml", "Schema_Version: 1\nSkill_Or_Agent: s\nCases: []\n"),
        ("humps.yaml", "schemaVersion: 1\nskillOrAgent: s\nmyCases: []\n"),
        ("second.yaml", "name: x\n---\nschema_version: 1\n"),
        ("large.yaml", "x: [cases]\n" * 50_000 + "schema_version: 1\n"),
        ("broken.yaml", "name: [\nschema_version: 1\n"),
        ("capitals.toml", "Schema_Version = 1\n[[Cases]]\n"),
        ("escaped.toml", '"schema\\u005fversion" = 1\n[x]\n"cases" = 1\n'),
        ("broken.toml", "schema_version = 1\nx = [\n"),
        ("capital.yaml", "Cases:\n- id: s/one\n  input: {messages: []}\n"),
        ("capital.toml", "[[Cases]]\nid = 's/one'\n[Cases.input]\n"),
        ("nothing.yaml", "x: 1\ncases:\n"),
        ("mapping.yaml", "cases: {id: s/one}\n"),
        ("several.yaml", "- schema_version: 1\n  cases: []\n"),
    ],
)
def test_whatever_looks_like_a_suite_is_one(tmp_path: Path, name: str, text: str | bytes) -> None:
    write(tmp_path, text, name)
    assert found_in(tmp_path, "") == [name]


@pytest.mark.parametrize(
    ("name", "other"),
    [
        *(("cases.ymal", "cases.yaml"), ("deep/Cases.yaml.txt", "Cases.yaml"), ("cases.json5", "cases.yaml")),
        *(("refunds.ymal", "refunds.yaml"), ("refunds.yml.txt", "refunds.yml"), ("cases.jsonl", "cases.yaml")),
    ],
)
def test_a_suite_with_a_misspelt_end_of_its_name_is_refused(tmp_path: Path, name: str, other: str) -> None:
    write(tmp_path, "", "good/cases.yaml")
    write(tmp_path, '{"schema_version": 1, "skill_or_agent": "s", "cases": []}', name)
    with pytest.raises(BadFile, match="looks like a suite, and the name of a suite must end in") as caught:
        find_suites([tmp_path])
    assert caught.value.suggestions == (f"rename it to {other}",)


@pytest.mark.parametrize("name", ["cases.json", "deep/Cases.JSON", "refunds.json"])
def test_a_suite_that_is_called_json_is_refused_with_the_name_that_it_needs(tmp_path: Path, name: str) -> None:
    write(tmp_path, "", "cases.yaml")
    write(tmp_path, '{"schema_version": 1, "skill_or_agent": "s", "cases": []}', name)
    with pytest.raises(BadFile, match="looks like a suite, and the name of a suite must end in") as caught:
        find_suites([tmp_path])
    assert caught.value.suggestions == (f"rename it to {Path(name).stem}.yaml: JSON is YAML too",)


@pytest.mark.parametrize(
    "text",
    [
        '{"schema_version": 1, "cases": []}',
        '{"schemaVersion": 1, "Cases": []}',
        f'{{"x": "{"x" * 100_000}", "skill_or_agent": "s", "cases": []}}',
        '{"schema_version": 1, "cases": [',
        '[{"schema_version": 1, "cases": []}]',
    ],
)
def test_json_with_cases_beside_a_version_or_a_name_looks_like_a_suite(tmp_path: Path, text: str) -> None:
    write(tmp_path, "", "cases.yaml")
    write(tmp_path, text, "more.json")
    with pytest.raises(BadFile, match="looks like a suite"):
        find_suites([tmp_path])


@pytest.mark.parametrize("name", ["cases.yaml", "deep/Cases.toml", "cases.json"])
def test_what_has_the_name_of_a_suite_and_cannot_be_read_is_an_error(tmp_path: Path, name: str) -> None:
    write(tmp_path, "schema_version: 1\n", "good.yaml")
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
    place.symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadFile, match="has the name of a suite, and is a link to what does not exist"):
        find_suites([tmp_path])
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(BadFile, match="has the name of a suite, and is not a regular file"):
        find_suites([tmp_path])


def test_linked_folders_are_searched_once(tmp_path: Path) -> None:
    write(tmp_path, "", "elsewhere/cases.yaml")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "one").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "here" / "two").symlink_to(tmp_path / "elsewhere")
    assert found_in(tmp_path, "here") == ["here/one/cases.yaml"]


@pytest.mark.parametrize("name", ["refunds.yaml", "deep/suites", "refunds.toml"])
def test_a_link_to_nowhere_that_may_stand_for_suites_is_an_error(tmp_path: Path, name: str) -> None:
    write(tmp_path, "", "cases.yaml")
    (tmp_path / "deep").mkdir()
    for harmless in ("deep/.#more.yaml", "data.csv", "page.json"):
        (tmp_path / harmless).symlink_to(tmp_path / "nowhere")
    assert found_in(tmp_path, "") == ["cases.yaml"]
    (tmp_path / name).symlink_to(tmp_path / "nowhere")
    with pytest.raises(BadFile, match="may stand for suites, and is a link to what does not exist"):
        find_suites([tmp_path])


@pytest.mark.parametrize("name", [".git", ".venv", "node_modules", ".muster", "env-3.11"])
def test_folders_of_other_tools_are_left_alone(tmp_path: Path, name: str) -> None:
    write(tmp_path, "", "cases.yaml")
    write(tmp_path, "", f"deep/{name}/x/cases.yaml")
    write(tmp_path, "home = /usr/bin\n", "deep/env-3.11/pyvenv.cfg")
    write(tmp_path, "", ".#cases.yaml")
    assert found_in(tmp_path, "") == ["cases.yaml"]


def test_a_folder_with_an_empty_configuration_of_an_environment_is_searched(tmp_path: Path) -> None:
    write(tmp_path, "", "a/pyvenv.cfg")
    write(tmp_path, "", "a/cases.yaml")
    assert found_in(tmp_path, "") == ["a/cases.yaml"]


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


@pytest.mark.parametrize("options", [(), ("--index-version", "4"), ("--split-index",)])
def test_what_git_knows_is_not_ignored(tmp_path: Path, options: tuple[str, ...]) -> None:
    write(tmp_path, "build/\n*.local.yaml\nnode_modules/\n", ".gitignore")
    known = ("a/cases.yaml", "build/deep/cases.yaml", "x.local.yaml", "node_modules/cases.yaml", "build/gone.yaml")
    for name in (*known, "build/other/cases.yaml", "y.local.yaml"):
        write(tmp_path, "schema_version: 1\n", name)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--force", ".gitignore", *known[:2])
    git(tmp_path, "update-index", *options)
    git(tmp_path, "add", "--force", *known)
    (tmp_path / "build" / "gone.yaml").unlink()
    assert found_in(tmp_path, "") == ["a/cases.yaml", "build/deep/cases.yaml", "x.local.yaml"]
    assert found_in(tmp_path, "a", "build/deep") == ["a/cases.yaml", "build/deep/cases.yaml"]


def test_a_linked_worktree_has_an_index_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, "build/\n", "main/.gitignore")
    write(tmp_path, "schema_version: 1\n", "main/build/cases.yaml")
    write(tmp_path, "", "main/cases.yaml")
    git(tmp_path / "main", "init", "--quiet")
    git(tmp_path / "main", "add", "--force", ".")
    git(tmp_path / "main", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "x")
    git(tmp_path / "main", "worktree", "add", "--quiet", "../tree")
    write(tmp_path, "/own.yaml\n", "main/.git/info/exclude")
    write(tmp_path, "schema_version: 1\n", "tree/own.yaml")
    assert found_in(tmp_path, "tree") == ["tree/build/cases.yaml", "tree/cases.yaml"]


def test_an_index_that_cannot_be_read_is_an_error_where_something_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, "", "cases.yaml")
    write(tmp_path, b"DIRC\0\0\0\x02\0\0\0\x01short", ".git/index")
    assert found_in(tmp_path, "") == ["cases.yaml"]
    write(tmp_path, "build/\n", ".gitignore")
    write(tmp_path, "", "build/cases.yaml")
    with pytest.raises(BadFile, match="which of the files that git ignores it knows: the index is damaged"):
        find_suites([tmp_path])


def git(folder: Path, *arguments: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(["git", *arguments], cwd=folder, env=environment, check=True, capture_output=True)


def test_what_cannot_be_looked_into_is_told(tmp_path: Path) -> None:
    write(tmp_path, "", "cases.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(BadFile, match="may stand for suites, and is not a regular file"):
        find_suites([tmp_path])
    (tmp_path / "pipe.yaml").unlink()
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
    for number in range(MAX_OTHER_FILES + 1):
        (tmp_path / f"{number}.toml").touch()
    with pytest.raises(BadArgument, match=r"has more than 5,000 YAML and TOML files that are not suites"):
        find_suites([tmp_path])
    (tmp_path / "0.toml").unlink()
    assert found_in(tmp_path, "") == ["cases.yaml"]
