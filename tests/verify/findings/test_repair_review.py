"""What of a coder's changes counts as a repair: cheats that strangers tried, as a table, and honest repairs."""

from collections.abc import Mapping
from difflib import SequenceMatcher

import pytest

from muster.git.branch_changes import LineChanges, TreeHistory
from muster.git.saved_work import FileChange
from muster.verify.declaration.verification import Kind, Verification, Verifier
from muster.verify.findings.finding import Finding, Merged, Severity
from muster.verify.findings.repair_review import AgentChanges, RepairReview, review

RUFF = ("ruff", "check", "{files}")
PYTEST = ("pytest", "-q", "tests")
TOUCHED = {"src/a.py": "import os\n# touched\n"}
BEFORE = {"src/a.py": "import os\n", "pyproject.toml": 'select = ["F"]\n'}
FAILING = "def test_ok():\n    pass\n\n\ndef test_x():\n    assert 1 == 2\n"
TESTS = {"tests/test_a.py": FAILING, "src/a.py": "x = 1\n"}
LINK = "-> clean.py"  # a file that became a link


def reviewed(
    command: tuple[str, ...], before: Mapping[str, str], changed: Mapping[str, str | None], found: str = "src/a.py"
) -> RepairReview:
    """Return what is said of some changes, of which None is a deleted file, to a repository with one finding."""
    parser = "pytest" if command is PYTEST else "ruff"
    rule = "tests/test_a.py::test_x" if parser == "pytest" else "F401"
    spec = Verification(
        root="/shop",
        files=tuple(path for path in before if path.endswith(".py")),
        verifiers=(Verifier(name="checker", kind=Kind.COMMAND, command=command, parser=parser),),
    )
    finding = Finding(file=found, line=1, end_line=1, severity=Severity.HIGH, finding="bad", rule=rule)
    history = TreeHistory(known=frozenset(before), changed=tuple(sorted(changed)))
    files = [
        FileChange(path=path, status=_status(before, path, text), added=1, deleted=1) for path, text in changed.items()
    ]
    lines = {path: _lines(before.get(path, ""), text or "") for path, text in changed.items()}
    return review(
        "coder",
        spec,
        [Merged(finding=finding, by=("checker",))],
        AgentChanges(history=history, files=files, lines=lines),
    )


def _status(before: Mapping[str, str], path: str, text: str | None) -> str:
    return "D" if text is None else "T" if text == LINK else "M" if path in before else "A"


def _lines(before: str, after: str) -> LineChanges:
    old, new = before.splitlines(), after.splitlines()
    edits = [edit for edit in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if edit[0] != "equal"]
    return LineChanges(
        removed=tuple(line for _, first, last, _, _ in edits for line in old[first:last]),
        added=tuple(line for _, _, _, first, last in edits for line in new[first:last]),
    )


# By its name: the command, the files, and what is changed besides the file with the finding.
OTHER_FILES: dict[str, tuple[tuple[str, ...], dict[str, str], str]] = {
    "what a makefile runs": (("make", "lint"), {"Makefile": "lint:\n", "tools/c.py": "x\n"}, "tools/c.py"),
    "what a makefile includes": (("make", "lint"), {"Makefile": "include lint.mk\n", "lint.mk": "x\n"}, "lint.mk"),
    "what a script runs": (("sh", "scripts/c.sh"), {"scripts/c.sh": "x\n", "tools/c.py": "x\n"}, "tools/c.py"),
    "an extended configuration": (RUFF, {"config/lint-base.toml": "x\n"}, "config/lint-base.toml"),
    "a module at the root": (("python3", "check.py", "{files}"), {"check.py": "x\n", "words.py": "x\n"}, "words.py"),
    "data at the root": (("python3", "check.py", "{files}"), {"check.py": "x\n", "words.txt": "x\n"}, "words.txt"),
    "a package at the root": (("python3", "check.py"), {"check.py": "x\n", "w/__init__.py": "x\n"}, "w/__init__.py"),
    "a module elsewhere": (("python3", "tools/c.py"), {"tools/c.py": "x\n", "lib/words.py": "x\n"}, "lib/words.py"),
    "a module beside it": (("python3", "tools/c.py"), {"tools/c.py": "x\n", "tools/w.py": "x\n"}, "tools/w.py"),
    "the checker": (("python3", "tools/c.py"), {"tools/c.py": "x\n"}, "tools/c.py"),
    "other rules": (RUFF, {}, "pyproject.toml"),
    "a new configuration": (RUFF, {}, "src/ruff.toml"),
    "a configuration in the command": (("mypy", "--config-file=conf/b.ini"), {"conf/b.ini": "x\n"}, "conf/b.ini"),
    "a stub": (("mypy", "{files}"), {}, "src/a.pyi"),
    "a module that is imported first": (("python3", "-m", "ruff"), {}, "ruff.py"),
}


