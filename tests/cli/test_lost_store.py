"""The store is deleted or moved while a run is driven: it stops, nothing more is paid, and what is left is said."""

import shutil
from pathlib import Path

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import Shell, line_with

MODEL = "anthropic/claude-haiku-5-5"
TICKETS = 80


def moved(home: Path) -> None:
    home.rename(home.with_name("moved"))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (shutil.rmtree, "was deleted or moved to another file system while it was in use"),
        (moved, "/moved/muster.db while"),
    ],
)
def test_a_run_whose_store_is_gone_stops_and_pays_nothing_more(shell: Shell, harm: object, words: str) -> None:
    assert callable(harm)
    shell.declare_workloads()
    with ForkedRehearsal(latency_ms=500) as rehearsal:
        shell.use(rehearsal)
        run = shell.submit(
            "triage", {"agent": MODEL, "tickets": [f"ticket {i}" for i in range(TICKETS)]}, concurrency=4
        )
        with shell.start("runs", "resume", run) as process:
            line_with(process.stderr, "4 on the wire")
            harm(shell.folder / ".muster")
            out, err = process.communicate()
        paid = rehearsal.audit().calls
        assert process.returncode == 4, (out, err)
        assert words in err
        assert "Traceback" not in err
        assert paid < TICKETS / 2
        if harm is moved:
            (shell.folder / "moved").rename(shell.folder / ".muster")
            resumed = shell.muster("runs", "resume", run, "--json")
            assert (resumed.code, resumed.data()["state"]) == (0, "completed")
            assert rehearsal.audit().calls <= TICKETS + resumed.data()["calls"]["uncertain"]
