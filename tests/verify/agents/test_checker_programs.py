"""What the commands of checkers name and no commit has: found before an agent works, compared afterwards."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from muster.git.repository_changes import changes_between
from muster.pool.watched import MAX_FILES, watched_state
from muster.verify.agents.checker_programs import CheckerHome, outside_files
from muster.verify.declaration.verification import Kind, Verifier

# By its name: the command, its environment, and what is done. HERE is a folder with programs.
CHEATS: dict[str, tuple[tuple[str, ...], dict[str, str], Callable[[Path], Path]]] = {
    "a script": (("sh", "HERE/lint.py", "{files}"), {}, lambda here: written(here / "lint.py")),
    "a module beside a script": (("sh", "HERE/lint.py"), {}, lambda here: written(here / "json.py")),
    "a package beside a script": (("sh", "HERE/lint.py"), {}, lambda here: written(here / "json/__init__.py")),
    "a program": (("lint", "{files}"), {}, lambda here: written(here / "lint")),
    "a program earlier on PATH": (("lint",), {}, lambda here: program(here / "first/lint")),
    "a module beside a program": (("lint",), {}, lambda here: written(here / "json.py")),
    "what runs a program": (("lint",), {}, lambda here: written(here / "python3")),
    "a program that is no longer executable": (("lint",), {}, lambda here: idle(here / "lint")),
    "a link to another program": (("lint",), {}, lambda here: linked(here / "lint", here / "copy")),
    "what a shell runs": (("sh", "-c", "cd src && HERE/lint ."), {}, lambda here: written(here / "lint")),
    "what a shell finds on PATH": (("sh", "-c", "cd src && lint ."), {}, lambda here: written(here / "lint")),
    "a program on a PATH of its own": (("other",), {"PATH": "HERE/more"}, lambda here: written(here / "more/other")),
    "a configuration": (("lint", "--config=HERE/rules.txt"), {}, lambda here: gone(here / "rules.txt")),
    "one in the word of an option": (("lint", "-cHERE/rules.txt"), {}, lambda here: written(here / "rules.txt")),
    "a file of arguments": (("lint", "@HERE/rules.txt"), {}, lambda here: written(here / "rules.txt")),
    "one that was not there": (("lint", "--config=HERE/new.txt"), {}, lambda here: written(here / "new.txt")),
    "one in the environment": (("lint",), {"RULES": "HERE/rules.txt"}, lambda here: written(here / "rules.txt")),
    "a folder of modules": (("lint",), {"PYTHONPATH": "/no:HERE/more"}, lambda here: written(here / "more/m.py")),
}


@pytest.mark.parametrize("place", [".venv/bin", "../programs"], ids=["ignored by git", "elsewhere"])
@pytest.mark.parametrize("cheat", CHEATS)
def test_what_is_changed_added_or_removed_is_named(tmp_path: Path, cheat: str, place: str) -> None:
    command, environment, change = CHEATS[cheat]
    here = Path(os.path.normpath(tmp_path / "shop" / place))
    install(here)
    watched = outside(tmp_path / "shop", here, command, environment)
    before = watched_state(watched)
    assert watched_state(watched) == before
    changed = change(here)
    assert [one.what for one in changes_between(before, watched_state(watched))] == [f"file {changed}"]


def test_files_that_git_knows_are_left_to_it(tmp_path: Path) -> None:
    root, here = tmp_path / "shop", tmp_path / "programs"
    install(here)
    command = ("lint", "tools/lint.py", f"{root}/tools/rules.txt", "src", ".", "..", "/", "{files}")
    assert not [path for path in outside(root, here, command, {}) if path.startswith(str(root)) or path == "/"]


def test_a_change_in_a_folder_with_too_many_files_to_read_is_noticed(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 1):
        (tmp_path / f"{number}.py").touch()
    before = watched_state([f"{tmp_path}/*.py"])
    assert list(before) == [f"file {tmp_path}"]
    assert watched_state([f"{tmp_path}/*.py"]) == before
    (tmp_path / "7.py").write_text("x")
    assert watched_state([f"{tmp_path}/*.py"]) != before


def test_caches_that_checkers_write_are_left_out(tmp_path: Path) -> None:
    for name in ("__pycache__/a.pyc", ".mypy_cache/x.json", "cache/x", "a.pyc"):
        written(tmp_path / name)
    assert watched_state([str(tmp_path)]) == {}


def outside(root: Path, here: Path, command: tuple[str, ...], environment: dict[str, str]) -> tuple[str, ...]:
    verifier = Verifier(
        name="lint",
        kind=Kind.COMMAND,
        command=tuple(word.replace("HERE", str(here)) for word in command),
        environment={name: value.replace("HERE", str(here)) for name, value in environment.items()},
    )
    listed = ("tools/lint.py", "tools/rules.txt", "src/a.py")
    return outside_files([verifier], CheckerHome(root=str(root), listed=listed, path=f"{here}/first:{here}:/bin"))


def install(here: Path) -> None:
    (here / "first").mkdir(parents=True)
    for path in (here / "lint", here / "python3", here / "copy", here / "more/other"):
        program(path)
    written(here / "lint.py")
    written(here / "rules.txt")
    (here / "lint").write_text("#!/usr/bin/env python3\n")


def written(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write("x\n")
    return path


def program(path: Path) -> Path:
    written(path).chmod(0o755)
    return path


def idle(path: Path) -> Path:
    path.chmod(0o644)
    return path


def gone(path: Path) -> Path:
    path.unlink()
    return path


def linked(path: Path, target: Path) -> Path:
    path.unlink()
    path.symlink_to(target)
    return path
