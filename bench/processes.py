"""Processes of a benchmark: one that dies is an error with its signal and its last lines, and nobody waits for it."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

LAST_LINES = 20
STOP_SECONDS = 10.0  # for a process that is told to end, to end those that it has started

T = TypeVar("T")


class ChildDied(Exception):
    """A process ended that should not have, or with an error."""


class Helper(Protocol):
    """A process that another one needs, such as a rehearsal server."""

    @property
    def pid(self) -> int:
        """The id of the process."""


@dataclass(frozen=True, slots=True)
class Child:
    """A process under way, with what it writes."""

    command: Sequence[str]
    process: "subprocess.Popen[str]"
    written: IO[str]
    errors: IO[str]

    def output(self) -> str:
        """Return what a process that has ended wrote; raises ChildDied when it ended with an error."""
        if code := self.process.wait():
            raise died(self.command, code, self.errors)
        self.written.seek(0)
        return self.written.read()


def run_child(command: Sequence[str], beside: Helper | None = None) -> dict[str, Any]:
    """Run a process to its end and return the figures that it prints as JSON; raises ChildDied.

    With a process `beside` it, that must not end before.
    """
    with started(command) as child:
        wait_for([child], beside)
        text = child.output()
        try:
            figures: dict[str, Any] = json.loads(text)
        except ValueError:
            raise died(command, 0, child.errors, f"it printed no figures:{_last(text.splitlines())}") from None
        return figures


def wait_for(children: Sequence[Child], beside: Helper | None = None) -> None:
    """Wait until all have ended; raises ChildDied when one fails, or when a process ends that they need."""
    with ExitStack() as stack:
        waiting = {stack.enter_context(_watched(child.process.pid)): child for child in children}
        needed = {} if beside is None else {stack.enter_context(_watched(beside.pid)): beside}
        while waiting:
            ended, _, _ = select.select([*waiting, *needed], [], [])
            for number in ended:
                if number in needed:
                    raise ChildDied(f"{type(beside).__name__} {_how(_code_of(number))} beside {_told(children)}")
                waiting.pop(number).output()


@contextmanager
def started(
    command: Sequence[str], folder: Path | None = None, environment: Mapping[str, str] | None = None
) -> Iterator[Child]:
    """Start a process, which never outlives the block."""
    with (
        tempfile.TemporaryFile("w+") as written,
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, cwd=folder, env=environment, stdout=written, stderr=errors, text=True) as process,
    ):
        try:
            yield Child(command, process, written, errors)
        finally:
            _end(process)


def _end(process: "subprocess.Popen[str]") -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


@contextmanager
def _watched(pid: int) -> Iterator[int]:
    """Open a descriptor that can be read when a process has ended."""
    number = os.pidfd_open(pid)
    try:
        yield number
    finally:
        os.close(number)


def _code_of(number: int) -> int:
    """Return how a process has ended, and leave that for whoever started it."""
    ended = os.waitid(os.P_PIDFD, number, os.WEXITED | os.WNOWAIT)
    if ended is None:
        return 0
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def died(command: Sequence[str], code: int, errors: IO[str], said: str = "") -> ChildDied:
    """Return the error about a process that ended: how it ended, and the last lines that it wrote."""
    errors.seek(0)
    return ChildDied(f"{' '.join(command[1:])} {_how(code)}{_last([said])}{_last(errors.readlines())}")


def _how(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"


def _last(lines: Sequence[str]) -> str:
    return "".join(f"\n  {line.rstrip()}" for line in lines[-LAST_LINES:] if line)


def _told(children: Sequence[Child]) -> str:
    return ", ".join(" ".join(child.command[1:]) for child in children)


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
