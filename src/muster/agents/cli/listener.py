"""Listens to a program that writes JSON lines, until its last line, its exit or the end of its output."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from muster.agents.cli.findings import Findings
from muster.agents.deltas import Deltas
from muster.agents.lines import Lines, object_of
from muster.agents.processes.conversation import MOST_OUTPUT, hear, too_long
from muster.agents.processes.process import Process
from muster.agents.retold import retold
from muster.domain.agent import Timeouts
from muster.domain.errors import BadOutput

MOMENT = 1.0  # seconds that a program has to exit when it has answered, or has closed its output

_AT_ONCE = 256  # lines that are read before others get their turn
_SAMPLE = 1_000  # bytes of its last line that are kept for a message


class Listener:
    """Reads the lines of one process into findings."""

    def __init__(self, process: Process, found: Findings, timeouts: Timeouts, deltas: Deltas) -> None:
        self._process, self._found, self._timeouts, self._deltas = process, found, timeouts, deltas
        self._clock = asyncio.get_running_loop().time
        self._lines = Lines()
        self.sample = b""  # the beginning of the last line that it wrote

    async def listen(self) -> int | None:
        """Read all that is of use, and give the exit status; None for one that did not exit by itself."""
        process, deadline = self._process, self._clock() + self._timeouts.call
        while process.status is None and not process.silent and not self._found.over:
            await hear(process, deadline, self._timeouts, self._found.tools.at)
            await self._take(process.take())
        if process.status is None:
            await self._let_exit()
        status = process.status
        # What others of its group still write is not its answer: only what is there already is read.
        process.drain()
        await self._take(process.take())
        if not self._found.over:
            self._read(self._lines.rest())
        return status

    async def _let_exit(self) -> None:
        """Give it a moment to exit by itself; one that asks for permission would only wait."""
        until = self._clock() + MOMENT
        while self._process.status is None and self._found.permission is None and self._clock() < until:
            await self._process.news(until)
            await self._take(self._process.take())

    async def _take(self, data: bytes) -> None:
        for number, line in enumerate(self._lines.feed(data), 1):
            if self._found.over:
                return  # what comes after the last line is no part of the answer
            self._read(line)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        if self._lines.waiting > MOST_OUTPUT:
            raise too_long(self._process)

    def _read(self, line: bytes) -> None:
        if line.strip():
            self.sample = line[:_SAMPLE]
        said = object_of(line)
        if said is not None:
            with naming(self._process):
                text = self._found.take(said)
            self._deltas.add(text)


@contextmanager
def naming(process: Process) -> Iterator[None]:
    """Say whose output it is that cannot be read."""
    try:
        yield
    except BadOutput as error:
        raise retold(error, f"agent {process.order.agent!r}: ", log=process.log.text) from error
