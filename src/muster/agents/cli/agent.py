"""The agent that is a CLI: it starts the program once for each call, listens, and ends it with its whole group.

What a call came to, a reply or a failure, is decided purely when the process is over.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from muster.agents.base import DeltaCollector, OnDelta
from muster.agents.cli.dialect import Dialect, Output, Unfit, fill, join, named_in
from muster.agents.cli.output import CliOutput, sample_of, shown
from muster.agents.local import (
    LineBuffer,
    budget_of,
    exit_of,
    folder_of,
    object_of,
    retold,
    session_of,
    setting_of,
    transcript_of,
    variables_of,
)
from muster.agents.processes.conversation import MOST_OUTPUT, communicate, too_long, wait_for_output
from muster.agents.processes.process import Process, ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.usage import ProcessBill, max_tokens_of
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Stop, Timings, Trace
from muster.domain.canonical import Json
from muster.domain.errors import AgentFailed, BadConfiguration, BadExit, BadOutput, NotStarted, PermissionAsked
from muster.domain.money import Lane, Microdollars
from muster.domain.script import count_tokens
from muster.text.json_documents import find, parseable, readable
from muster.text.json_schema import require_schema, shaped


class CliAgent:
    """Any CLI agent, as its dialect describes it."""

    def __init__(
        self,
        *,
        profile: Profile,
        processes: ProcessRegistry,
        order: ProcessCommand,
        dialect: Dialect,
        most: Microdollars | None,
        unpriced_ok: bool = False,
        lane: Lane = Lane.BILLED,
    ) -> None:
        self._profile, self._processes, self._order, self._dialect = profile, processes, order, dialect
        self._bill, self._unpriced_ok = ProcessBill(most=most, lane=lane), unpriced_ok

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of one attempt: what the settings reserve for it."""
        bill = self._bill_of(request)
        if bill.most is None and not self._unpriced_ok:
            raise _no_budget(self._profile.name)
        tokens = count_tokens(transcript_of(request)) + max_tokens_of(request)
        return Quote(most=bill.reserved, tokens=max(1, tokens))

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Start the program, ask once and give the whole reply."""
        require_schema(request)
        order, bill = self._ordered(request), self._bill_of(request)
        found = CliOutput(self._dialect.places)
        deltas = DeltaCollector(asyncio.get_running_loop().time, on_delta)
        status: int | None = None
        try:
            async with self._processes.process(order) as process:
                status, sample = await self._read_output(process, found, timeouts, deltas)
            # Judged when the process is over: only then all of its log is there.
            ending = ProcessExit(status=status, log=process.log.text, sample=sample, broken=process.broken)
            reader = OutcomeReader(agent=self._profile.name, dialect=self._dialect_of(request), bill=bill)
            reply = reader.reply(request, found, ending, deltas.timings())
        except AgentFailed as error:
            # What it had cost until it was stopped is not what it cost in the end.
            by_itself = status is not None or found.ended or found.error is not None
            answered = isinstance(error, BadOutput) and found.whole and found.error is None
            bill.charge(error, found.cost if by_itself else None, sure=answered or found.limited)
            raise
        deltas.finish(reply.text)
        return reply

    async def close(self) -> None:
        """Do nothing: every call ends its own process, and the registry is its owner's."""

    def _bill_of(self, request: Request) -> ProcessBill:
        budget = budget_of(request)
        return self._bill if budget is None else replace(self._bill, most=budget)

    def _dialect_of(self, request: Request) -> Dialect:
        model = setting_of(request, "model")
        return self._dialect if model is None else replace(self._dialect, model=model)

    def _ordered(self, request: Request) -> ProcessCommand:
        """Write the command and the input of one call."""
        session = session_of(request)
        arguments = join(self._dialect.command, self._resume(session))
        names = named_in(arguments)
        prompt = _plain(transcript_of(request, system="system" not in names))
        values = {
            "prompt": prompt,
            "system": _plain(request.system),
            "model": self._dialect_of(request).model or "",
            "session": _plain(session or ""),
            "budget": self._bill_of(request).told,
        }
        try:
            command = fill(arguments, values)
        except Unfit as unfit:
            message = f"agent {self._profile.name!r}: {unfit.message}"
            raise NotStarted(message, suggestions=(unfit.suggestion,)) from unfit
        given = None if "prompt" in names else prompt.encode()
        return replace(
            self._order,
            command=command,
            folder=folder_of(request, self._order.folder or Path()),
            environment={**self._order.environment, **variables_of(request)},
            input=given,
        )

    def _resume(self, session: str | None) -> tuple[str, ...]:
        if session is None:
            return ()
        if not self._dialect.resume:
            raise NotStarted(
                f"agent {self._profile.name!r}: a session cannot be resumed: resume is not set",
                suggestions=('set its resume arguments in muster.toml: resume = ["--resume", "{session}"]',),
            )
        return self._dialect.resume

    async def _read_output(
        self, process: Process, found: CliOutput, timeouts: Timeouts, deltas: DeltaCollector
    ) -> tuple[int | None, str]:
        """Take what it writes; returns its exit status and a sample for messages."""
        if self._dialect.output is Output.LINES:
            listener = Listener(process, found, timeouts, deltas)
            return await listener.listen(), sample_of(listener.sample)
        finished = await communicate(process, timeouts)
        if self._dialect.output is Output.TEXT:
            found.answer = readable(finished.output).rstrip("\r\n") or None
        else:
            with naming(process):
                self._find(finished.output, found)
        return finished.status, sample_of(finished.output)

    def _find(self, output: bytes, found: CliOutput) -> None:
        said = find(parseable(output), self._fits)
        if said is not None:
            found.take(said)

    def _fits(self, said: Json) -> bool:
        """Return whether an object is the answer and not other output: it has the answer, or the error."""
        tried = CliOutput(self._dialect.places)
        tried.take(said)
        return tried.answer is not None or tried.error is not None