@pytest.mark.parametrize("cheat", OTHER_FILES)
def test_findings_must_be_gone_without_changes_to_other_files(cheat: str) -> None:
    command, files, changed = OTHER_FILES[cheat]
    found = reviewed(command, BEFORE | files, TOUCHED | {changed: "print([])\n"})
    assert found.taken == ("src/a.py",)
    assert changed in (*found.elsewhere, *found.decisive)
    assert bool(found.refusals) is (changed in found.decisive)


# By its name: the file with the finding before, and after.
IN_THE_CODE: dict[str, tuple[str, str | None]] = {
    "adds noqa": ("import os\n", "import os  # noqa\n"),
    "moves noqa": ("import os\nx = 1  # noqa: E501\n", "import os  # noqa\nx = 1\n"),
    "widens noqa": ("import os\nx = 1  # noqa: F401\n", "import os\nx = 1  # ruff: noqa\n"),
    "no_type_check": ("def g():\n", "from typing import no_type_check\n@no_type_check\ndef g():\n"),
    "a setting of mypy's": ("x = 1\n", "# mypy: no-strict-optional\nx = 1\n"),
    "eslint": ("var x;\n", "/* eslint no-unused-vars: 0 */\nvar x;\n"),
    "noinspection": ("x = 1\n", "# noinspection PyUnresolvedReferences\nx = 1\n"),
    "becomes a link": ("import os\n", LINK),
}


@pytest.mark.parametrize("cheat", IN_THE_CODE)
def test_a_line_that_asks_to_be_overlooked_is_no_repair(cheat: str) -> None:
    before, after = IN_THE_CODE[cheat]
    assert reviewed(RUFF, {"src/a.py": before}, {"src/a.py": after}).refusals != ()


# By its name: what a failing test is made into.
TESTS_LEFT_OUT = {
    "no test any more": FAILING + "\n\ntest_x.__test__ = False\n",
    "imports what is not there": FAILING.replace("    assert 1", '    pytest.importorskip("nope")\n    assert 1'),
    "is skipped": FAILING.replace("    assert 1", "    self.skipTest(1)\n    assert 1"),
    "is expected to fail": FAILING.replace("def test_x", "@pytest.mark.xfail\ndef test_x"),
    "has another name": FAILING.replace("def test_x", "def no_x"),
    "is deleted": FAILING.partition("\n\n\ndef test_x")[0] + "\n",
    "is nested": FAILING.replace("def test_x():\n", "def outer():\n    def test_x():\n    "),
    "is taken back": FAILING + "\n\ndel test_x\n",
    "is replaced": FAILING + "\n\ntest_x = print\n",
}


@pytest.mark.parametrize("cheat", TESTS_LEFT_OUT)
def test_a_failing_test_that_is_not_run_any_more_is_not_repaired(cheat: str) -> None:
    changed = {"tests/test_a.py": TESTS_LEFT_OUT[cheat]}
    assert reviewed(PYTEST, TESTS, changed, found="tests/test_a.py").refusals != ()


@pytest.mark.parametrize(
    ("command", "before", "changed", "found"),
    [
        (RUFF, BEFORE, {"src/a.py": "x = 1\n"}, "src/a.py"),
        (("ruff", "check", "src/a.py"), BEFORE, {"src/a.py": "x = 1\n"}, "src/a.py"),
        (RUFF, {"src/a.py": "import os\nx = 1  # noqa: E501\n"}, {"src/a.py": "x = 1  # noqa: E501\n"}, "src/a.py"),
        (PYTEST, TESTS, {"src/a.py": "x = 2\n"}, "tests/test_a.py"),  # why it fails may be in any verified file
        (PYTEST, TESTS, {"tests/test_a.py": FAILING.replace("1 == 2", "1 == 1")}, "tests/test_a.py"),
        (PYTEST, TESTS, {"tests/test_a.py": FAILING.replace("test_x()", "test_x(tmp_path)")}, "tests/test_a.py"),
    ],
)
def test_an_honest_repair_is_taken_whole(
    command: tuple[str, ...], before: dict[str, str], changed: dict[str, str], found: str
) -> None:
    said = reviewed(command, before, changed, found)
    assert said == RepairReview(taken=tuple(changed), touched=True)


def test_a_checker_with_findings_of_its_own_is_not_taken_for_a_repair() -> None:
    command = ("python3", "tools/c.py", "{files}")
    found = reviewed(command, BEFORE | {"tools/c.py": "x\n"}, {"tools/c.py": "print([])\n"}, found="tools/c.py")
    assert (found.taken, found.elsewhere, found.decisive, found.touched) == ((), ("tools/c.py",), (), True)


def test_a_change_of_no_file_with_a_finding_touches_nothing() -> None:
    assert not reviewed(RUFF, BEFORE, {"notes.txt": "more\n"}).touched


def test_settings_of_the_repository_that_changed_are_no_success() -> None:
    spec = Verification(root="/shop", files=("src/a.py",), verifiers=())
    history = TreeHistory(known=frozenset(("src/a.py",)), changed=("src/a.py",))
    changes = AgentChanges(history=history, files=(), lines={}, settings=("filter.x.smudge",))
    assert "filter.x.smudge" in review("coder", spec, (), changes).refusals[0]
