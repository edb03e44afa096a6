"""What every agent must do, as checks that any implementation can be put through, yours too.

Each check takes a `Candidate` and raises AssertionError when the agent breaks the contract of `muster.agents.base`.
For agents that start processes there is a process table in memory, and for those that are told more an inbox.
"""

# ruff: noqa: S101 - a failed check is an AssertionError, as test runners expect

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import uuid4

from muster.agents.base import Agent, InboxMessage, InteractiveAgent
from muster.domain.agent import Timeouts
from muster.domain.call import Reply, Request
from muster.domain.run import OwnedProcess

_PATIENT = Timeouts()


class MemoryInbox:
    """An inbox in memory: what is put into it is offered once, and what was taken in is remembered."""

    def __init__(self, *texts: str) -> None:
        self._waiting: asyncio.Queue[InboxMessage] = asyncio.Queue()
        self.offered = asyncio.Event()  # something was
        self.taken_in: list[str] = []
        for text in texts:
            self.put(text)

    def put(self, text: str) -> None:
        """Say something to whoever is asked next."""
        self._waiting.put_nowait(InboxMessage(id=str(uuid4()), text=text))

    async def next(self) -> InboxMessage:
        """Wait for the next message."""
        message = await self._waiting.get()
        self.offered.set()
        return message

    async def taken(self, message: InboxMessage) -> None:
        """Remember that a message was taken in."""
        self.taken_in.append(message.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An agent, a request that it answers with some text, and a way to make it hang."""

    agent: Agent
    request: Request
    hang: Callable[[], None]  # the next call does not end by itself
    reached: Callable[[], Awaitable[object]]  # waits until that call is under way
    timeouts: Timeouts = _PATIENT

    async def call(self) -> Reply:
        """Ask once."""
        return await self.agent.call(self.request, self.timeouts)


async def has_a_name_and_a_lane(candidate: Candidate) -> None:
    """Its profile says who it is, and stays the same."""
    assert candidate.agent.profile.name
    assert candidate.agent.profile.limiter
    assert candidate.agent.profile == candidate.agent.profile


async def quotes_the_same_twice(candidate: Candidate) -> None:
    """A quote depends on the request only."""
    first = candidate.agent.quote(candidate.request)
    await candidate.call()
    assert candidate.agent.quote(candidate.request) == first


async def never_costs_more_than_quoted(candidate: Candidate) -> None:
    """A quote is the most that an attempt can cost."""
    quote = candidate.agent.quote(candidate.request)
    reply = await candidate.call()
    assert 0 <= reply.cost <= quote.most
    assert quote.tokens > 0


async def hands_over_the_text_as_deltas(candidate: Candidate) -> None:
    """The deltas of a reply, joined, are its text; and asking for them changes nothing else."""
    deltas: list[str] = []
    streamed = await candidate.agent.call(candidate.request, candidate.timeouts, deltas.append)
    plain = await candidate.call()
    assert streamed.text
    assert "".join(deltas) == streamed.text
    assert (streamed.text, streamed.stop, streamed.tool_calls) == (plain.text, plain.stop, plain.tool_calls)


async def answers_many_at_once(candidate: Candidate) -> None:
    """Calls may run side by side."""
    replies = await asyncio.gather(*(candidate.call() for _ in range(20)))
    assert {reply.text for reply in replies} == {replies[0].text}


async def passes_cancellation_on(candidate: Candidate) -> None:
    """A canceled call ends at once, and the next one works."""
    candidate.hang()
    call = asyncio.ensure_future(candidate.call())
    await candidate.reached()
    call.cancel()
    done, _ = await asyncio.wait([call], timeout=30.0)
    assert done, "the call went on after it was canceled"
    assert call.cancelled(), "the call turned its cancellation into something else"
    assert (await candidate.call()).text


async def is_the_same_when_nobody_tells_it_more(candidate: Candidate) -> None:
    """An agent that can be told more answers all the same when nothing comes into its inbox."""
    agent = candidate.agent
    if isinstance(agent, InteractiveAgent) and agent.takes_messages:
        inbox = MemoryInbox()
        reply = await agent.converse(candidate.request, candidate.timeouts, inbox)
        assert (reply.text, inbox.taken_in) == ((await candidate.call()).text, [])


async def closes_twice(candidate: Candidate) -> None:
    """An agent may be closed when it is closed already."""
    await candidate.call()
    await candidate.agent.close()
    await candidate.agent.close()


CHECKS = (
    has_a_name_and_a_lane,
    quotes_the_same_twice,
    never_costs_more_than_quoted,
    hands_over_the_text_as_deltas,
    answers_many_at_once,
    passes_cancellation_on,
    is_the_same_when_nobody_tells_it_more,
    closes_twice,
)


class RememberedProcesses:
    """Remembers processes as a store does, as long as this process lives."""

    def __init__(self) -> None:
        self.noted: dict[str, OwnedProcess] = {}
        self.seen: list[OwnedProcess] = []  # all that were ever noted

    async def note(self, process: OwnedProcess) -> None:
        """Remember a process."""
        self.noted[process.token] = process
        self.seen.append(process)

    async def forget(self, token: str) -> None:
        """Forget a process that was seen dead."""
        self.noted.pop(token, None)

    async def all(self, host: str) -> Sequence[OwnedProcess]:
        """Return the processes of a host that nobody has seen dead."""
        return [process for process in self.noted.values() if process.driver.host == host]
