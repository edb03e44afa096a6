"""Listens to one process of a CLI agent: reads its lines, and notices when it is done."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from muster.agents.base import DeltaCollector
from muster.agents.cli.output import CliOutput
from muster.agents.cli.questions import MAX_QUESTION, NO_QUESTIONS, QuestionPatterns
from muster.agents.local import (
    LineBuffer,
    object_of,
    retold,
)
from muster.agents.processes.conversation import MAX_OUTPUT, too_long, wait_for_output
from muster.agents.processes.feed import MessageFeed
from muster.agents.processes.process import Process
from muster.domain.agent import Timeouts
from muster.domain.errors import BadOutput
from muster.text.json_documents import readable

EXIT_SECONDS = 1.0  # seconds that a program has to exit when it has answered, or has closed its output

_AT_ONCE = 256  # lines that are read before others get their turn
_SAMPLE = 1_000  # bytes of its last line that are kept for a message


class Listener:
    """Reads the lines of one process into findings."""

    def __init__(
        self,
        process: Process,
        found: CliOutput,
        timeouts: Timeouts,
        deltas: DeltaCollector,
        questions: QuestionPatterns = NO_QUESTIONS,
    ) -> None:
        self._process, self._found, self._timeouts, self._deltas = process, found, timeouts, deltas
        self._questions = questions  # that stand between the lines of JSON
        self._clock = asyncio.get_running_loop().time
        self._lines = LineBuffer()
        self.sample = b""  # the beginning of the last line that it wrote
        self.feed: MessageFeed | None = None  # of one that is told more while it works

    async def listen(self) -> int | None:
        """Read all that is of use, and give the exit status; None for one that did not exit by itself."""
        process, deadline = self._process, self._clock() + self._timeouts.call
        while process.status is None and not process.silent and not self._found.over:
            await wait_for_output(process, deadline, self._timeouts, self._found.tools.at)
            await self._take(process.take())
        if self.feed is not None:
            self.feed.stop()
            process.close_input()
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
        """Wait a moment for it to exit by itself; one that asks for permission would only wait."""
        until = self._clock() + EXIT_SECONDS
        while self._process.status is None and self._found.permission is None and self._clock() < until:
            await self._process.news(until)
            await self._take(self._process.take())

    async def _take(self, data: bytes) -> None:
        for number, line in enumerate(self._lines.feed(data), 1):
            if self._found.over:
                return  # what comes after the last line is no part of the answer
            self._read(line)
            if self.feed is not None:
                await self._acknowledge(self.feed)
            if number % _AT_ONCE == 0:
                await asyncio.sleep(0)
        if self._lines.waiting > MAX_OUTPUT:
            raise too_long(self._process)
        if not self._found.over and not self._lines.may_be_object():
            self._look_for_question(self._lines.end_of_rest(MAX_QUESTION))  # which often does not end its line

    async def _acknowledge(self, feed: MessageFeed) -> None:
        taken, self._found.taken = self._found.taken, []
        await feed.acknowledge(taken)

    def _read(self, line: bytes) -> None:
        if line.strip():
            self.sample = line[:_SAMPLE]
        said = object_of(line)
        if said is not None:
            with naming(self._process):
                text = self._found.take(said)
            self._deltas.add(text)
        else:
            self._look_for_question(line)

    def _look_for_question(self, line: bytes) -> None:
        with naming(self._process):
            question = self._questions.find(readable(line)) if line.strip() else None
        if question is not None:
            self._found.ask(question.tool, {"text": question.line})


@contextmanager
def naming(process: Process) -> Iterator[None]:
    """Add the name of the agent to errors about its output."""
    try:
        yield
    except BadOutput as error:
        raise retold(error, f"agent {process.order.agent!r}: ", log=process.log.text) from error
