from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.anthropic.live import AnthropicAgent
from muster.agents.anthropic.wire import encode as encode_anthropic
from muster.agents.http.client import HttpClient
from muster.agents.model import STREAM_ABOVE, ModelAgent
from muster.agents.openai.live import OpenAIAgent
from muster.agents.openai.wire import LimitSpelling, MaxTokens
from muster.agents.openai.wire import encode as encode_openai
from muster.agents.prices import price_from_toml
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import Message, Request, Role, Stop, Tool, ask
from muster.domain.errors import (
    AuthRefused,
    BadConfiguration,
    InvalidRequest,
    MusterError,
    OutcomeUnknown,
    Paid,
    ProviderFault,
    RateLimited,
    Unreachable,
    WireError,
)
from muster.domain.price import Price, Pricing

if TYPE_CHECKING:
    from tests.agents.conftest import Host

KEY = "sk-very-secret-0123456789"
SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
BRIEF = replace(SOON, idle=1.0, call=3.0)  # for what hangs
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test",
    "content": [{"type": "text", "text": "Hello."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 10, "output_tokens": 20},
}
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "gpt-test",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 20},
}
ANTHROPIC_EVENTS: list[Any] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hel"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "lo."}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]
OPENAI_EVENTS: list[Any] = [
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "Hel"}, "finish_reason": None}]},
    {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": "lo."}, "finish_reason": "stop"}]},
    {"id": "c", "model": "m", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 20}},
    b"data: [DONE]\n\n",
]


