"""Processes in which schemas and patterns of strangers are evaluated, with limits of CPU and memory by the kernel.

No limit inside of the same process holds against all of them: compiled code holds the interpreter's lock, looks at no
clock while it compiles, and keeps what it allocated. See worker.py for the program that runs in them.
"""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.text.limited.allowance import CpuAllowance

MAX_PROCESSES = 2
WALL_SECONDS = 120.0  # for an answer, however busy the machine is
MIN_SECONDS = 0.001  # of CPU: none at all would be no limit

# Isolated: a folder of the user must not stand in for a module of ours.
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from muster.text.limited.worker import main; main()"
_ROOT = str(Path(__file__).parents[3])


class TooSlow(BadArgument):
    """What was given would take too long."""


def evaluate_elsewhere(
    what: str, request: Mapping[str, Json], allowance: CpuAllowance, seconds: float | None = None
) -> dict[str, Any]:
    """Return the answer of a process; the CPU that it used is taken from the allowance.

    The limit is what the allowance has left, unless `seconds` is another one. Raises TooSlow beyond it, and
    BadArgument when the answer cannot be known; `what` is the subject of these sentences.
    """
    limit = max(allowance.left if seconds is None else seconds, MIN_SECONDS)
    try:
        line = json.dumps({**request, "seconds": limit}).encode() + b"\n"
    except (ValueError, RecursionError) as error:
        raise BadArgument(f"{what} cannot be evaluated: {error}") from error
    answer = _processes(os.getpid()).ask(line)
    if answer is None:
        allowance.spend(limit)
        raise TooSlow(f"{what} takes too long on this answer")
    allowance.spend(answer.get("cpu", 0.0))
    if answer.get("memory"):
        raise BadArgument(f"{what} cannot be evaluated: it takes too much memory")
    if "refused" in answer:
        raise BadArgument(answer["refused"], suggestions=tuple(answer.get("suggestions", ())))
    return answer


@cache
def _processes(pid: int) -> "_Evaluators":
    """Return the evaluators of this process; after a fork there are none yet."""
    return _Evaluators()


class _Evaluators:
    """A few processes that are started when they are needed, and kept."""

    def __init__(self) -> None:
        self._turn = threading.BoundedSemaphore(MAX_PROCESSES)
        self._idle: list[_Evaluator] = []

    def ask(self, line: bytes) -> dict[str, Any] | None:
        """Return what a process says, None when it used up its CPU; one that had just left is replaced."""
        with self._turn:
            while True:
                process = self._idle.pop() if self._idle else _Evaluator()
                answer = process.ask(line)
                if answer:
                    self._idle.append(process)
                    found: dict[str, Json] = json.loads(answer)
                    return found
                code = process.end()
                if code in (-signal.SIGPROF, -signal.SIGKILL):
                    return None
                if code != 0:
                    return {"memory": True}


class _Evaluator:
    """One process."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - our own program, no shell
            [sys.executable, "-I", "-c", _PROGRAM, _ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},  # keys and tokens are no business of its
        )
        self._asked, self._said = cast(IO[bytes], self._process.stdin), cast(IO[bytes], self._process.stdout)

    def ask(self, line: bytes) -> bytes:
        """Return the line that it answers, empty when it has ended; one that takes for ever is killed."""
        try:
            self._asked.write(line)
            self._asked.flush()
        except BrokenPipeError:
            return b""
        until, found, said = time.monotonic() + WALL_SECONDS, b"", select.poll()
        said.register(self._said, select.POLLIN)
        while not found.endswith(b"\n"):
            if not said.poll(1000 * max(0.0, until - time.monotonic())):
                self._process.kill()
                return b""
            more = os.read(self._said.fileno(), 65_536)
            if not more:
                return b""
            found += more
        return found

    def end(self) -> int:
        """Wait until it has ended, and return its exit code."""
        for stream in (self._asked, self._said):
            with contextlib.suppress(BrokenPipeError):  # of what it did not read any more
                stream.close()
        return self._process.wait()
