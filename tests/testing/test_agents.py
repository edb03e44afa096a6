"""The conformance suite of agents notices agents that break the contract."""

import asyncio
from dataclasses import replace

import pytest

from muster.agents.base import OnDelta
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Stop, ask
from muster.domain.money import Microdollars
from muster.testing.agents import Candidate, hands_over_the_text_as_deltas, never_costs_more_than_quoted

REPLY = Reply(text="hello", stop=Stop.END, cost=Microdollars(2))


class FixedReply:
    """Gives one reply, whatever it is asked."""

    def __init__(self, reply: Reply, *, quoted: int, streams: bool) -> None:
        self._reply, self._quoted, self._streams = reply, quoted, streams
        self.profile = Profile(name="fixed", limiter="test:fixed")

    def quote(self, request: Request) -> Quote:
        return Quote(most=Microdollars(self._quoted), tokens=1)

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        if on_delta is not None and self._streams:
            on_delta(self._reply.text)
        return self._reply

    async def close(self) -> None:
        pass


def candidate(*, cost: int = 2, streams: bool = True) -> Candidate:
    agent = FixedReply(replace(REPLY, cost=Microdollars(cost)), quoted=2, streams=streams)
    return Candidate(agent=agent, request=ask("hi"), hang=lambda: None, reached=asyncio.Event().wait)


async def test_an_agent_that_costs_more_than_it_quoted_fails() -> None:
    await never_costs_more_than_quoted(candidate())
    with pytest.raises(AssertionError):
        await never_costs_more_than_quoted(candidate(cost=3))


async def test_an_agent_that_streams_nothing_fails() -> None:
    await hands_over_the_text_as_deltas(candidate())
    with pytest.raises(AssertionError):
        await hands_over_the_text_as_deltas(candidate(streams=False))