@pytest.fixture(params=["anthropic", "openai"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def agent(name: str, anthropic: AnthropicAgent, openai: OpenAIAgent) -> ModelAgent:
    return anthropic if name == "anthropic" else openai


@pytest.fixture
def answer(name: str) -> dict[str, Any]:
    return MESSAGE if name == "anthropic" else COMPLETION


@pytest.fixture
def events(name: str) -> list[Any]:
    return ANTHROPIC_EVENTS if name == "anthropic" else OPENAI_EVENTS


async def test_anthropic_gets_its_key_version_and_path(host: Host, anthropic: AnthropicAgent) -> None:
    host.play_json(MESSAGE)
    await anthropic.call(ask("hi"), SOON)
    seen = host.seen[0]
    assert seen.path == "/v1/messages"
    assert seen.headers["x-api-key"] == KEY
    assert seen.headers["anthropic-version"] == "2023-06-01"
    assert seen.headers["content-type"] == "application/json"
    assert "authorization" not in seen.headers


async def test_openai_gets_its_key_and_path(host: Host, openai: OpenAIAgent) -> None:
    host.play_json(COMPLETION)
    await openai.call(ask("hi"), SOON)
    assert host.seen[0].path == "/v1/chat/completions"
    assert host.seen[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_server_without_keys_gets_none_and_extra_headers_are_sent(host: Host, http: HttpClient) -> None:
    agent = OpenAIAgent(
        profile=Profile(name="ollama/qwen3", limiter="ollama:qwen3"),
        model="qwen3",
        pricing=Pricing(),
        http=http,
        base_url=host.url,
        spelling=LimitSpelling(MaxTokens.OLD),
        headers={"x-title": "muster"},
        unpriced_ok=True,
    )
    host.play_json(COMPLETION)
    reply = await agent.call(ask("hi"), SOON)
    assert (reply.text, reply.cost, agent.quote(ask("hi")).most) == ("Hello.", 0, 0)
    assert "authorization" not in host.seen[0].headers
    assert host.seen[0].headers["x-title"] == "muster"
    assert host.seen[0].json["max_tokens"] == 2048


async def test_a_plain_call_gives_the_reply_with_its_cost_and_time(
    host: Host, agent: ModelAgent, answer: dict[str, Any]
) -> None:
    host.play_json(answer)
    reply = await agent.call(ask("hi"), SOON)
    assert (reply.text, reply.stop, reply.cost) == ("Hello.", Stop.END, 330)
    assert reply.timings.wire > 0
    assert "stream" not in host.seen[0].json


async def test_deltas_are_handed_over_and_the_reply_is_the_same(
    host: Host, agent: ModelAgent, answer: dict[str, Any], events: list[Any]
) -> None:
    host.play_events(events)
    host.play_json(answer)
    deltas: list[str] = []
    streamed = await agent.call(ask("hi"), SOON, deltas.append)
    plain = await agent.call(ask("hi"), SOON)
    assert deltas == ["Hel", "lo."]
    assert host.seen[0].json["stream"] is True
    assert (streamed.text, streamed.stop, streamed.usage, streamed.cost) == (
        plain.text,
        plain.stop,
        plain.usage,
        plain.cost,
    )
    assert streamed.timings.first_token is not None
    assert host.connections == 1, "a stream that ended well keeps its connection"


async def test_long_answers_are_streamed_even_when_nobody_listens(
    host: Host, agent: ModelAgent, events: list[Any]
) -> None:
    host.play_events(events)
    reply = await agent.call(replace(ask("hi"), max_tokens=STREAM_ABOVE + 1), SOON)
    assert reply.text == "Hello."
    assert host.seen[0].json["stream"] is True


async def test_a_server_that_does_not_stream_is_understood(
    host: Host, agent: ModelAgent, answer: dict[str, Any]
) -> None:
    host.play_json(answer)
    deltas: list[str] = []
    assert (await agent.call(ask("hi"), SOON, deltas.append)).text == "Hello."
    assert deltas == ["Hello."]


async def test_an_answer_that_is_whole_is_kept_though_the_stream_never_ends(
    host: Host, agent: ModelAgent, events: list[Any]
) -> None:
    host.play_events(events, host.hangs)
    assert (await agent.call(ask("hi"), SOON, lambda _: None)).text == "Hello."
    await host.left.wait()


@pytest.mark.parametrize("streams", [False, True])
async def test_a_failure_is_reported_the_same_way_in_both_modes(host: Host, agent: ModelAgent, streams: bool) -> None:
    host.play_json({"error": {"message": "slow down"}}, 429, **{"retry-after": "3"})
    with pytest.raises(RateLimited, match="slow down") as caught:
        await agent.call(ask("hi"), SOON, (lambda _: None) if streams else None)
    assert caught.value.retry_after == 3.0


def _spoiled(host: Host, status: int) -> dict[str, tuple[Any, ...]]:
    head = f"HTTP/1.1 {status} X\r\nretry-after: 3\r\n".encode()
    return {
        "compressed": (head + b"content-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc",),
        "compressed, in chunks": (head + b"content-encoding: br\r\ntransfer-encoding: chunked\r\n\r\n", host.hangs),
        "too long": (head + b"content-length: 9999999999\r\n\r\n" + b"x" * 2**21, host.hangs),
        "endless": (head + b"\r\n" + b"x" * 2**21, host.hangs),
        "cut": (head + b'content-length: 100\r\n\r\n{"error', host.hangs_up),
        "stalled": (head + b'content-length: 100\r\n\r\n{"error', host.hangs),
        "bad chunk": (head + b"transfer-encoding: chunked\r\n\r\nzz\r\n{\r\n", host.hangs_up),
    }


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("status", [429, 500])
@pytest.mark.parametrize(
    "how", ["compressed", "compressed, in chunks", "too long", "endless", "cut", "stalled", "bad chunk"]
)
async def test_an_error_whose_body_cannot_be_read_is_told_by_its_status(
    host: Host, agent: ModelAgent, how: str, status: int, streams: bool
) -> None:
    pieces = _spoiled(host, status)[how]
    host.play(*pieces)
    with pytest.raises(WireError) as caught:
        await agent.call(ask("hi"), BRIEF if host.hangs in pieces else SOON, (lambda _: None) if streams else None)
    assert type(caught.value) is (RateLimited if status == 429 else ProviderFault)
    assert (caught.value.paid, caught.value.status, caught.value.retry_after) == (Paid.NO, status, 3.0)


async def test_a_redirect_is_refused_and_the_key_goes_nowhere_else(host: Host, agent: ModelAgent) -> None:
    host.play(host.answer(b"", 307, location=f"{host.url}/elsewhere"))
    with pytest.raises(InvalidRequest):
        await agent.call(ask("hi"), SOON)
    assert len(host.seen) == 1


async def test_a_stream_that_is_cut_leaves_the_outcome_unknown(
    host: Host, agent: ModelAgent, events: list[Any]
) -> None:
    for end in ((host.hangs_up,), (b"0\r\n\r\n",), (host.hangs,)):
        host.play_events(events[:1], *end)
        with pytest.raises(OutcomeUnknown):
            await agent.call(ask("hi"), BRIEF if host.hangs in end else SOON, lambda _: None)


@pytest.mark.parametrize("body", [b"", b'{"id": "msg', b"garbage"])
async def test_a_success_that_cannot_be_read_leaves_the_outcome_unknown(
    host: Host, agent: ModelAgent, body: bytes
) -> None:
    host.play(host.answer(body))
    with pytest.raises(OutcomeUnknown):
        await agent.call(ask("hi"), SOON)


async def test_the_key_never_shows_in_what_is_raised(host: Host, agent: ModelAgent) -> None:
    echo = f'{{"error": {{"message": "bad key {KEY}"}}}}'.encode()
    for status in (200, 307, 400, 401, 404, 429, 500, 502):
        host.play(host.answer(echo, status))
        with pytest.raises(MusterError) as caught:
            await agent.call(ask("hi"), SOON)
        assert KEY not in f"{caught.value} {caught.value.record()} {caught.value.suggestions}"


async def test_a_refused_key_names_its_variable(host: Host, agent: ModelAgent, name: str) -> None:
    host.play_json({"error": {"message": "bad key"}}, 401)
    with pytest.raises(AuthRefused) as caught:
        await agent.call(ask("hi"), SOON)
    assert f"{name.upper()}_API_KEY" in caught.value.suggestions[0]


async def test_after_closing_nothing_leaves(agent: ModelAgent) -> None:
    await agent.close()
    await agent.close()
    with pytest.raises(Unreachable):
        await agent.call(ask("hi"), SOON)


async def test_canceling_closes_the_socket(host: Host, agent: ModelAgent) -> None:
    host.play(host.hangs)
    call = asyncio.create_task(agent.call(ask("hi"), Timeouts()))
    await host.reached.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await host.left.wait()


def test_without_a_price_a_quote_says_the_two_ways_out(http: HttpClient) -> None:
    profile = Profile(name="anthropic/claude-new", limiter="x")
    agent = AnthropicAgent(profile=profile, model="claude-new", key="k", pricing=Pricing(), http=http)
    with pytest.raises(BadConfiguration, match="claude-new") as caught:
        agent.quote(ask("hi"))
    assert "muster.toml" in caught.value.suggestions[0]
    assert "--allow-unpriced" in caught.value.suggestions[1]


@pytest.mark.parametrize("base_url", ["http://api.anthropic.com", "ftp://x", "https://me:pw@x.org"])
def test_a_base_address_that_would_leak_the_key_is_refused(http: HttpClient, base_url: str) -> None:
    with pytest.raises(BadConfiguration):
        AnthropicAgent(
            profile=Profile(name="a", limiter="a"), model="m", key="k", pricing=Pricing(), http=http, base_url=base_url
        )


TEXTS = st.text(max_size=60)
REQUESTS = st.builds(
    Request,
    messages=st.lists(st.builds(Message, role=st.sampled_from(Role), text=TEXTS), min_size=1, max_size=4).map(tuple),
    system=TEXTS,
    tools=st.lists(st.builds(Tool, name=TEXTS, description=TEXTS), max_size=2).map(tuple),
    max_tokens=st.none() | st.integers(1, 100_000),
    temperature=st.none() | st.floats(0, 1),
    stop=st.lists(TEXTS, max_size=2).map(tuple),
    cache=st.sampled_from([None, "5m", "1h"]),
)
ONE_A_BYTE = price_from_toml(1, 0)  # a microdollar for every token that goes in


def quoting(price: Price) -> list[ModelAgent]:
    profile = Profile(name="x", limiter="x")
    return [
        AnthropicAgent(profile=profile, model="m", key="k", pricing=Pricing(standard=price), http=HttpClient()),
        OpenAIAgent(profile=profile, model="m", key="k", pricing=Pricing(standard=price), http=HttpClient()),
    ]


@given(REQUESTS, st.booleans())
def test_a_quote_counts_no_less_than_every_byte_that_is_sent(request_: Request, stream: bool) -> None:
    bodies = encode_anthropic(request_, "m", stream=stream), encode_openai(request_, "m", stream=stream)
    for agent, body in zip(quoting(ONE_A_BYTE), bodies, strict=True):
        assert agent.quote(request_).most >= len(body)


@given(REQUESTS)
def test_a_quote_counts_all_of_max_tokens(request_: Request) -> None:
    allowed = 2048 if request_.max_tokens is None else request_.max_tokens
    for agent in quoting(price_from_toml(0, 2)):
        quote = agent.quote(request_)
        assert quote.most == 2 * allowed
        assert allowed < quote.tokens < allowed + 100_000
