"""Checkers as real processes: what they say counts when they did their work and the files stood still."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.domain.errors import BadConfiguration
from muster.domain.run import Origin, Reuse
from muster.engine.context import Context
from muster.verify.agents.checker import arguments, changed, places, run_checker
from muster.verify.findings.finding import Examined, Severity
from muster.verify.sources.source import Source
from tests.engine.house import house
from tests.verify.agents.stage import checked, checker, info, report, said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder with two files that are verified, and one that is not."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "a.py").write_text("one\ntwo\nthree\n")
    (tmp_path / "lib/b.py").write_text("one\ntwo")
    (tmp_path / "other.py").write_text("one\n")
    return tmp_path


def script(text: str, *arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-c", f"import sys\n{text}", *arguments)


def printing(*lines: str, code: int = 1) -> tuple[str, ...]:
    return script(f"print({chr(10).join(lines)!r})\nsys.exit({code})")


def test_files_become_arguments_that_are_no_options() -> None:
    files = ["a.py", "-x.py", "@args", "_b.py", ".c.py", "--fix"]
    assert arguments(("run", "{files}", "--end"), files) == (
        "run", "a.py", "./-x.py", "./@args", "_b.py", ".c.py", "./--fix", "--end",
    )  # fmt: skip
    assert arguments(("run", "."), files) == ("run", ".")
    assert arguments(("run", "x{files}"), files) == ("run", "x{files}")


async def test_a_checker_gets_its_files_its_folder_and_its_environment(folder: Path) -> None:
    text = "import os; print(f'a.py:2: low: {sys.argv[1:]} {os.getcwd()} {os.environ[\"MODE\"]}')"
    (folder / "-x.py").write_text("x\n")
    verifier = checker(*script(text, "--", "{files}"), environment={"MODE": "strict"})
    one = await checked(folder, verifier, info(folder, "a.py", "-x.py"))
    (found,) = one.findings
    assert found.finding == f"['--', 'a.py', './-x.py'] {folder} strict"
    assert (found.severity, found.line, one.failure, one.lines) == (Severity.LOW, 2, "", 4)
    assert one.keys == ("wave/1/check/command",)
    assert one.model.endswith("-- '{files}'")
    assert one.seconds > 0


async def test_findings_elsewhere_count_where_the_place_exists(folder: Path) -> None:
    outside = folder.parent / "outside.py"
    outside.write_text("one\n")
    (folder / "link.py").symlink_to(outside)
    lines = [
        f"{folder}/a.py:3: error: absolute",
        "./lib/../a.py:1: error: spelled otherwise",
        "other.py:1: error: not verified",
        "other.py:9: error: no such line",
        "lib/b.py:2: error: last line",
        "lib/b.py:3: error: the end of the file",
        "lib/b.py:4: error: past it",
        "a.py:0: error: the whole file",
        "gone.py:1: error: no such file",
        "../outside.py:1: error: outside",
        f"{outside}:1: error: outside",
        "link.py:1: error: a link to the outside",
        "lib:1: error: a folder",
    ]
    one = await checked(folder, checker(*printing(*lines)), info(folder, "a.py", "lib/b.py"), replay=True)
    assert [(found.file, found.line, found.finding) for found in one.findings] == [
        ("a.py", 3, "absolute"),
        ("a.py", 1, "spelled otherwise"),
        ("other.py", 1, "not verified"),
        ("lib/b.py", 2, "last line"),
        ("lib/b.py", 2, "the end of the file"),
        ("a.py", 1, "the whole file"),
    ]
    assert [rejected.finding.finding for rejected in one.rejected] == [
        "no such line", "past it", "no such file", "outside", "outside", "a link to the outside", "a folder",
    ]  # fmt: skip
    assert "2 lines" in one.rejected[1].why


@pytest.mark.parametrize(
    ("command", "more", "code", "words"),
    [
        (printing("a.py:1: error: x", code=2), {}, "bad_exit", "2"),
        (("./no-such-checker", "{files}"), {}, "not_started", "no-such-checker"),
        (script("import time; time.sleep(60)"), {"timeout": 0.3}, "timed_out", "timed out"),
        (script("import os; os.kill(os.getpid(), 9)"), {}, "bad_exit", "9"),
        (
            script("print('a.py:1: error: invalid syntax'); sys.exit(2)"),
            {},
            "bad_exit",
            "its output ends: a.py:1: error: invalid syntax",
        ),
        (printing("something is off"), {}, "unparsed", "a matching count: 'something is off'"),
        (script("print('a.py:1: low: x', flush=True); {}['a']"), {}, "unparsed", "it broke off"),
        (printing("3 errors found in a.py", code=0), {}, "unparsed", "but a line reports more"),
        (printing(), {}, "unparsed", "has no finding that can be read"),
        (printing("gone.py:1: error: x"), {}, "unparsed", "gone.py: no such file below the root"),
        (printing("fine", code=0), {"parser": "json"}, "unparsed", "not one JSON object"),
        (printing(code=0), {"parser": "ruff"}, "unparsed", "not a known output of ruff"),
        (printing("fine", code=0), {"parser": "mypy"}, "unparsed", "is missing"),
        (printing(code=1), {"parser": "mypy"}, "unparsed", "is missing"),
        (printing(code=0), {"parser": "pytest"}, "unparsed", "is missing"),
        (printing(code=0), {"parser": "sarif"}, "unparsed", "not JSON"),
        (
            printing("no tests ran in 0.01s", code=5),
            {"parser": "pytest", "exits": (5,)},
            "unparsed",
            "ran no test",
        ),
    ],
)
async def test_a_checker_that_did_not_do_its_work_is_a_failure(
    folder: Path, command: tuple[str, ...], more: dict[str, Any], code: str, words: str
) -> None:
    one = await checked(folder, checker(*command, **more), info(folder, "a.py"))
    assert (one.code, one.findings, one.rejected) == (code, (), ())
    assert words in one.failure


async def test_a_checker_that_exits_with_0_may_have_findings_or_none(folder: Path) -> None:
    files = info(folder, "a.py")
    assert len((await checked(folder, checker(*printing("a.py:1: error: x", code=0)), files)).findings) == 1
    clean = await checked(folder, checker(*printing(code=0)), files)
    assert (clean.failure, clean.findings) == ("", ())


async def test_a_checker_of_ones_own_gives_measures(folder: Path) -> None:
    text = report(said(line=2), score=7, coverage=81, parts={"style": 6})
    one = await checked(folder, checker(*printing(text, code=0), parser="json"), info(folder, "a.py"))
    assert (one.score, one.coverage, one.parts, len(one.findings)) == (7.0, 81.0, {"style": 6.0}, 1)


async def test_what_a_checker_says_of_changed_files_does_not_count(folder: Path) -> None:
    files = info(folder, "a.py", "lib/b.py")
    edits = script("open('lib/b.py', 'a').write('x')\nprint('a.py:1: low: x')")
    one = await checked(folder, checker(*edits), files)
    assert (one.code, one.findings) == ("changed", ())
    assert "after it ran: lib/b.py" in one.failure
    before = await checked(folder, checker(*printing("a.py:1: low: x", code=0)), files)
    assert "before it ran: lib/b.py" in before.failure
    (folder / "lib/b.py").unlink()
    assert (await checked(folder, checker(*printing(code=0)), files)).code == "changed"


async def test_what_a_checker_says_holds_no_secret(folder: Path) -> None:
    secret = "sk-ant-api03-" + "Ab3dEf6hIj9kLm2n" * 3
    files = info(folder, "a.py")
    said = await checked(folder, checker(*printing(f"a.py:1: error: {secret} is not None")), files)
    assert said.findings[0].finding == "[redacted:anthropic_key:1] is not None"
    failed = await checked(folder, checker(*printing(f"{secret} is not None")), files)
    assert secret not in failed.failure
    assert "[redacted:" in failed.failure


async def test_a_checker_without_files_checks_nothing(folder: Path) -> None:
    one = await checked(folder, checker(*printing(code=0)), ())
    assert (one.code, one.keys) == ("no_files", ("wave/1/check/command",))


async def test_sources_do_as_well_as_what_is_known_of_files(folder: Path) -> None:
    (known,) = info(folder, "a.py")
    source = Source(path="a.py", digest=known.digest, text="one\ntwo\nthree\n")
    async with house(folder) as h:

        async def work(ctx: object, spec: object) -> None:
            with pytest.raises(BadConfiguration, match=r"the parser must be one of .*, not 'nobody'"):
                await run_checker(ctx, checker("x", parser="nobody"), str(folder), [source], key="k")  # type: ignore[arg-type]

        assert (await h.drive(work)).error is None
    one = await checked(folder, checker(*printing("a.py:3: low: x", code=0)), [source])  # type: ignore[list-item]
    assert (one.findings[0].line, one.lines) == (3, 3)


async def test_ruff_and_pytest_are_run_for_real(folder: Path) -> None:
    (folder / "a.py").write_text("import os\n\n\ndef f(x: int) -> str:\n    return x\n")
    (folder / "test_a.py").write_text("from a import f\ndef test_f():\n    assert f(1) == '1'\ndef test_g(): pass\n")
    files, python = info(folder, "a.py"), sys.executable
    options = ("--isolated", "--no-cache", "--output-format", "json")
    one = await checked(folder, checker(python, "-m", "ruff", "check", *options, "{files}", parser="ruff"), files)
    assert [(found.file, found.line, found.rule, found.severity) for found in one.findings] == [
        ("a.py", 1, "F401", Severity.MEDIUM)
    ]
    usual = ("-q", "-p", "no:cacheprovider", "--rootdir", ".", "-c", "/dev/null", "test_a.py")
    one = await checked(folder, checker(python, "-B", "-m", "pytest", *usual, parser="pytest"), files)
    assert [(found.file, found.line, found.rule) for found in one.findings] == [("test_a.py", 3, "test_a.py::test_f")]


async def test_a_large_output_is_read_whole(folder: Path) -> None:
    lines = script("print('a.py:1: low: x\\n' * 30_000)")
    assert len((await checked(folder, checker(*lines), info(folder, "a.py"))).findings) == 30_000


async def test_a_checker_that_was_never_run_is_a_failure_in_a_replay(folder: Path) -> None:
    heard: list[Examined] = []

    async def work(ctx: Context, spec: Any) -> None:
        if heard:  # what it did before was something else
            heard.append(await run_checker(ctx, checker("x"), str(folder), info(folder, "a.py"), key="k"))
        else:
            heard.append(Examined())

    async with house(folder) as h:
        run = await h.drive(work)
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))
        await h.engine.drive(again.id)
    assert (heard[1].code, heard[1].findings) == ("replay_miss", ())


def test_the_disk_is_asked_without_raising(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    looked = places(str(tmp_path), ["empty", "loop", "nul\0", "", "no/way"])
    assert looked == {"empty": ["empty", 0], "loop": None, "nul\0": None, "": None, "no/way": None}
    assert places(str(tmp_path / "gone"), ["x"]) == {"x": None}
    assert json.loads(json.dumps(looked)) == looked
    assert changed(str(tmp_path), {"gone": "x", "empty": info(tmp_path, "empty")[0].digest}) == ["gone"]
    assert len(changed(str(tmp_path), {f"{n}": "x" for n in range(99)})) == 20
