"""`muster report`: a stored suite run in every format, to standard output or a file; never a gate."""

import asyncio
import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from muster.app.kinds import SUITE
from muster.app.runs.files import borrow, export_run
from muster.cli.formats import formats_of
from muster.cli.main import run
from muster.cli.reports import wanted_report
from muster.cli.suites.table import MAX_TROUBLES, tell_report
from muster.domain.case import Status
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import RunState
from tests.suites.reports.house import RUN, Story, case, fill, fill_file, hostile, result, shop, summary

from .shell import Result, Shell

Muster = Callable[..., Result]
GOOD = Story(cases=[case("a")], results=[result("a")])


@pytest.fixture
def muster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Muster:
    """The command in this process, on a store that holds one run."""
    asyncio.run(fill_file(tmp_path / ".muster" / "muster.db", shop()))

    def call(*arguments: str) -> Result:
        code = run([*arguments, "--home", str(tmp_path / ".muster")])
        seen = capsys.readouterr()
        return Result(code=code, out=seen.out, err=seen.err)

    return call


def drawn(folder: Path, story: Story, width: int) -> str:
    out = io.StringIO()
    report = asyncio.run(summary(folder, story))
    tell_report(Console(file=out, width=width, highlight=False, markup=False, emoji=False), report, RUN)
    return out.getvalue()


def test_the_terminal_shows_subjects_failures_and_the_verdict_without_colours_in_a_pipe(muster: Muster) -> None:
    found = muster("report", "nightly")
    assert found.code == 0
    lines = found.out.splitlines()
    assert lines[-2] == (
        "6 of 14 cases over 2 subjects did not pass: 3 failed, 1 error, 1 unjudged, 1 flaky (2 skipped)."
    )
    assert lines[-1] == f"details: muster report {RUN} --format html -o report.html"
    assert any("1." in line and "sim/good" in line and "85.7%" in line and "49% to 97%" in line for line in lines)
    assert any("~ flaky" in line and "passed in 1 of 2 epochs" in line for line in lines)
    assert "\x1b" not in found.out


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("json", "{"), ("junit", "<?xml"), ("sarif", "{"), ("markdown", "## "), ("html", "<!DOCTYPE html>")],
)
def test_every_format_goes_to_standard_output(muster: Muster, name: str, beginning: str) -> None:
    found = muster("report", "last", "--format", name)
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith(beginning)


def test_a_report_is_written_to_a_file_and_told(muster: Muster, tmp_path: Path) -> None:
    path = tmp_path / "out" / "report.xml"
    found = muster("report", RUN, "--format", "junit", "-o", str(path))
    assert (found.code, found.out) == (0, f"run {RUN}: junit report written to {path}\n")
    assert path.read_text(encoding="utf-8").startswith("<?xml")
    told = muster("report", RUN, "--format", "terminal", "-o", str(path), "--json").data()
    assert told == {"run": RUN, "format": "terminal", "ok": False, "file": str(path)}
    assert "did not pass" in path.read_text(encoding="utf-8")


def test_the_envelope_holds_the_report(muster: Muster) -> None:
    data = muster("report", "last", "--json").data()
    assert (data["format"], data["ok"], data["report"]["schema"]) == ("json", False, "muster.suite-report/1")
    assert len(data["report"]["cases"]) == 16
    text = muster("report", "last", "--format", "markdown", "--json").data()
    assert text["report"].startswith("## ❌")


def test_what_cannot_be_reported_exits_as_promised(muster: Muster, tmp_path: Path) -> None:
    assert muster("report", "nobody", "--json").code == 5
    assert muster("report", "last", "--format", "pdf").code == 2
    folder = muster("report", "last", "-o", str(tmp_path), "--json")
    assert (folder.code, folder.error()["message"]) == (2, f"{tmp_path} is a folder")
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"muster": 1}\n')
    assert muster("report", str(broken)).code == 2


