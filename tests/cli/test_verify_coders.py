"""`muster verify --fix --agent CODER` with coders that cheat: what they change about the checkers counts for nothing.

More of what they may touch is in tests/verify/findings/test_repair_review.py.
"""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.variants import first_of

from .test_verify_agent_fix import hire, users_files
from .verify_home import VerifyHome, home

__all__ = ["home"]

# A checker with a setting, a list of files to skip, and a word that silences it, like those that people use.
LINT = """
import json, pathlib, sys, tomllib
import words
top = pathlib.Path(".")
found, config = [], {}
for name in ("pyproject.toml", "ruff.toml", "src/ruff.toml"):
    if (top / name).exists():
        config |= tomllib.loads((top / name).read_text()).get("lint", {})
skipped = (top / ".lintignore").read_text().split() if (top / ".lintignore").exists() else []
for name in sys.argv[1:]:
    for number, line in enumerate(pathlib.Path(name).read_text().splitlines(), 1):
        if any(word in line for word in words.WORDS) and config.get("select") == ["F"] and name not in skipped:
            if "# noqa" not in line:
                found.append({"file": name, "line": number, "severity": "high", "finding": "there is BAD here"})
print(json.dumps({"findings": found}))
"""


def linter(*command: str) -> dict[str, Any]:
    command = command or (sys.executable, "-B", "-S", "tools/lint.py", "{files}")
    return {"name": "lint", "wave": 1, "kind": "command", "command": list(command), "parser": "json"}


@pytest.fixture
def shop(home: VerifyHome) -> VerifyHome:
    """A repository with two bad files and a linter of its own."""
    write = home.repository.write
    write("tools/lint.py", LINT)
    write("tools/words.py", 'WORDS = ["BAD"]\n')
    write("pyproject.toml", '[lint]\nselect = ["F"]\n')
    write("src/one.py", "x = BAD\n")
    write("src/two.py", "y = BAD\n")
    home.declare(linter())
    home.repository.commit()
    return home


OFF = """printf '[lint]\\nselect = ["E9"]\\n' """
EMPTY = """printf 'print("{\\\\"findings\\\\": []}")\\n'"""

CHEATS = {
    "selects other rules": (f"{OFF} > pyproject.toml", "pyproject.toml"),
    "adds a configuration that git ignores": (
        f"echo '# z' >> src/one.py; echo ruff.toml >> $(git rev-parse --git-common-dir)/info/exclude;{OFF} > ruff.toml",
        "",
    ),
    "replaces the folder of the checker": (
        f"echo '# z' >> src/one.py; mv tools other; ln -s other tools; {EMPTY} > other/lint.py",
        "tools",
    ),
    "commits and takes the commit back": (
        f"echo '# z' >> src/one.py; {OFF} > pyproject.toml; git -c user.name=c -c user.email=c@c commit -qam x;"
        "git checkout -q HEAD~1 pyproject.toml",
        "pyproject.toml",
    ),
    "silences the lines": ("sed -i 's/BAD/BAD  # noqa/' src/*.py", "src/one.py"),
}


@pytest.mark.parametrize("cheat", first_of(CHEATS, 2))
def test_a_coder_that_changes_what_verifies_is_no_success(shop: VerifyHome, cheat: str) -> None:
    script, named = CHEATS[cheat]
    hire(shop, script)
    before = users_files(shop)
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    assert found.code == 1, found
    fix = found.envelope()["data"]["fix"]
    assert named in fix.get("obstacle", "")
    assert (fix["apart"] is None) is (named in ("", "src/one.py"))
    assert users_files(shop) == before


TOUCH = "sed -i 's/BAD/BAD # z/' src/one.py"
REPLACED = f"""{TOUCH}; git replace $(git rev-parse HEAD:tools/lint.py) $({EMPTY} | git hash-object -w --stdin)"""
MANY_TAGS = f'{REPLACED}; for n in $(seq 250); do echo "create refs/a/$n HEAD"; done | git update-ref --stdin'

GIT_CHEATS = {
    "replaces the object of the checker": (REPLACED, "refs/replace/"),
    "hides that among other refs": (MANY_TAGS, "refs/replace/"),
}


@pytest.mark.parametrize("cheat", first_of(GIT_CHEATS))
def test_what_git_is_told_to_read_in_place_of_files_is_no_success(shop: VerifyHome, cheat: str) -> None:
    script, named = GIT_CHEATS[cheat]
    hire(shop, script)
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    data = found.envelope()["data"]
    assert found.code == 1, found
    assert named in data["fix"]["obstacle"]
    assert data["ok"] is False, "the checker was not run as it was"


