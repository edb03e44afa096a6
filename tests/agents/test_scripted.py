from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.prices import price_from_toml
from muster.agents.scripted import BEHAVIORS, scripted
from muster.domain.agent import Timeouts
from muster.domain.call import Message, Quality, Reply, Request, Role, Stop, Tool, ToolCall, ask
from muster.domain.errors import BadConfiguration, InvalidRequest, Overloaded
from muster.domain.script import Line, Rule, Script

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}, "required": ["city"]}
TOOLS = (Tool(name="now"), Tool(name="weather", parameters=SCHEMA))


async def play(name: str, request: Request) -> Reply:
    return await scripted(name).call(request, Timeouts())


async def test_echo_says_what_it_heard_and_costs_nothing() -> None:
    reply = await play("echo", ask("Hello there"))
    assert (reply.text, reply.stop, reply.cost, reply.model) == ("Hello there", Stop.END, 0, "sim/echo")


async def test_the_same_request_gets_the_same_reply() -> None:
    assert await play("echo", ask("Hello")) == await play("echo", ask("Hello"))


@pytest.mark.parametrize(
    ("name", "quality"), [("refuse", Quality.REFUSED), ("cut", Quality.CUT), ("empty", Quality.EMPTY)]
)
async def test_bad_replies_can_be_rehearsed(name: str, quality: Quality) -> None:
    assert (await play(name, ask("Hello"))).quality is quality


async def test_max_tokens_cuts() -> None:
    reply = await play("echo", replace(ask("x" * 100), max_tokens=2))
    assert (reply.text, reply.stop, reply.usage.output) == ("x" * 8, Stop.MAX_TOKENS, 2)


async def test_tool_uses_the_tool_that_is_named_and_then_answers() -> None:
    request = replace(ask("the weather in Bonn?"), tools=TOOLS)
    reply = await play("tool", request)
    call = ToolCall(id="call_1", name="weather", arguments={"city": "the weather in Bonn?"})
    assert (reply.tool_calls, reply.stop) == ((call,), Stop.TOOL_USE)
    result = Message(role=Role.TOOL, text="sunny", tool_call_id="call_1")
    answered = replace(request, messages=(*request.messages, Message(role=Role.ASSISTANT, tool_calls=(call,)), result))
    assert (await play("tool", answered)).text == "sunny"


async def test_tool_uses_the_first_tool_when_none_is_named_and_none_without_tools() -> None:
    assert (await play("tool", replace(ask("hm"), tools=TOOLS))).tool_calls[0].name == "now"
    assert (await play("tool", ask("hm"))).text == "hm"


async def test_fail_refuses_every_request() -> None:
    with pytest.raises(InvalidRequest):
        await play("fail", ask("Hello"))


async def test_flaky_fails_the_first_attempt_at_each_request() -> None:
    agent = scripted("flaky")
    for text in ("one", "two"):
        with pytest.raises(Overloaded):
            await agent.call(ask(text), Timeouts())
        assert (await agent.call(ask(text), Timeouts())).text == text


async def test_slow_takes_a_second_of_the_given_clock() -> None:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    reply = await scripted("slow", sleep=sleep).call(ask("Hello"), Timeouts())
    assert (slept, reply.timings.wire) == ([1.0], 1.0)


async def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(BadConfiguration, match="sim/nobody") as caught:
        scripted("nobody")
    assert all(f"sim/{name}" in caught.value.suggestions[0] for name in BEHAVIORS)


async def test_a_script_of_your_own_makes_any_name_known() -> None:
    script = Script(rules=(Rule(text="ping", line=Line(text="pong")),))
    heard: list[Request] = []
    agent = scripted("mine", script=script, observe=heard.append)
    assert (await agent.call(ask("ping"), Timeouts())).text == "pong"
    assert heard == [ask("ping")]


TEXTS = st.text(max_size=200)


@given(st.sampled_from(["echo", "refuse", "cut", "empty", "tool"]), TEXTS, TEXTS, st.integers(1, 50))
async def test_no_reply_costs_more_than_was_quoted(name: str, text: str, system: str, max_tokens: int) -> None:
    agent = scripted(name, price=price_from_toml(3, 15, cache_write=3.75))
    request = replace(ask(text, system=system), max_tokens=max_tokens, tools=TOOLS)
    reply = await agent.call(request, Timeouts())
    assert 0 < reply.cost <= agent.quote(request).most
    assert reply.usage.output <= max_tokens


@given(TEXTS)
async def test_words_joined_are_the_text(text: str) -> None:
    words: list[str] = []
    reply = await scripted("echo").call(ask(text), Timeouts(), words.append)
    assert "".join(words) == reply.text
