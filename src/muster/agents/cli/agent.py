"""The agent that is a CLI: it starts the program once for each call, listens, and ends it with its whole group."""

import asyncio
from dataclasses import replace
from pathlib import Path

from muster.agents.base import OnDelta
from muster.agents.bill import Bill
from muster.agents.cli.dialect import Dialect, Output
from muster.agents.cli.findings import Findings
from muster.agents.cli.listener import Listener, naming
from muster.agents.cli.showing import sample_of
from muster.agents.cli.template import Unfit, fill, join, named_in
from muster.agents.cli.verdict import Ending, Judge
from muster.agents.deltas import Deltas
from muster.agents.processes.conversation import converse
from muster.agents.processes.household import Household
from muster.agents.processes.order import Order
from muster.agents.processes.process import Process
from muster.agents.tally import max_tokens_of
from muster.agents.transcript import transcript_of
from muster.agents.volatile import folder_of, session_of
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request
from muster.domain.canonical import Json
from muster.domain.errors import AgentFailed, BadConfiguration, BadOutput, NotStarted
from muster.domain.money import Lane, Microdollars
from muster.domain.script import count_tokens
from muster.shapes.json_search import find, parseable, readable
from muster.shapes.schema import require_schema


class CliAgent:
    """Any CLI agent, as its dialect describes it."""

    def __init__(
        self,
        *,
        profile: Profile,
        household: Household,
        order: Order,
        dialect: Dialect,
        most: Microdollars | None,
        unpriced_ok: bool = False,
        lane: Lane = Lane.BILLED,
    ) -> None:
        self._profile, self._household, self._order, self._dialect = profile, household, order, dialect
        self._bill, self._unpriced_ok = Bill(most=most, lane=lane), unpriced_ok
        self._judge = Judge(agent=profile.name, dialect=dialect, bill=self._bill)

    @property
    def profile(self) -> Profile:
        """Say who this is, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Say the most that one attempt can cost: what the settings reserve for it."""
        if self._bill.most is None and not self._unpriced_ok:
            raise _no_budget(self._profile.name)
        tokens = count_tokens(transcript_of(request)) + max_tokens_of(request)
        return Quote(most=self._bill.reserved, tokens=max(1, tokens))

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Start the program, ask once and give the whole reply."""
        require_schema(request)
        order = self._ordered(request)
        found = Findings(self._dialect.places)
        deltas = Deltas(asyncio.get_running_loop().time, on_delta)
        status: int | None = None
        try:
            async with self._household.process(order) as process:
                status, sample = await self._hear(process, found, timeouts, deltas)
            # Judged when the process is over: only then all of its log is there.
            ending = Ending(status=status, log=process.log.text, sample=sample, broken=process.broken)
            reply = self._judge.reply(request, found, ending, deltas.timings())
        except AgentFailed as error:
            # What it had cost until it was stopped is not what it cost in the end.
            by_itself = status is not None or found.ended or found.error is not None
            answered = isinstance(error, BadOutput) and found.whole and found.error is None
            self._bill.charge(error, found.cost if by_itself else None, sure=answered or found.limited)
            raise
        deltas.finish(reply.text)
        return reply

    async def close(self) -> None:
        """Do nothing: every call ends its own process, and the household is its owner's."""

    def _ordered(self, request: Request) -> Order:
        """Write the command and the input of one call."""
        session = session_of(request)
        arguments = join(self._dialect.command, self._resume(session))
        names = named_in(arguments)
        prompt = _plain(transcript_of(request, system="system" not in names))
        values = {
            "prompt": prompt,
            "system": _plain(request.system),
            "model": self._dialect.model or "",
            "session": _plain(session or ""),
            "budget": self._bill.told,
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
            environment={**self._order.environment, **(request.environment or {})},
            input=given,
        )

    def _resume(self, session: str | None) -> tuple[str, ...]:
        if session is None:
            return ()
        if not self._dialect.resume:
            raise NotStarted(
                f"agent {self._profile.name!r}: cannot go on with a session: nothing says how",
                suggestions=('say it in muster.toml, in the words that it wants: resume = ["--resume", "{session}"]',),
            )
        return self._dialect.resume

    async def _hear(
        self, process: Process, found: Findings, timeouts: Timeouts, deltas: Deltas
    ) -> tuple[int | None, str]:
        """Take what it writes; gives its exit status and a sample for messages."""
        if self._dialect.output is Output.LINES:
            listener = Listener(process, found, timeouts, deltas)
            return await listener.listen(), sample_of(listener.sample)
        finished = await converse(process, timeouts)
        if self._dialect.output is Output.TEXT:
            found.answer = readable(finished.output).rstrip("\r\n") or None
        else:
            with naming(process):
                self._find(finished.output, found)
        return finished.status, sample_of(finished.output)

    def _find(self, output: bytes, found: Findings) -> None:
        said = find(parseable(output), self._fits)
        if said is not None:
            found.take(said)

    def _fits(self, said: Json) -> bool:
        """Whether an object is the answer and not something else that was written: it has the answer, or the error."""
        tried = Findings(self._dialect.places)
        tried.take(said)
        return tried.answer is not None or tried.error is not None


def _plain(text: str) -> str:
    """Give a text that can be written in UTF-8: halves of characters are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _no_budget(agent: str) -> BadConfiguration:
    return BadConfiguration(
        f"nothing says what a call of {agent} can cost, so it cannot be bounded",
        suggestions=(
            f"add budget_usd = 0.50 to [agents.{agent}]: the most that one call can cost; 0 when it costs nothing",
            "or spend without counting: --allow-unpriced",
        ),
    )
