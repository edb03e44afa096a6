"""Questions to people while a command drives a run: told once, or asked in the terminal that the person sits at."""

import asyncio
import os
import shlex
import sys
from collections.abc import Callable

from muster.app import Muster
from muster.app.runs.questions import OpenQuestion
from muster.cli.terminal.output import warn, write_to
from muster.domain.errors import BadArgument, Conflict
from muster.domain.ids import RunId

LOOK_SECONDS = 0.5
MAX_TOLD = 5  # questions of one run; the others are counted
MAX_PROMPT = 2000  # characters of a question that is told
MAX_LINE = 65_536  # bytes that are read at once


class QuestionTeller:
    """Looks for open questions of a run now and then, and tells each once or asks it in the terminal."""

    def __init__(self, muster: Muster, run: RunId, tell: Callable[[str], None], *, prompts: bool = False) -> None:
        self._muster, self._run, self._tell, self._prompts = muster, run, tell, prompts
        self._told: set[tuple[RunId, str]] = set()
        self._next = 0.0
        self._prompting: asyncio.Task[None] | None = None
        self._prompted: tuple[RunId, str] | None = None

    async def look(self) -> None:
        """Tell what is asked since the last look."""
        now = asyncio.get_running_loop().time()
        if now < self._next:
            return
        self._next = now + LOOK_SECONDS
        found = {(one.run, one.key): one for one in await self._muster.runs.questions(self._run)}
        if self._prompted not in found:  # somebody answered it elsewhere
            self.close()
        for name, question in found.items():
            if name not in self._told and self._prompting is None:
                self._told.add(name)
                self._begin(name, question)

    def close(self) -> None:
        """Ask nothing any more."""
        if self._prompting is not None:
            self._prompting.cancel()
        self._prompting = self._prompted = None

    def _begin(self, name: tuple[RunId, str], question: OpenQuestion) -> None:
        if self._prompts:
            self._prompted = name
            self._prompting = asyncio.get_running_loop().create_task(ask_in_terminal(self._muster, question))
        elif len(self._told) <= MAX_TOLD:
            self._tell(question_words(question))
        elif len(self._told) == MAX_TOLD + 1:
            self._tell(f"more questions are open; list them with: muster runs show {self._run}")


def question_words(question: OpenQuestion) -> str:
    """Return what a person is asked, and how to answer."""
    return f"{_asked(question)}\n  answer with: {question.command}"


def _asked(question: OpenQuestion) -> str:
    prompt = question.prompt
    call = f"muster runs show {question.run} --call {shlex.quote(question.key)}"
    shown = prompt if len(prompt) <= MAX_PROMPT else f"{prompt[:MAX_PROMPT]}…\n  (read it whole with: {call})"
    shape = f"\n  (the answer must be JSON that fits a schema, shown by: {call} --json)" if question.schema else ""
    return f"{question.agent} is asked: {shown}{shape}"


async def ask_in_terminal(muster: Muster, question: OpenQuestion) -> None:
    """Ask for one line until it is taken as the answer; at the end of input, tell how else to answer."""
    warn(_asked(question))
    while True:
        write_to(sys.stderr, "answer: ")
        line = await read_line(sys.stdin.fileno())
        if line is None:
            warn(f"\nanswer with: {question.command}")
            return
        try:
            await muster.runs.answer(question.run, line.rstrip("\r\n"), key=question.key)
            return
        except BadArgument as error:
            warn(error.message)
        except Conflict as error:
            warn(error.message)
            return


async def read_line(terminal: int) -> str | None:
    """Read a line of a terminal without holding anything else up; None at the end of input."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(terminal, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(terminal)
    line = os.read(terminal, MAX_LINE)
    return line.decode("utf-8", "surrogateescape") if line else None
