"""Drivers in different PID namespaces of one host that share a store: no living one is taken for dead."""

import os
import select
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tests.variants import first_of

from .shell import COMMAND, PATIENCE, Result, Shell

# With a /proc of its own, as in a container, and with the one of the host, as in a sandbox that mounts nothing.
SPACES = {"container": ("--mount-proc",), "sandbox": ()}

# Answers when there is something in the pipe `go`; says before that it has started.
PROGRAM = "echo yes > started; read -r _ < go; echo done"


@cache
def unshare() -> tuple[str, ...]:
    """Return the command that starts another one in a PID namespace of its own."""
    refusals = []
    for more in ((), ("--user", "--map-root-user")):
        command = ("unshare", *more, "--pid", "--fork", "--kill-child", "--mount-proc")
        tried = subprocess.run([*command, "true"], capture_output=True, text=True)
        if tried.returncode == 0:
            return command[:-1]
        refusals.append(tried.stderr.strip())
    pytest.fail(f"these tests make PID namespaces, which this system refuses: {refusals}")


@contextmanager
def driving(shell: Shell, *space: str) -> "Iterator[tuple[subprocess.Popen[str], Callable[[], object]]]":
    """Start a run, in a namespace of its own if one is given, with one call that waits for its answer."""
    command = f"['bash', '-c', '{PROGRAM}']"
    started, go = (pipe(shell.folder / name) for name in ("started", "go"))
    shell.write("muster.toml", f'[agents.slow]\nkind = "program"\nmode = "plain"\ncommand = {command}\n')
    with subprocess.Popen(
        [*space, *COMMAND, "ask", "slow", "hello", "--name", "asked"],
        cwd=shell.folder,
        env=shell.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            ready, _, _ = select.select([started], [], [], PATIENCE)
            assert ready
            yield process, lambda: os.write(go, b"\n")
        finally:
            process.kill()
            os.close(started)
            os.close(go)


def pipe(path: Path) -> int:
    """Make a pipe with a name; opened for both ends, so that it is never at its end and can be written to at once."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR | os.O_NONBLOCK)


def muster(shell: Shell, space: tuple[str, ...], *arguments: str) -> Result:
    done = subprocess.run(
        [*space, *COMMAND, *arguments],
        cwd=shell.folder,
        env=shell.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    return Result(code=done.returncode, out=done.stdout, err=done.stderr)


@pytest.mark.parametrize("space", first_of(SPACES))
@pytest.mark.parametrize("inside", first_of(["driver", "visitor", "both"], 2))
def test_a_living_driver_of_another_namespace_keeps_its_run_and_its_program(
    shell: Shell, inside: str, space: str
) -> None:
    there = (*unshare(), *SPACES[space])
    with driving(shell, *(there if inside in ("driver", "both") else ())) as (process, answer):
        visit = there if inside in ("visitor", "both") else ()
        resumed = muster(shell, visit, "runs", "resume", "asked", "--json")  # which looks for dead drivers first
        assert "is being executed by process" in resumed.error()["message"]
        assert shell.run("asked")["state"] == "running"
        answer()
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out) == (0, "done\n"), err
    run = shell.run("asked")
    assert (run["state"], run["calls"]["uncertain"]) == ("completed", 0)


@pytest.mark.parametrize("space", SPACES)
def test_a_process_in_a_namespace_ends_what_it_started_and_nothing_else(shell: Shell, space: str) -> None:
    with driving(shell, *unshare(), *SPACES[space]) as (process, answer):
        answer()
        out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, "Traceback" in err) == (0, "done\n", False)
