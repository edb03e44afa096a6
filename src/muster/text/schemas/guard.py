"""Which JSON Schemas are plain, and the processes in which all others are evaluated, with limits that the kernel keeps.

A schema can make any evaluator work without end or eat the memory: by references, by patterns, by keywords that look at
all pairs. No limit inside of the same process holds against all of them.
"""

import asyncio
import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import IO, Any, TypeVar, TypeVarTuple, cast

from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.text.cpu_limit import CpuAllowance
from muster.text.patterns import TooSlow

Arguments = TypeVarTuple("Arguments")
Done = TypeVar("Done")

LARGEST_PLAIN = 10_000  # bytes of a plain schema
MOST_STEPS = 5_000_000  # bytes of a plain schema times bytes of the value
MOST_PROCESSES = 2
MOST_WAITING = 4  # evaluations of one process of ours under way; others wait for them
WALL_SECONDS = 120.0  # for an answer, however busy the machine is
LEAST_SECONDS = 0.001  # of CPU: none at all would be no limit

# Isolated: a folder of the user must not stand in for a module of ours.
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from muster.text.schemas.worker import main; main()"
_ROOT = str(Path(__file__).parents[3])

_SAID = {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly", "format"}
_COMPARED = {"type", "enum", "const", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
             "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"}  # fmt: skip
_STEADY = re.compile(
    r"\^?(?:[\w \-/:,@#]|\\[dswDSW./]|\[\^?[\w\- ]+\]){1,100}\$?"
)  # repeats nothing, so it never tries again
_ONE_SCHEMA = {"items", "additionalProperties", "not"}
_SCHEMAS = {"anyOf", "oneOf", "allOf", "prefixItems"}


def is_plain(schema: Json) -> bool:
    """Return whether every part of a schema is applied at most once to every part of a value, by comparing it."""
    if not isinstance(schema, Mapping):
        return isinstance(schema, bool)
    waiting: list[Any] = [{name: part for name, part in schema.items() if name != "$schema"}]
    while waiting:
        one = waiting.pop()
        if isinstance(one, bool):
            continue
        if not isinstance(one, Mapping):
            return False
        for name, part in one.items():
            inner = _inner(name, part)
            if inner is None:
                return False
            waiting += inner
    return True


def _inner(name: str, part: Any) -> Iterable[Any] | None:
    """Return the schemas inside of a keyword that only compares; None for any other keyword."""
    if name == "properties" and isinstance(part, Mapping):
        return part.values()
    if name in _SCHEMAS and isinstance(part, list | tuple):
        return part
    if name in _ONE_SCHEMA:
        return (part,)
    steady = name == "pattern" and isinstance(part, str) and _STEADY.fullmatch(part)
    return () if steady or name in _SAID or name in _COMPARED else None


async def in_schema_thread(work: Callable[[*Arguments], Done], *arguments: *Arguments) -> Done:
    """Run work that may evaluate schemas or patterns in a thread that nothing else waits for."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), work, *arguments)


def guarded_schema_flaw(schema: bytes, allowance: CpuAllowance) -> str | None:
    """Return why a JSON text is not a JSON Schema; raises TooSlow, or BadArgument when that cannot be known."""
    return _processes(os.getpid()).ask({"schema": schema.decode()}, allowance)


def guarded_flaw(value: Json, schema: bytes, allowance: CpuAllowance) -> str | None:
    """Return what in a value does not fit a schema; raises TooSlow, or BadArgument when that cannot be known."""
    return _processes(os.getpid()).ask({"schema": schema.decode(), "value": value}, allowance)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_WAITING, thread_name_prefix="schemas")


@cache
def _processes(pid: int) -> "_Evaluators":
    """Return the evaluators of this process; after a fork there are none yet."""
    return _Evaluators()


class _Evaluators:
    """A few processes that are started when they are needed, and kept."""

    def __init__(self) -> None:
        self._turn = threading.BoundedSemaphore(MOST_PROCESSES)
        self._idle: list[_Evaluator] = []

    def ask(self, request: dict[str, Any], allowance: CpuAllowance) -> str | None:
        """Return the answer of a process; the CPU that it used is taken from the allowance."""
        try:
            line = json.dumps({**request, "seconds": max(allowance.left, LEAST_SECONDS)}).encode() + b"\n"
        except (ValueError, RecursionError) as error:
            raise BadArgument(f"the schema cannot be evaluated: {error}") from error
        with self._turn:
            answer = self._answer(line)
        if answer is None:
            allowance.spend(allowance.left)
            raise TooSlow("the schema takes too long on this answer")
        allowance.spend(answer.get("cpu", 0.0))
        if "refused" in answer:
            raise BadArgument(answer["refused"])
        wrong: str | None = answer["wrong"]
        return wrong

    def _answer(self, line: bytes) -> dict[str, Any] | None:
        """Return what a process says, None when it used up its CPU; one that had just left is replaced."""
        while True:
            process = self._idle.pop() if self._idle else _Evaluator()
            answer = process.ask(line)
            if answer:
                self._idle.append(process)
                found: dict[str, Any] = json.loads(answer)
                return found
            code = process.end()
            if code in (-signal.SIGPROF, -signal.SIGKILL):
                return None
            if code != 0:
                return {"refused": "the schema cannot be evaluated: it takes too much memory"}


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
