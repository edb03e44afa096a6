"""What the pages on Python tell is true: examples run in their order and print what is shown; no method is left out."""

import ast
import inspect
import re
import subprocess
import sys
from contextlib import chdir, redirect_stdout
from dataclasses import fields
from io import StringIO
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
from docs.reference import PARTS, made_reference

import muster
from muster.app import Patience
from muster.app.runs.kind_part import KindPart
from muster.app.suites.evidence import Evidence
from muster.app.suites.reviews import Baselines
from muster.sim.options import Options
from muster.sim.server import serve

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs" / "PYTHON.md").read_text(encoding="utf-8")
PAGE = GUIDE + (ROOT / "docs" / "PYTHON_REFERENCE.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```\n)?", PAGE, re.DOTALL)
SERVER = "http://127.0.0.1:8766/anthropic"
BRISK = Patience(settle=0.05, poll_first=0.2, poll_longest=0.2)
BATCH_MS = 5000  # a run is let go of long before its batch ends
ASKED = {name for name in vars(KindPart) if not name.startswith("_")}  # by Muster, about runs of their kind


def write_files(folder: Path, address: str = SERVER) -> None:
    """Write every file that the page shows under the name in its first line, and some code to verify."""
    for name, text in re.findall(r"```(?:toml|yaml)\n# (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text.replace(SERVER, address), encoding="utf-8")
    (folder / "code").mkdir()
    (folder / "code" / "add.py").write_text("def add(a, b):\n    return a + b\n", encoding="utf-8")


async def printed(example: str, names: dict[str, Any]) -> str:
    """Run an example as if it stood inside `async with`, and return what it printed."""
    code = compile(example, str(ROOT / "docs" / "PYTHON.md"), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with redirect_stdout(StringIO()) as out:
        waiting = FunctionType(code, names)()
        if inspect.isawaitable(waiting):
            await waiting
    return out.getvalue()


async def test_the_examples_print_what_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REHEARSAL_KEY", "anything")
    async with serve(Options(batch_ms=BATCH_MS)) as server:
        write_files(tmp_path, server.anthropic)
        with chdir(tmp_path):
            async with muster.open(tmp_path / ".muster", patience=BRISK) as m:
                names: dict[str, Any] = {"m": m, "muster": muster}
                for example, shown in EXAMPLES[1:]:
                    assert await printed(example, names) == shown, example
    assert (tmp_path / "report.md").read_text(encoding="utf-8").count("mail/greeting") > 0


def test_the_first_example_is_a_whole_program(tmp_path: Path) -> None:
    program, shown = EXAMPLES[0]
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert (done.returncode, done.stdout) == (0, shown), done.stderr


def told_of(part: str) -> set[str]:
    """Return the names in the first column of the table of a part."""
    table = PAGE.partition(f"| of {part} | |\n|---|---|\n")[2].partition("\n\n")[0]
    return {name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])}


@pytest.mark.parametrize(("part", "kind"), PARTS, ids=[kind.__name__ for _, kind in PARTS])
def test_the_table_of_a_part_has_every_public_method(part: str, kind: type) -> None:
    init = next(vars(one)["__init__"] for one in kind.__mro__ if "__init__" in vars(one))
    given = set(re.findall(r"self\.([a-z]\w*)\b[^\n(]*?(?:=|: \w+ =)", inspect.getsource(init)))
    assert told_of(part) - ASKED == {name for name in dir(kind) if not name.startswith("_")} - ASKED | given


def test_the_reference_has_the_signatures_that_the_code_has() -> None:
    page = (ROOT / "docs" / "PYTHON_REFERENCE.md").read_text(encoding="utf-8")
    assert made_reference(page.replace("seconds: float", "minutes: float")) == page
    for line in ("async def sleep(key: str, seconds: float) -> None", "is_resumed: bool", "async def result() -> "):
        assert f"\n{line}" in page
    for line in (
        "class ToolCall:  # One use of a tool, as the agent asked for it.",
        "    arguments: Mapping[str, Json] = dict()",
        '    TOOL_USE = "tool_use"  # it wants tools used',
        "    seq: int  # from one, in its channel",
        "        RateLimited  # rate_limited: The provider says: too fast or too many; retryable",
    ):
        assert f"\n{line}" in page
    assert "messages: Sequence[Message] = …" in page.partition("async def ask(")[2].partition("->")[0]


@pytest.mark.parametrize(("part", "kind"), [("baselines", Baselines), ("evidence", Evidence)])
def test_the_row_of_a_smaller_part_has_every_public_method(part: str, kind: type) -> None:
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{part}` |")]
    assert {name for name in vars(kind) if not name.startswith("_")} <= set(re.findall(r"`(\w+)`", row))


def test_the_table_of_a_reply_has_every_field_and_method() -> None:
    public = {name for name in dir(muster.Reply) if not name.startswith("_")}
    assert told_of("a `muster.Reply`") == public | {field.name for field in fields(muster.Reply)}


def test_the_table_of_the_testing_room_has_what_is_public_there() -> None:
    assert told_of("`muster.testing`") | {"CrashReport"} == set(muster.testing.__all__)
    table = GUIDE.partition("| of `muster.testing` | |")[2].partition("\n\n")[0]
    for kind in (muster.testing.FakeClock, muster.testing.MusterTest, muster.testing.CrashReport):
        hidden = {"monotonic", "now", "sleep"}  # what a clock has for the engine
        named = {name for name in dir(kind) if not name.startswith("_")} - hidden
        assert named <= set(re.findall(r"\w+", table)), kind


def test_the_tests_that_the_guide_shows_are_those_of_the_examples() -> None:
    (shown,) = re.findall(r"```py\n(.*?)```", GUIDE, re.DOTALL)
    whole = (ROOT / "examples" / "python" / "test_triage.py").read_text(encoding="utf-8")
    assert all(piece.strip() in whole for piece in shown.split("\n\n\n"))


def test_the_guide_names_the_lines_of_the_programs_that_are_compared() -> None:
    lines = [len((ROOT / "bench" / f"steps_{kind}.py").read_text().splitlines()) for kind in ("dbos", "muster")]
    assert f"| lines of the program | {lines[0]} | {lines[1]} |" in GUIDE
