"""The agent that is a CLI: it starts the program once for each call, listens, and ends it with its whole group.

What a call came to, a reply or a failure, is decided purely when the process is over.
"""

import asyncio
import shlex
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

from muster.agents.base import DeltaCollector, Inbox, InboxMessage, OnDelta, read_answer
from muster.agents.cli.dialect import Dialect, Output, Unfit, fill, join, named_in, split_options
from muster.agents.cli.listener import Listener, naming
from muster.agents.cli.outcome import OutcomeReader, ProcessExit
from muster.agents.cli.output import CliOutput, sample_of
from muster.agents.cli.questions import QuestionSeen, QuestionWatch
from muster.agents.local import (
    budget_of,
    folder_of,
    granted_of,
    mcp_config_of,
    session_of,
    setting_of,
    transcript_of,
    variables_of,
)
from muster.agents.processes.conversation import communicate
from muster.agents.processes.feed import MessageFeed
from muster.agents.processes.process import Process, ProcessCommand
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.usage import ProcessBill, max_tokens_of
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import AgentFailed, BadConfiguration, BadOutput, NotStarted
from muster.domain.money import Lane, Microdollars
from muster.domain.script import count_tokens
from muster.text.json_documents import find, parseable, readable
from muster.text.schemas.json_schema import require_schema


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

    @property
    def takes_messages(self) -> bool:
        """Return whether its dialect says how it is told more while it works."""
        return self._dialect.message is not None

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Start the program, ask once and give the whole reply."""
        return await self._ask(request, timeouts, None, on_delta)

    async def converse(
        self, request: Request, timeouts: Timeouts, inbox: Inbox, on_delta: OnDelta | None = None
    ) -> Reply:
        """Ask once, and write what comes into the inbox meanwhile to its input."""
        return await self._ask(request, timeouts, inbox, on_delta)

    async def _ask(self, request: Request, timeouts: Timeouts, inbox: Inbox | None, on_delta: OnDelta | None) -> Reply:
        require_schema(request)
        order, bill = self._ordered(request), self._bill_of(request)
        if inbox is not None:
            order = replace(order, input=order.input or b"", stays_open=True)
        found = CliOutput(self._dialect.places)
        deltas = DeltaCollector(asyncio.get_running_loop().time, on_delta)
        status: int | None = None
        try:
            async with self._processes.process(order) as process:
                status, sample = await self._read_output(process, found, timeouts, deltas, inbox)
            # Judged when the process is over: only then all of its log is there.
            ending = ProcessExit(status=status, log=process.log.text, sample=sample, broken=process.broken)
            reader = OutcomeReader(agent=self._profile.name, dialect=self._dialect_of(request), bill=bill)
            reply = await read_answer(request, reader.reply, request, found, ending, deltas.timings())
        except AgentFailed as error:
            # What it had cost until it was stopped is not what it cost in the end.
            by_itself = status is not None or found.ended or found.error is not None
            answered = isinstance(error, BadOutput) and found.whole and found.error is None
            error.command, error.exit_status = shlex.join(self._dialect.command), status
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
        config = mcp_config_of(request)
        arguments = join(self._dialect.command, self._resume(session) + (self._dialect.mcp if config else ()))
        names = named_in(arguments)
        prompt = _plain(transcript_of(request, system="system" not in names))
        values = {
            "prompt": prompt,
            "system": _plain(request.system),
            "model": self._dialect_of(request).model or "",
            "session": _plain(session or ""),
            "budget": self._bill_of(request).told,
            "mcp_config": config or "",
        }
        try:
            options, rest = split_options(arguments)
            granted = [fill(self._dialect.allow, {"tool": _plain(tool)}) for tool in granted_of(request)]
            command = (*fill(options, values), *(part for parts in granted for part in parts), *fill(rest, values))
        except Unfit as unfit:
            message = f"agent {self._profile.name!r}: {unfit.message}"
            raise NotStarted(message, suggestions=(unfit.suggestion,)) from unfit
        given = None if "prompt" in names else self._input(prompt)
        return replace(
            self._order,
            command=command,
            folder=folder_of(request, self._order.folder or Path()),
            environment={**self._order.environment, **variables_of(request)},
            input=given,
        )

    def _input(self, prompt: str) -> bytes:
        """Return the prompt as it is written to its input: one that takes messages takes it as the first of them."""
        if self._dialect.message is None:
            return prompt.encode()
        return self._dialect.message_line(InboxMessage(id=str(uuid4()), text=prompt))

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
        self,
        process: Process,
        found: CliOutput,
        timeouts: Timeouts,
        deltas: DeltaCollector,
        inbox: Inbox | None,
    ) -> tuple[int | None, str]:
        """Take what it writes; returns its exit status and a sample for messages."""
        if self._dialect.output is Output.LINES:
            listener = Listener(process, found, timeouts, deltas, self._dialect.questions)
            if inbox is None:
                return await listener.listen(), sample_of(listener.sample)
            async with MessageFeed(process, inbox, self._dialect.message_line) as listener.feed:
                listener.feed.start()
                return await listener.listen(), sample_of(listener.sample)
        try:
            with naming(process):
                finished = await communicate(process, timeouts, QuestionWatch(self._dialect.questions).feed)
        except QuestionSeen as seen:
            found.ask(seen.question.tool, {"text": seen.question.line})
            return None, seen.question.line
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
