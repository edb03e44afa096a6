"""`muster demo`: holds what it promises, and leaves nothing behind but the suite and its report."""

import json
import signal
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import muster.cli
from muster.suites.format.discovery import find_suites
from muster.suites.format.lint import lint

from .shell import Shell, line_with


def processes_about(folder: Path) -> list[str]:
    """Give the command lines of living processes whose environment or arguments name a folder."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                known = (process / "environ").read_bytes() + (process / "cmdline").read_bytes()
            except OSError:
                continue
            if str(folder).encode() in known:
                found.append((process / "cmdline").read_text())
    return found


@pytest.fixture
def theatre(shell: Shell) -> Shell:
    """A shell whose temporary folders are known."""
    (shell.folder / "tmp").mkdir()
    shell.variables["TMPDIR"] = str(shell.folder / "tmp")
    return shell


def left(shell: Shell) -> list[Path]:
    """Give what is left in the temporary folder; no process is."""
    assert not processes_about(shell.folder)
    return list((shell.folder / "tmp").iterdir())


def test_the_proof_holds_and_a_suite_is_left_with_its_report(theatre: Shell) -> None:
    result = theatre.muster("demo")
    assert result.code == 0
    assert "SIGKILL" in result.err
    assert "paid ≤ calls + uncertain" in result.out
    (folder,) = left(theatre)
    assert f"report: {folder / 'report.html'}\n" in result.out
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "help-desk/promises-no-refund" in page
    assert "we will refund you at once" in page
    assert not (theatre.folder / ".muster").exists()


def test_its_numbers_fit_together_and_its_suite_can_be_run_again(theatre: Shell) -> None:
    result = theatre.muster("demo", "--json")
    data = result.data()
    assert result.err == ""
    assert data["holds"] is True
    assert (data["calls"], data["digests"], data["replay_requests"]) == (60, 20, 0)
    assert 25 <= data["reused"] < 60
    assert data["uncertain"] >= 1
    assert 60 <= data["paid_by_audit"] <= 60 + data["uncertain"]
    assert data["suite"]["passed"] == {"careful": 6, "hasty": 2}
    (folder,) = left(theatre)
    assert data["suite"]["report"] == str(folder / "report.html")
    there = Shell(folder, theatre.variables)
    assert there.muster("run", ".", "--agent", "careful", "--judge", "critic").code == 0
    assert there.muster("run", ".", "--agent", "hasty", "--judge", "critic").code == 1


def test_the_page_is_served_on_the_store_of_the_suite_until_it_is_stopped(theatre: Shell) -> None:
    with theatre.start("demo", "--serve", "--json") as process:
        assert process.stdout is not None
        suite = json.loads(process.stdout.readline())["data"]["suite"]
        url = urlsplit(json.loads(process.stdout.readline())["url"])
        connection = HTTPConnection(url.hostname or "", url.port, timeout=60)
        connection.request("GET", f"/api/suites/{suite['run']}/summary")
        summary = json.loads(connection.getresponse().read())
        connection.request("GET", "/api/library")
        library = json.loads(connection.getresponse().read())
        connection.close()
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0
    assert {one["subject"]: one["counts"]["passed"] for one in summary["subjects"]} == {"careful": 6, "hasty": 2}
    assert [one["kind"] for one in library["items"]] == ["suite"]
    assert left(theatre) == [Path(suite["folder"])]


def test_the_suite_of_the_demo_is_beyond_doubt() -> None:
    (file,) = find_suites([Path(muster.cli.__path__[0]) / "demo" / "suite"])
    assert lint(file) == ()


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("calls done", signal.SIGINT),
        pytest.param("calls done", signal.SIGTERM, marks=pytest.mark.chaos),
        pytest.param("Resuming", signal.SIGINT, marks=pytest.mark.chaos),
        ("Resuming", signal.SIGTERM),
    ],
)
def test_a_signal_ends_it_with_4_and_leaves_nothing(theatre: Shell, moment: str, number: signal.Signals) -> None:
    with theatre.start("demo") as process:
        line_with(process.stderr, moment)
        process.send_signal(number)
        _, told = process.communicate()
    assert process.returncode == 4
    assert "Traceback" not in told
    assert left(theatre) == []