def test_a_run_of_something_else_exits_2(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello")
    assert shell.muster("report", "last", "--json").code == 5
    found = shell.muster("report", shell.run("last")["id"], "--json")
    assert found.code == 2
    assert "is a run of 'ask', which has no report" in found.error()["message"]
    assert found.error()["suggestions"] == [f"muster runs show {shell.run('last')['id']}"]


def test_an_exported_run_is_reported_where_no_store_is(shell: Shell) -> None:
    asyncio.run(_export(shell.folder / "run.jsonl.gz"))
    found = shell.muster("report", "run.jsonl.gz", "--format", "json")
    assert (found.code, json.loads(found.out)["run"]["spent_usd"]) == (0, 0.0421)
    assert not (shell.folder / ".muster").exists()
    told = shell.muster("report", "run.jsonl.gz")
    assert told.out.splitlines()[-1] == "details: muster report run.jsonl.gz --format html -o report.html"


async def _export(path: Path) -> None:
    from muster.store.sqlite.store import open_sqlite

    store = open_sqlite(path.with_name("elsewhere.db"))
    try:
        await export_run(store, await fill(store, shop()), path)
    finally:
        await store.maintenance.close()


async def test_a_borrowed_run_is_gone_afterwards(tmp_path: Path) -> None:
    await _export(tmp_path / "run.jsonl")
    async with borrow(tmp_path / "run.jsonl") as (store, found):
        place = Path(str((await store.maintenance.info())["path"]))
        assert (found.id, found.spent.billed, place.is_file()) == (RUN, 42_100, True)
    assert not place.parent.exists()
    with pytest.raises(NotFound, match="no such file"):
        async with borrow(tmp_path / "nothing.jsonl"):
            pass


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_no_line_is_wider_than_the_terminal_and_every_subject_is_named(tmp_path: Path, width: int) -> None:
    text = drawn(tmp_path, shop(), width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "sim/good " in text
    assert "sim/terse " in text


def test_of_many_failures_some_are_shown_and_the_rest_is_counted(tmp_path: Path) -> None:
    names = [f"case-{number:03}" for number in range(MAX_TROUBLES + 7)]
    story = Story(cases=[case(name) for name in names], results=[result(name, Status.FAILED) for name in names])
    text = drawn(tmp_path, story, 100)
    assert text.count("✗ failed") == MAX_TROUBLES
    assert "… and 7 more that did not pass" in text


def test_a_good_run_says_so_in_one_sentence(tmp_path: Path) -> None:
    lines = drawn(tmp_path, GOOD, 80).splitlines()
    assert lines[-2] == "The only case passed."


def test_a_run_that_stopped_says_what_is_missing(tmp_path: Path) -> None:
    story = replace(GOOD, results=[], state=RunState.INTERRUPTED)
    assert "The run was interrupted. 1 of 1 results are missing. No case was run." in drawn(tmp_path, story, 80)


def test_texts_of_strangers_cannot_draw_on_the_terminal(tmp_path: Path) -> None:
    text = drawn(tmp_path, hostile(), 120)
    assert not any(ord(character) < 32 and character != "\n" for character in text)


@pytest.mark.parametrize("given", ["junit", "=a.xml", "junit=", "pdf=a.pdf", "html=/", "html=/proc/a.html"])
def test_a_report_that_cannot_be_made_is_refused_beforehand(given: str) -> None:
    with pytest.raises(BadArgument):
        wanted_report(given, formats_of(SUITE))


def test_a_wanted_report_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file, printed = wanted_report("junit=out=1.xml", formats_of(SUITE)), wanted_report("json=-", formats_of(SUITE))
    assert (file.format, file.path) == ("junit", Path("out=1.xml"))
    assert (printed.format, printed.path) == ("json", None)


def test_of_a_short_run_every_case_is_listed_with_its_status_and_score(tmp_path: Path) -> None:
    names = [f"case-{number:02}" for number in range(3)]
    results = [result(names[0]), result(names[1], Status.FAILED), result(names[2])]
    text = drawn(tmp_path, Story(cases=[case(name) for name in names], results=results), 100)
    lines = [line.split()[1:4] for line in text.splitlines() if any(name in line for name in names)]
    assert [(status, name.rpartition("/")[2]) for status, name, _ in lines] == [
        ("passed", "case-00"),
        ("failed", "case-01"),
        ("passed", "case-02"),
    ]
    assert all(re.fullmatch(r"[01]\.\d\d", score) for _, _, score in lines)
