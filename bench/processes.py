"""Processes of a benchmark: one that dies is an error with its signal and its last lines, and nobody waits for it."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

LAST_LINES = 20

T = TypeVar("T")


class ChildDied(Exception):
    """A process ended that should not have, or with an error."""


def run_child(command: Sequence[str]) -> dict[str, Any]:
    """Run a process to its end and return the figures that it prints as JSON; raises ChildDied."""
    with tempfile.TemporaryFile("w+") as errors:
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=errors, text=True)
        if done.returncode:
            raise died(command, done.returncode, errors)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def died(command: Sequence[str], code: int, errors: IO[str], said: str = "") -> ChildDied:
    """Return the error about a process that ended: how it ended, and the last lines that it wrote."""
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
    errors.seek(0)
    last = "".join(f"\n  {line.rstrip()}" for line in (said, *errors.readlines()[-LAST_LINES:]) if line)
    return ChildDied(f"{' '.join(command[1:])} {how}{last}")


@dataclass(frozen=True, slots=True)
class BenchServer:
    """A `muster serve` under way."""

    url: str
    process: "subprocess.Popen[str]"

    async def beside(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what some work comes to; raises ChildDied when the server ends before it does."""
        watched = os.pidfd_open(self.process.pid)
        ended, loop = asyncio.Event(), asyncio.get_running_loop()
        loop.add_reader(watched, ended.set)
        working, waiting = asyncio.ensure_future(work), asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                raise ChildDied("the server has ended")
            return await working
        finally:
            loop.remove_reader(watched)
            os.close(watched)
            waiting.cancel()
            working.cancel()
            await asyncio.wait((working, waiting))


@contextmanager
def serving(folder: Path, environment: Mapping[str, str] | None = None) -> Iterator[BenchServer]:
    """Serve the store of a folder; raises ChildDied when the server has ended before the block has."""
    command = [sys.executable, "-m", "muster", "serve", "--port", "0", "--json"]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        try:
            line = process.stdout.readline() if process.stdout else ""
            if '"url"' not in line:
                raise ChildDied(f"the server does not start: {line}")
            yield BenchServer(json.loads(line)["url"], process)
        except Exception as error:  # of whoever was cut off by its end
            if isinstance(error, ChildDied) or process.poll() is not None:
                raise died(command, process.wait(), errors, str(error)) from error
            raise
        finally:
            if process.poll() is None:
                process.kill()
