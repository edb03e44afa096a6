"""Another process keeps the store locked: it is waited for, that is said, and nothing that was paid for is dropped."""

import contextlib
import signal
import sqlite3
import subprocess

import pytest

from tests.rehearsal import ForkedRehearsal

from .shell import PATIENCE, Shell, line_with

MODEL = "anthropic/claude-haiku-5-5"


def lock(shell: Shell) -> sqlite3.Connection:
    """Take the write lock of the store."""
    raw = sqlite3.connect(shell.folder / ".muster" / "muster.db", isolation_level=None, timeout=PATIENCE)
    raw.execute("BEGIN IMMEDIATE")
    return raw


def test_a_run_waits_for_a_locked_store_and_every_answer_counts(shell: Shell) -> None:
    shell.declare_workloads()
    with ForkedRehearsal(latency_ms=3000) as rehearsal:
        shell.use(rehearsal)
        run = shell.submit("triage", {"agent": MODEL, "tickets": ["a", "b", "c", "d"]}, concurrency=2)
        with shell.start("runs", "resume", run) as process:
            line_with(process.stderr, "2 on the wire")
            holder = lock(shell)
            told = line_with(process.stderr, "waiting for the store")
            holder.close()
            process.communicate(timeout=PATIENCE)
        paid = rehearsal.audit().calls
    assert "is writing to it; press Ctrl-C twice to wait no longer" in told
    found = shell.run(run)
    assert (process.returncode, found["state"], found["calls"]["uncertain"], paid) == (0, "completed", 0, 4)


def test_a_command_that_waits_for_a_locked_store_ends_when_it_is_told_twice(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "hello", "--name", "asked")
    holder = lock(shell)
    with shell.start("runs", "delete", "asked") as process:
        line_with(process.stderr, "waiting for the store")
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):  # it may still be written
            process.wait(1)
        while process.poll() is None:  # two signals that come while it stands still count as one
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
        _, err = process.communicate(timeout=PATIENCE)
    holder.close()
    assert (process.returncode, "Traceback" in err) == (4, False), err
    assert shell.run("asked")["state"] == "completed"


def test_a_vacuum_is_refused_while_a_run_is_driven_and_harms_nothing(shell: Shell) -> None:
    shell.declare_workloads()
    with ForkedRehearsal(latency_ms=4000) as rehearsal:
        shell.use(rehearsal)
        run = shell.submit("triage", {"agent": MODEL, "tickets": ["a", "b", "c"]}, concurrency=1)
        with shell.start("runs", "resume", run) as process:
            line_with(process.stderr, "1 on the wire")
            refused = shell.muster("store", "vacuum", "--json")
            process.communicate(timeout=PATIENCE)
    assert (refused.code, refused.error()["code"]) == (4, "conflict")
    assert f"{run} by process {process.pid} on " in refused.error()["message"]
    assert (process.returncode, shell.run(run)["state"]) == (0, "completed")
    assert shell.muster("store", "vacuum").code == 0


def test_a_deletion_that_was_killed_leaves_no_run_and_is_finished_by_the_next_vacuum(shell: Shell) -> None:
    shell.muster("ask", "sim/echo", "a private question", "--name", "asked")
    shell.crash("store.after_commit", "runs", "delete", "asked")
    assert shell.muster("runs", "list", "--json").data() == []
    assert shell.muster("runs", "show", "asked").code == 5
    assert shell.muster("store", "info", "--json").data()["unfinished_deletions"] == 1
    assert shell.muster("store", "vacuum").code == 0
    assert shell.muster("store", "info", "--json").data()["unfinished_deletions"] == 0
    assert b"a private question" not in (shell.folder / ".muster" / "muster.db").read_bytes()
