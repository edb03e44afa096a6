"""Every agent of this room passes the checks that users can run on their own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from muster.agents.anthropic.live import AnthropicAgent
from muster.agents.base import Agent
from muster.agents.http.client import HttpClient
from muster.agents.openai.live import OpenAIAgent
from muster.agents.prices import price_from_toml
from muster.agents.scripted import ScriptedAgent, ScriptedBehavior
from muster.domain.agent import Profile
from muster.domain.call import ask
from muster.domain.price import Pricing
from muster.domain.wire import WireName
from muster.sim.faults import Fault, FaultKind, Faults, ScriptedFault
from muster.sim.server import Server, serve
from muster.testing.agents import CHECKS, Candidate

PRICE = price_from_toml(3, 15, cache_read=0.3, cache_write=3.75, cache_write_1h=6)
PROFILE = Profile(name="some/model", limiter="some:model")
REQUEST = ask("Say these words, please:  one\ntwo  🎉", system="Be brief.")


def scripted_candidate() -> Candidate:
    reached = asyncio.Event()
    hangs = [False]

    async def sleep(_: float) -> None:
        if hangs[0]:
            hangs[0] = False
            reached.set()
            await asyncio.Event().wait()

    agent = ScriptedAgent(ScriptedBehavior(seconds=1.0), profile=PROFILE, price=PRICE, sleep=sleep)
    return Candidate(agent=agent, request=REQUEST, hang=lambda: hangs.__setitem__(0, True), reached=reached.wait)


def live_candidate(agent: Agent, server: Server) -> Candidate:
    async def reached() -> None:
        while server.audit.calls == 0:  # noqa: ASYNC110 - the server runs in this very loop and needs its turn
            await asyncio.sleep(0)

    def hang() -> None:
        server.reset()
        server.play(Faults(script=(ScriptedFault(fault=Fault(kind=FaultKind.TIMEOUT)),)))

    return Candidate(agent=agent, request=REQUEST, hang=hang, reached=reached)


@pytest.fixture(params=["scripted", "anthropic", "openai", "responses"])
async def candidate(request: pytest.FixtureRequest) -> AsyncIterator[Candidate]:
    if request.param == "scripted":
        yield scripted_candidate()
        return
    async with serve() as server:
        agent: AnthropicAgent | OpenAIAgent
        if request.param == "anthropic":
            agent = AnthropicAgent(
                profile=PROFILE,
                model="m",
                key="k",
                pricing=Pricing(standard=PRICE),
                http=HttpClient(),
                base_url=server.anthropic,
            )
        else:
            agent = OpenAIAgent(
                profile=PROFILE,
                model="m",
                key="k",
                pricing=Pricing(standard=PRICE),
                http=HttpClient(),
                base_url=server.openai,
                form=WireName.RESPONSES if request.param == "responses" else WireName.CHAT,
            )
        yield live_candidate(agent, server)
        await agent.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
async def test_an_agent_keeps_its_contract(candidate: Candidate, check: Callable[[Candidate], Awaitable[None]]) -> None:
    await check(candidate)