@pytest.mark.parametrize("place", first_of(["ignored by git", "elsewhere"]))
def test_a_program_of_a_checker_that_no_commit_has_is_compared(
    shop: VerifyHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """More of what is compared is in tests/verify/agents/test_checker_programs.py."""
    here = tmp_path / "programs" if place == "elsewhere" else shop.folder / ".venv/bin"
    install(here)
    shop.repository.write(".gitignore", ".venv\n.muster\n")
    shop.declare(linter(*((sys.executable, "-B", f"{here}/lint.py") if place == "elsewhere" else ("lint",)), "{files}"))
    shop.repository.commit()
    monkeypatch.setenv("PATH", f"{here}:{os.environ['PATH']}")
    changed = here / ("lint.py" if place == "elsewhere" else "lint")
    hire(shop, f"{TOUCH}; echo 'WORDS = []' > {here}/words.py; {{ head -1 {here}/lint; {EMPTY}; }} > {changed}")
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    assert found.code == 1, found
    said = f"coder changed what the commands of checkers name outside of the repository: {changed}, {here}/words.py"
    assert found.envelope()["data"]["fix"]["obstacle"] == said


def install(folder: Path) -> None:
    """Put the linter into a folder that is no part of a repository, as a script and as a program."""
    folder.mkdir(parents=True)
    (folder / "words.py").write_text('WORDS = ["BAD"]\n')
    (folder / "lint.py").write_text(LINT)
    (folder / "lint").write_text(f"#!{sys.executable} -B\n{LINT}")
    (folder / "lint").chmod(0o755)


def test_a_repair_beside_programs_that_stay_as_they_are_is_a_success(
    shop: VerifyHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path / "programs")
    shop.declare(linter("lint", "{files}"))
    shop.repository.commit()
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:{os.environ['PATH']}")
    hire(shop, "sed -i s/BAD/GOOD/ src/*.py; lint src/one.py")
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    assert (found.code, found.data()["fix"].get("obstacle")) == (0, None)


def test_what_was_restored_is_shown_apart_and_the_rest_is_verified_by_the_checker_as_it_was(shop: VerifyHome) -> None:
    hire(shop, f"sed -i s/BAD/GOOD/ src/*.py; {OFF} > pyproject.toml")
    found = shop.verify("src", "--fix", "--agent", "coder", "--name", "nightly")
    assert found.code == 1
    assert "coder changed what decides about the verification: pyproject.toml" in found.err
    told, _, apart = found.out.partition("restored, since it decides what is found")
    assert ("+x = GOOD" in told, "E9" in told, '+select = ["E9"]' in apart) == (True, False, True)
    assert "it is not accepted; its work is on muster/task-" in apart
    assert "task merge" not in found.out
    branch = apart.rpartition("on ")[2].strip()
    assert "E9" not in shop.repository.git("show", f"{branch}:pyproject.toml")
    again = shop.verify("resume", "nightly", "--json")  # what was restored is still no success
    assert again.code == 1
    assert "pyproject.toml" in again.envelope()["data"]["fix"]["obstacle"]
    assert "E9" in again.envelope()["data"]["fix"]["apart"]


def test_a_repair_in_other_files_than_those_with_findings_is_no_success(shop: VerifyHome) -> None:
    hire(shop, "echo more > notes.txt")
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    assert found.code == 1
    assert found.envelope()["data"]["fix"]["obstacle"] == "coder changed no file with a finding"


def test_a_key_that_a_coder_writes_or_says_is_printed_by_no_command(shop: VerifyHome) -> None:
    key = "AKIA" + "Q7RJ2M5XZT4KW9PB"
    shown = "echo '{" + f'"result": "the key is {key}", "cost": 0.1' + "}'; exit 0"
    wrote = f"echo 'KEY = \"{key}\"' >> src/one.py; echo '# {key}' >> pyproject.toml; echo x > {key}.txt"
    hire(shop, f"sed -i s/BAD/GOOD/ src/*.py; {wrote}; {shown}")
    told = [shop.verify("src", "--fix", "--agent", "coder", *options) for options in ((), ("--json",))]
    assert all("[redacted:" in one.out for one in told)
    commands = (("diff", "last"), ("result", "last"), ("list",), ("logs", "last"))
    told += [shop.muster("task", *words, *more) for words in commands for more in ((), ("--json",))]
    task = next(run["id"] for run in shop.runs() if run["workload"] == "task")
    parts: tuple[tuple[str, ...], ...] = ((), ("--calls", "--events"), ("--call", "work/000"))
    told += [shop.muster("runs", "show", task, *part, *more) for part in parts for more in ((), ("--json",))]
    assert [one.code for one in told[2:]] == [0] * 14
    assert key not in "".join(one.out + one.err for one in told)
    shop.muster("runs", "export", task, "--output", "export.jsonl")
    assert key in (shop.folder / "export.jsonl").read_text(), "the store keeps what was said"


def test_a_key_in_the_error_of_a_task_is_printed_by_no_command(shop: VerifyHome) -> None:
    key = "AKIA" + "Q7RJ2M5XZT4KW9PB"
    hire(shop, f"echo 'the key is {key}' >&2; exit 3")
    told = [shop.verify("src", "--fix", "--agent", "coder", *options) for options in ((), ("--json",))]
    task = next(run["id"] for run in shop.runs() if run["workload"] == "task")
    parts: tuple[tuple[str, ...], ...] = ((), ("--calls", "--events"), ("--call", "work/000"))
    told += [shop.muster("runs", "show", task, *part, *more) for part in parts for more in ((), ("--json",))]
    assert "[redacted:" in told[-1].out
    assert key not in "".join(one.out + one.err for one in told)


def test_a_repair_that_needs_other_files_is_left_to_a_person(shop: VerifyHome) -> None:
    """The checker reads its words from a file that no list can know."""
    shop.repository.write("tools/words.py", 'WORDS = open("data/words.txt").read()[::-1].split()\n')
    shop.repository.write("data/words.txt", "DAB\n")
    shop.repository.commit()
    hire(shop, "echo '# touched' >> src/one.py; echo '# touched' >> src/two.py; echo ESROW > data/words.txt")
    found = shop.verify("src", "--fix", "--agent", "coder", "--name", "nightly", "--json")
    fix = found.envelope()["data"]["fix"]
    assert (found.code, fix["obstacle"]) == (
        1,
        "the findings are gone only together with changes to data/words.txt, which could decide what is found: "
        "look at them, then merge",
    )
    assert ("+ESROW" in fix["elsewhere"], "+ESROW" in fix["diff"], fix["apart"]) == (True, False, None)
    assert shop.repository.git("show", f"{fix['branch']}:data/words.txt") == "ESROW\n"
    again = shop.verify("resume", "nightly")
    assert again.code == 1
    assert "gone only together with changes to data/words.txt" in again.err
    assert "changed besides the files with findings:" in again.out
    assert len([run for run in shop.runs() if run["workload"] == "waves"]) == 3  # nothing was verified once more


def test_other_changes_that_are_not_needed_are_shown_apart_after_a_success(shop: VerifyHome) -> None:
    hire(shop, "sed -i s/BAD/GOOD/ src/*.py; echo more > notes.txt")
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    assert found.code == 0, found
    fix = found.envelope()["data"]["fix"]
    assert ("+x = GOOD" in fix["diff"], "+more" in fix["elsewhere"]) == (True, True)
    trees = shop.folder / ".muster/worktrees"
    assert [path.name for path in trees.iterdir()] == [f"task-{fix['task']}"]  # those of verifications are gone
    assert shop.repository.git("worktree", "list").count("fixed-") == 0


def test_the_tree_of_a_verification_is_prepared_as_that_of_the_task_was(shop: VerifyHome) -> None:
    shop.repository.write("tools/words.py", 'WORDS = open("made/words.txt").read().split()\n')
    shop.repository.write(".gitignore", ".muster/\nmade/\n")
    shop.repository.commit()
    shop.repository.write("made/words.txt", "BAD\n")
    hire(shop, "echo '# touched' >> src/one.py; echo WORSE > made/words.txt")
    path = shop.folder / "muster.toml"
    path.write_text(f"{path.read_text()}\n[pool]\nsetup = [\"sh -c 'mkdir -p made && echo BAD > made/words.txt'\"]\n")
    found = shop.verify("src", "--fix", "--agent", "coder", "--json")
    assert found.code == 1
    assert len(found.envelope()["data"]["findings"]) == 2, found  # by the words that the setup made
