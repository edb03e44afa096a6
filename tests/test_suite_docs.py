"""What docs/SUITES.md tells is true: its commands run in their order, and it leaves no field, status or kind out."""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from muster.cli.main import run
from muster.domain.case import Status
from muster.suites.compare.test import ALPHA, MIN_PAIRS, NOTICE, THRESHOLD
from muster.suites.format import forms
from muster.suites.format.lint import CANONICAL_TAGS
from muster.suites.format.resolve import MAX_ID
from muster.suites.reports.formats import WRITERS
from muster.suites.values.case import DEFAULT_GOLDEN_THRESHOLD, CheckKind, Evaluator, ToolOrder
from muster.suites.values.rules import DEFAULT_THRESHOLD
from muster.text import forms as values

ROOT = Path(__file__).parent.parent
SUITES = (ROOT / "docs" / "SUITES.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
GROUPS = ("runs", "baseline", "evidence")
FORMS = (
    forms.HeadForm,
    forms.DefaultsForm,
    forms.CaseForm,
    forms.InputForm,
    forms.ToolForm,
    forms.ToolResultForm,
    forms.ExpectedForm,
    forms.ExpectationForm,
    forms.CheckForm,
    forms.RubricForm,
    forms.EvaluatorForm,
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", SUITES, re.DOTALL)


def statements(script: str) -> Iterator[str]:
    """Cut a script into what is done one after the other; what is fed into a command belongs to it."""
    lines = iter(script.splitlines())
    for line in lines:
        if "<<'END'" in line:
            yield "\n".join([line, *iter(lambda: next(lines), "END"), "END"])
        elif line.strip():
            yield line


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder to work in; signals are afterwards as they were."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    with chdir(tmp_path):
        yield tmp_path
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.timeout(120)
def test_the_commands_that_need_no_key_run_in_their_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for statement in statements("\n".join(blocks("sh"))):
        words = shlex.split(statement, comments=True) if "<<" not in statement else []
        if words[:1] == ["muster"]:
            code = run(words[1:])
            assert code == 0, (statement, capsys.readouterr())
        else:
            subprocess.run(["bash", "-e", "-c", statement], cwd=folder, check=True)
    for made in ("report.html", "report.json", "junit.xml", "muster.sarif", "page.html", "evidence.tar"):
        assert (folder / made).stat().st_size > 0

    (folder / "program.py").write_text(blocks("python")[0])
    done = subprocess.run([sys.executable, "program.py"], cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.stdout == "True\n", done.stderr


def test_the_other_commands_and_their_options_exist(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [shlex.split(line, comments=True)[1:] for block in blocks("shell") for line in block.splitlines()]
    assert len(told) > 5
    for words in told:
        run([*words[: 2 if words[0] in GROUPS else 1], "--help"])
        shown = capsys.readouterr().out
        assert [word for word in words if word.startswith("--") and word not in shown] == [], words


@pytest.mark.parametrize("form", FORMS, ids=lambda form: str(form.__name__))
def test_every_field_is_told(form: type[values.Form]) -> None:
    names = {info.alias or name for name, info in form.model_fields.items()}
    told = {name for name in names if re.search(rf"`[^`]*\b{name}\b[^`]*`", SUITES)}
    assert told == names


def test_every_kind_status_order_and_format_is_told() -> None:
    rows = [line.split("|")[1] for line in SUITES.splitlines() if line.startswith("|")]
    for name in (*CheckKind, *Evaluator, *Status, *ToolOrder):
        assert any(f"`{name}`" in row for row in rows), name
    for name in WRITERS:
        assert f"--format {name}" in SUITES
    for tag in CANONICAL_TAGS:
        assert tag in SUITES


def test_every_finding_of_lint_is_told() -> None:
    source = (ROOT / "src/muster/suites/format/lint.py").read_text()
    codes = set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', source)) - set(CANONICAL_TAGS)
    assert len(codes) > 10
    assert {code for code in codes if f"`{code}`" not in SUITES} == set()


def test_the_numbers_are_as_they_are_told() -> None:
    assert f"({DEFAULT_THRESHOLD}, `--threshold`)" in SUITES
    assert f"`golden_threshold` ({DEFAULT_GOLDEN_THRESHOLD})" in SUITES
    assert f"`--alpha` ({ALPHA})" in SUITES
    assert f"`--notice` ({NOTICE:.2f}, {100 * NOTICE:.0f} points" in SUITES
    assert f"`--threshold` ({THRESHOLD}), with {'five' if MIN_PAIRS == 5 else MIN_PAIRS} pairs" in SUITES
    assert f"at most {MAX_ID} characters" in SUITES


def test_what_the_document_points_at_is_there() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", SUITES):
        assert (ROOT / "docs" / target).exists(), target


def test_the_readme_on_suites_can_be_pasted_into_a_shell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    section = README.partition("## 1. Test an agent\n")[2].partition("\n## ")[0]
    lines = re.findall(r"^(muster [^#\n]*)", section, re.MULTILINE)
    assert lines
    for line in (line for line in lines if "sim/" in line or not re.search(r"--(agent|judge)", line)):
        code = run(shlex.split(line)[1:])
        assert code == 0, (line, capsys.readouterr())
