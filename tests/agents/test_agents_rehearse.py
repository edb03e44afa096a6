"""Our agents against the rehearsal server: two implementations of the same protocols, written apart."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

import pytest

from muster.agents.anthropic.live import AnthropicAgent
from muster.agents.http.client import HttpClient
from muster.agents.model import ModelAgent
from muster.agents.openai.live import OpenAIAgent
from muster.agents.prices import price_from_toml
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import Request, Stop, Tool, ToolCall, ask
from muster.domain.errors import (
    AuthRefused,
    InvalidRequest,
    OutcomeUnknown,
    Overloaded,
    Paid,
    ProviderFault,
    RateLimited,
    UnknownModel,
    WireError,
)
from muster.domain.price import Pricing
from muster.domain.script import Line, Rule, Script
from muster.domain.wire import WireName
from muster.sim.faults import Fault, FaultKind, Faults, ScriptedFault
from muster.sim.options import Options
from muster.sim.server import Server, serve

PRICE = price_from_toml(3, 15, cache_read=0.3, cache_write=3.75, cache_write_1h=6)
SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
BRIEF = replace(SOON, idle=2.0, call=2.0)  # for what hangs
CALL = ToolCall(id="call_1", name="weather", arguments={"city": "Bonn"})
LINES = (
    Rule(text="^weather", line=Line(text="I look.", tool_calls=(CALL,), stop=Stop.TOOL_USE)),
    Rule(text="^refuse", line=Line(text="No.", stop=Stop.REFUSED)),
)
TOOLS = (Tool(name="weather"),)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with serve(Options(script=Script(rules=LINES))) as server:
        yield server


@pytest.fixture(params=["anthropic", "openai", "responses"])
async def agent(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[ModelAgent]:
    kinds: dict[str, tuple[Callable[..., ModelAgent], str]] = {
        "anthropic": (AnthropicAgent, server.anthropic),
        "openai": (OpenAIAgent, server.openai),
        "responses": (partial(OpenAIAgent, form=WireName.RESPONSES), server.openai),
    }
    kind, base_url = kinds[request.param]
    profile = Profile(name=f"{request.param}/m", limiter="x")
    agent = kind(
        profile=profile, model="m", key="k", pricing=Pricing(standard=PRICE), http=HttpClient(), base_url=base_url
    )
    yield agent
    await agent.close()


REQUESTS = {
    "echo": ask("Hello there"),
    "system": ask("Grüße 🎉\n", system="Be brief."),
    "tools": replace(ask("weather?"), tools=TOOLS),
    "refusal": ask("refuse this"),
    "cut": replace(ask("word " * 50), max_tokens=16),
    "cached": replace(ask("Hello", system="long " * 2000), cache="1h"),
}


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS.keys())
async def test_plain_and_streamed_replies_are_the_same(agent: ModelAgent, server: Server, request_: Request) -> None:
    deltas: list[str] = []
    plain = await agent.call(request_, SOON)
    server.reset()
    streamed = await agent.call(request_, SOON, deltas.append)
    same = replace(streamed, timings=plain.timings, id=plain.id)
    calls = tuple(replace(call, id="") for call in plain.tool_calls)
    assert replace(same, tool_calls=tuple(replace(call, id="") for call in same.tool_calls)) == replace(
        plain, tool_calls=calls
    )
    assert "".join(deltas) == plain.text
    assert 0 < plain.cost <= agent.quote(request_).most


async def test_tool_calls_come_back_as_they_were_scripted(agent: ModelAgent) -> None:
    reply = await agent.call(REQUESTS["tools"], SOON)
    assert reply.stop is Stop.TOOL_USE
    assert [(call.name, call.arguments) for call in reply.tool_calls] == [("weather", {"city": "Bonn"})]


FAULTS = {
    FaultKind.BAD_REQUEST: InvalidRequest,
    FaultKind.UNAUTHORIZED: AuthRefused,
    FaultKind.FORBIDDEN: AuthRefused,
    FaultKind.MISSING: UnknownModel,
    FaultKind.TOO_LARGE: InvalidRequest,
    FaultKind.RATE_LIMITED: RateLimited,
    FaultKind.BROKEN: ProviderFault,
    FaultKind.OVERLOADED: Overloaded,
    FaultKind.TIMEOUT: OutcomeUnknown,
    FaultKind.CUT_BEFORE: OutcomeUnknown,
    FaultKind.CUT_AFTER: OutcomeUnknown,
    FaultKind.STALLED_STREAM: OutcomeUnknown,
    FaultKind.CUT_STREAM: OutcomeUnknown,
    FaultKind.TRUNCATED: OutcomeUnknown,
    FaultKind.GARBAGE: OutcomeUnknown,
}


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("streams", [False, True])
async def test_every_fault_is_told_for_what_it_is(
    agent: ModelAgent, server: Server, kind: FaultKind, streams: bool
) -> None:
    server.play(Faults(script=(ScriptedFault(fault=Fault(kind=kind, retry_after=2.0)),)))
    timeouts = BRIEF if kind in (FaultKind.TIMEOUT, FaultKind.STALLED_STREAM) else SOON
    with pytest.raises(WireError) as caught:
        await agent.call(ask("Hello"), timeouts, (lambda _: None) if streams else None)
    assert isinstance(caught.value, FAULTS[kind])
    assert server.audit.calls == 0 or caught.value.paid is Paid.UNKNOWN, "what was paid is never called unpaid"
    assert (await agent.call(ask("Hello"), SOON)).text == "Hello"


async def test_a_hundred_calls_at_once_are_paid_once_each(agent: ModelAgent, server: Server) -> None:
    replies = await asyncio.gather(*(agent.call(ask(f"number {n}"), Timeouts()) for n in range(100)))
    assert [reply.text for reply in replies] == [f"number {n}" for n in range(100)]
    assert server.audit.calls == 100