def _plain(text: str) -> str:
    """Return a text that can be written in UTF-8: halves of characters are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _no_budget(agent: str) -> BadConfiguration:
    return BadConfiguration(
        f"the maximum cost of a call of {agent} is unknown",
        suggestions=(
            f"add budget_usd = 0.50 to [agents.{agent}]: the maximum cost of one call; 0 if calls are free",
            "or allow uncounted costs: --allow-unpriced",
        ),
    )


EXIT_SECONDS = 1.0  # seconds that a program has to exit when it has answered, or has closed its output

_AT_ONCE = 256  # lines that are read before others get their turn
_SAMPLE = 1_000  # bytes of its last line that are kept for a message


class Listener:
    """Reads the lines of one process into findings."""

    def __init__(self, process: Process, found: CliOutput, timeouts: Timeouts, deltas: DeltaCollector) -> None:
        self._process, self._found, self._timeouts, self._deltas = process, found, timeouts, deltas
        self._clock = asyncio.get_running_loop().time
        self._lines = LineBuffer()
        self.sample = b""  # the beginning of the last line that it wrote

    async def listen(self) -> int | None:
        """Read all that is of use, and give the exit status; None for one that did not exit by itself."""
        process, deadline = self._process, self._clock() + self._timeouts.call
        while process.status is None and not process.silent and not self._found.over:
            await wait_for_output(process, deadline, self._timeouts, self._found.tools.at)
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
    """Add the name of the agent to errors about its output."""
    try:
        yield
    except BadOutput as error:
        raise retold(error, f"agent {process.order.agent!r}: ", log=process.log.text) from error


_LONGEST_LOG = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How a process ended."""

    status: int | None  # None: it did not exit by itself
    log: str
    sample: str  # the beginning of the last thing that it wrote
    broken: bool  # it closed its input before it had all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeReader:
    """Reads what was found when it is all there."""

    agent: str
    dialect: Dialect
    bill: ProcessBill

    def reply(self, request: Request, found: CliOutput, ending: ProcessExit, timings: Timings) -> Reply:
        """Return the reply, or raise the failure."""
        failure = self.failure(found, ending)
        if failure is not None:
            raise failure
        cost, lane = self.bill.settle(found.cost)
        return Reply(
            text=shown(found.answer),
            stop=Stop.END,
            tool_calls=found.tools.calls,
            usage=found.usage,
            cost=cost,
            lane=lane,
            model=self.dialect.model or self.agent,
            id=found.session,
            timings=timings,
            data=self._data(request, found.answer, ending),
            trace=Trace(session=found.session, turns=found.turns, log=ending.log, note=_note(ending)),
        )

    def failure(self, found: CliOutput, ending: ProcessExit) -> AgentFailed | None:
        """Return why there is no reply; None when there is one."""
        if found.permission is not None:
            return self._permission(found.permission, ending)
        if found.error is not None:
            return self._failed(AgentFailed, f"reports that it failed: {found.error}", ending)
        if self.dialect.output is Output.TEXT and ending.status != 0:
            return self._without_answer(ending)
        return None if found.whole else self._without_answer(ending, ended=found.ended)

    def _permission(self, tool: str, ending: ProcessExit) -> AgentFailed:
        error = self._failed(
            PermissionAsked,
            f"asks for permission to use {tool}, which cannot be granted here; it was stopped",
            ending,
            f"allow {tool} in its command or its own settings, or disable the tool",
        )
        error.tool = tool
        return error

    def _without_answer(self, ending: ProcessExit, *, ended: bool = False) -> AgentFailed:
        if ending.status is None and not ended:
            return self._failed(BadExit, "closed its output without an answer and did not exit; it was stopped", ending)
        if ending.status and not ended:
            said = f": {ending.log[:_LONGEST_LOG].strip()}" if ending.log.strip() else ""
            return self._failed(BadExit, f"{exit_of(ending.status)} without an answer{said}", ending)
        wrote = f"; it wrote last: {ending.sample}" if ending.sample else "; it wrote nothing"
        return self._failed(BadOutput, f"ended without an answer{self._at()}{wrote}", ending)

    def _at(self) -> str:
        answer = self.dialect.places.answer
        return "" if answer is None else f" at {answer.text}"

    def _data(self, request: Request, answer: Json, ending: ProcessExit) -> Json:
        """Return the answer as data, if it was asked for as such."""
        if request.schema is None:
            return None
        try:
            return shaped(request, Stop.END, shown(answer), None if isinstance(answer, str) else answer)
        except BadOutput as error:
            raise retold(error, f"agent {self.agent!r}: ", log=ending.log) from error

    def _failed(self, kind: type[AgentFailed], what: str, ending: ProcessExit, *suggestions: str) -> AgentFailed:
        return kind(f"agent {self.agent!r}: {what}", log=ending.log, suggestions=suggestions)


def _note(ending: ProcessExit) -> str:
    notes = []
    if ending.status is None:
        notes.append("it did not exit after its answer")
    elif ending.status:
        notes.append(f"it {exit_of(ending.status)} after its answer")
    if ending.broken:
        notes.append("it did not read all of its input")
    return "; ".join(notes)
