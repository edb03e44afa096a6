"""Every suite in examples/suites is beyond doubt, and the commands in its muster.toml do what they say."""

import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from muster.domain.errors import BadFile
from muster.suites.format.discovery import find_suites
from muster.suites.format.lint import lint
from muster.suites.format.suite import open_suite
from muster.suites.values.case import Case, CheckKind, Evaluator, ToolOrder
from tests.cli.shell import Shell

EXAMPLES = Path(__file__).parent.parent / "examples" / "suites"
NAMES = ("explainer", "order-desk", "support-agent")

# How every command of the muster.toml files ends.
ENDINGS = {
    ("support-agent", "muster validate . && muster lint ."): 0,
    ("support-agent", "muster run . --agent support"): 0,
    ("support-agent", "muster run . --agent support --tags smoke --report html=report.html"): 0,
    ("order-desk", "muster run . --agent clerk"): 0,
    ("order-desk", "muster run . --agent clerk --agent hasty"): 1,
    ("order-desk", "muster run . --agent hasty --filter '*refund*' --report html=report.html"): 1,
    ("explainer", "muster run . --agent teacher --judge critic"): 1,
    (
        "explainer",
        "muster run . --agent teacher --judge critic --judge-samples 3 --epochs 2 --report html=report.html",
    ): 1,
}
NOT_PASSED: dict[str, set[tuple[str, str]]] = {
    "support-agent": set(),
    "order-desk": {
        ("hasty", case) for case in ("refund-in-order", "track-a-parcel", "compare-two-articles", "unknown-order")
    },
    "explainer": {("teacher", "term/magnet")},
}


def home_of(name: str, folder: Path) -> Shell:
    """A copy of a suite, with the Python of these tests as the first on PATH."""
    shutil.copytree(EXAMPLES / name, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".muster", "*.html"))
    return Shell(folder, {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})


def commands_of(name: str) -> list[str]:
    """Give the commands in the comment at the top of its muster.toml; what stands after some blanks explains."""
    text = (EXAMPLES / name / "muster.toml").read_text(encoding="utf-8")
    return [line.split("   ")[0].strip() for line in re.findall(r"^#   (muster .*)$", text, re.MULTILINE)]


def cases() -> list[Case]:
    return [case for path in find_suites([EXAMPLES]) for case in open_suite(path).cases()]


def test_every_suite_is_tried_here() -> None:
    assert tuple(path.parent.name for path in find_suites([EXAMPLES])) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_suite_is_valid_and_beyond_doubt(name: str) -> None:
    try:
        assert lint(EXAMPLES / name / "cases.yaml") == ()
    except BadFile as error:
        pytest.fail(str(error))


def test_between_them_they_show_every_check_evaluator_and_order() -> None:
    found = cases()
    checks = [check for case in found for check in case.output]
    checks += [item.auto_check for case in found for item in case.rubric if item.auto_check]
    assert {check.kind for check in checks} == set(CheckKind) - {CheckKind.GOLDEN_DIFF}
    assert {case.evaluator or Evaluator.RULES for case in found} == set(Evaluator)
    assert {tool.order for case in found for tool in case.tool_sequence} == set(ToolOrder)
    for feature in (
        "follow_ups",
        "tools",
        "rubric",
        "golden",
        "process",
        "judge_prompt",
        "context",
        "threshold",
        "skip",
    ):
        assert any(getattr(case, feature) for case in found), feature


def test_every_command_that_a_file_names_is_run_here() -> None:
    assert {(name, command) for name in NAMES for command in commands_of(name)} == set(ENDINGS)


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_a_suite_end_as_they_should_and_only_what_fails_on_purpose_fails(
    name: str, tmp_path: Path
) -> None:
    shell = home_of(name, tmp_path)
    failed: set[tuple[str, str]] = set()
    for command in commands_of(name):
        for part in command.split(" && "):
            done = shell.muster(*shlex.split(part)[1:])
            assert done.code == ENDINGS[name, command], (part, done.out, done.err)
        if " run " in command:
            failed |= not_passed(shell)
    assert failed == NOT_PASSED[name]


def not_passed(shell: Shell) -> set[tuple[str, str]]:
    """Give who failed where in the last run."""
    report = json.loads(shell.muster("report", "last", "--format", "json").out)
    bad = [case for case in report["cases"] if case["status"] not in ("passed", "skipped")]
    assert {case["status"] for case in bad} <= {"failed"}
    return {(case["subject"], case["case"].partition("/")[2]) for case in bad}
