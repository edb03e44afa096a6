"""`muster demo`: holds what it promises, and leaves nothing behind."""

import signal
from pathlib import Path

import pytest

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


def nothing_is_left(shell: Shell) -> bool:
    return not list((shell.folder / "tmp").iterdir()) and not processes_about(shell.folder)


def test_the_proof_holds_and_nothing_is_left(theatre: Shell) -> None:
    result = theatre.muster("demo")
    assert result.code == 0
    assert "SIGKILL" in result.err
    assert "paid ≤ calls + uncertain" in result.out
    assert nothing_is_left(theatre)
    assert not (theatre.folder / ".muster").exists()


def test_its_numbers_fit_together(theatre: Shell) -> None:
    result = theatre.muster("demo", "--json")
    data = result.data()
    assert result.err == ""
    assert data["holds"] is True
    assert (data["calls"], data["digests"], data["replay_requests"]) == (60, 20, 0)
    assert 25 <= data["reused"] < 60
    assert data["uncertain"] >= 1
    assert 60 <= data["paid_by_audit"] <= 60 + data["uncertain"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("moment", ["calls done", "Resuming"])
def test_a_signal_ends_it_with_4_and_leaves_nothing(theatre: Shell, number: signal.Signals, moment: str) -> None:
    with theatre.start("demo") as process:
        line_with(process.stderr, moment)
        process.send_signal(number)
        _, told = process.communicate()
    assert process.returncode == 4
    assert "Traceback" not in told
    assert nothing_is_left(theatre)
