"""The user's own service as an agent: what is posted, what is read, what it costs and how it fails."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from muster.agents.faults import Account
from muster.agents.http.client import HttpClient
from muster.agents.prices import price_from_toml
from muster.agents.service.agent import ServiceAgent
from muster.agents.service.answer import places_of, template_of
from muster.agents.service_terms import ServiceTerms
from muster.app.agent_kinds.base import profile_of
from muster.app.agent_kinds.services import make_service
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import Message, Reply, Request, Role, Stop, Tool, ToolCall, Usage, ask
from muster.domain.errors import (
    AuthRefused,
    BadConfiguration,
    BadOutput,
    CallFailed,
    InvalidRequest,
    OutcomeUnknown,
    Overloaded,
    Paid,
    ProviderFault,
    RateLimited,
    TryLater,
    Unreachable,
    WireError,
)
from muster.domain.money import Lane, Microdollars
from muster.domain.price import Price
from muster.settings.file import fit
from muster.settings.sections import HttpSection
from muster.testing.agents import CHECKS, Candidate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from muster.agents.base import Agent
    from tests.agents.conftest import Host

SOON = Timeouts(connect=60.0, idle=60.0, call=60.0)
PROFILE = Profile(name="app", limiter="http:app")
SECRET = "open-sesame-4711"
DECLARED = Microdollars(50_000)
SHAPED = replace(ask("hi"), schema={"type": "object", "properties": {"a": {"type": "number"}}})


@pytest.fixture
def service(host: Host, http: HttpClient) -> Callable[..., ServiceAgent]:
    """Make agents of the host: `most` and `price` are the terms, the rest are paths."""

    def make(
        *,
        body: dict[str, Any] | None = None,
        most: Microdollars | None = None,
        price: Price | None = None,
        headers: dict[str, str] | None = None,
        key: str = "",
        path: str = "/chat",
        **paths: str,
    ) -> ServiceAgent:
        return ServiceAgent(
            profile=PROFILE,
            account=Account(place="agent 'app'", variable="APP_KEY" if key else "", key=key),
            url=host.url + path,
            headers=headers,
            template=None if body is None else template_of(body, "agents.app: body"),
            places=places_of("agents.app", **paths),
            terms=ServiceTerms(most=most, price=price),
            http=http,
        )

    return make


async def failure(agent: Agent, request: Request | None = None) -> WireError:
    with pytest.raises(WireError) as caught:
        await agent.call(request or ask("hi"), SOON)
    return caught.value


# What is posted.


async def test_the_question_goes_out_as_messages_and_as_a_prompt(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"answer": "fine"})
    reply = await service(headers={"X-Team": "blue"}).call(ask("How are you?"), SOON)
    seen = host.seen[0]
    assert (seen.method, seen.path, seen.headers["x-team"]) == ("POST", "/chat", "blue")
    assert seen.headers["content-type"] == "application/json"
    assert seen.json == {
        "messages": [{"role": "user", "content": "How are you?"}],
        "prompt": "How are you?",
        "max_tokens": 2048,
    }
    assert (reply.text, reply.stop, reply.model) == ("fine", Stop.END, "app")


async def test_whatever_is_set_goes_along(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"answer": "{}"})
    request = Request(
        messages=(
            Message(role=Role.USER, text="look it up"),
            Message(role=Role.ASSISTANT, tool_calls=(ToolCall(id="c1", name="search", arguments={"q": "x"}),)),
            Message(role=Role.TOOL, text="found", tool_call_id="c1"),
        ),
        system="Be brief.",
        tools=(Tool(name="search", description="Looks things up."),),
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        seed=3,
        stop=("END",),
        schema={"type": "object"},
    )
    await service().call(request, SOON)
    assert host.seen[0].json == {
        "messages": [
            {"role": "user", "content": "look it up"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "c1", "name": "search", "arguments": {"q": "x"}}],
            },
            {"role": "tool", "content": "found", "tool_call_id": "c1"},
        ],
        "prompt": "look it up",
        "system": "Be brief.",
        "tools": [
            {
                "name": "search",
                "description": "Looks things up.",
                "parameters": {"type": "object", "properties": {}},
            }
        ],
        "max_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["END"],
        "schema": {"type": "object"},
    }


async def test_a_template_is_filled_once_and_the_prompt_is_never_looked_at_again(
    host: Host, service: Callable[..., Agent]
) -> None:
    host.play_json({"answer": "fine"})
    body = {
        "question": "Q: {prompt} ({system})",
        "deep": [{"chat": "{messages}", "n": 3, "{prompt}": None}],
        "braces": "{messages} {other} {}",
    }
    prompt = 'say "{system}", {messages} and {prompt} {0}'
    await service(body=body).call(ask(prompt, system="Use {prompt}."), SOON)
    assert host.seen[0].json == {
        "question": f"Q: {prompt} (Use {{prompt}}.)",
        "deep": [{"chat": [{"role": "user", "content": prompt}], "n": 3, "{prompt}": None}],
        "braces": "{messages} {other} {}",
    }


async def test_without_a_place_of_its_own_the_system_prompt_opens_the_conversation(
    host: Host, service: Callable[..., Agent]
) -> None:
    host.play_json({"answer": "fine"})
    await service(body={"chat": "{messages}"}).call(ask("hi", system="Be brief."), SOON)
    assert host.seen[0].json["chat"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "hi"},
    ]


def test_a_template_without_a_place_for_the_question_is_refused() -> None:
    with pytest.raises(BadConfiguration, match="no placeholder for the prompt") as caught:
        template_of({"system": "{system}", "{prompt}": "x", "chat": "all {messages}"}, "agents.app: body")
    assert caught.value.message.startswith("agents.app: body")


# What is read.

ANSWERS: dict[str, Any] = {
    "a bare string": "fine",
    "answer": {"answer": "fine", "text": "not this"},
    "text": {"text": "fine", "message": "not this"},
    "content": {"content": "fine"},
    "output": {"output": "fine"},
    "response": {"response": "fine"},
    "reply": {"reply": "fine"},
    "message": {"message": "fine"},
    "message.content": {"message": {"content": "fine"}},
    "choices": {"choices": [{"message": {"content": "fine"}}]},
    "the first that is a text": {"answer": {"no": "text"}, "content": [1], "output": "fine"},
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
async def test_the_answer_is_found_at_the_usual_places(host: Host, service: Callable[..., Agent], answer: Any) -> None:
    host.play_json(answer)
    assert (await service().call(ask("hi"), SOON)).text == "fine"


async def test_a_plain_text_is_the_answer_itself(host: Host, service: Callable[..., Agent]) -> None:
    host.play(host.answer('{"answer": "häß"}'.encode(), content_type="text/plain; charset=utf-8"))
    assert (await service().call(ask("hi"), SOON)).text == '{"answer": "häß"}'
    assert (await service(answer="$.answer").call(ask("hi"), SOON)).text == "häß"


async def test_the_answer_is_found_where_the_person_says(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"answer": "not this", "parts": [{"text": "one "}, {"text": "two"}], "result": {"a": [1, "é"]}})
    assert (await service(answer="$.parts[0].text").call(ask("hi"), SOON)).text == "one "
    assert (await service(answer="$.parts[*].text").call(ask("hi"), SOON)).text == "one two"
    reply = await service(answer="$.result").call(ask("hi"), SOON)
    assert (reply.text, reply.data) == ('{"a":[1,"é"]}', {"a": [1, "é"]})


async def test_an_answer_that_was_asked_for_as_data_is_given_as_data(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"answer": 'Here: {"a": 1}', "result": {"a": 2}})
    assert (await service().call(SHAPED, SOON)).data == {"a": 1}
    assert (await service(answer="$.result").call(SHAPED, SOON)).data == {"a": 2}
    assert (await service().call(ask("hi"), SOON)).data is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("no", "its answer holds no JSON, and a schema was asked for: 'no'"),
        ('{"a": "x"}', "its answer does not fit the schema: $.a: 'x' is not of type 'number'"),
        ({"a": "x"}, "its answer does not fit the schema: $.a: 'x' is not of type 'number'"),
        ('{"a": NaN}', "its answer does not fit the schema: it holds NaN"),
    ],
)
async def test_an_answer_of_another_shape_is_bad_output_and_paid_for(
    host: Host, service: Callable[..., Agent], answer: Any, words: str
) -> None:
    host.play_json({"result": answer, "cost": 0.02})
    said = await failure(service(answer="$.result", cost_usd="$.cost", most=DECLARED), SHAPED)
    assert isinstance(said, BadOutput)
    assert said.message.startswith(f"agent 'app' answered 200: {words}")
    assert (said.status, said.paid, said.cost) == (200, Paid.YES, 20_000)
    assert (await failure(service(answer="$.result", most=DECLARED), SHAPED)).paid is Paid.UNKNOWN


async def test_what_is_wrong_with_an_answer_is_told_without_our_secrets(
    host: Host, service: Callable[..., Agent]
) -> None:
    host.play_json({"answer": f"your key is {SECRET}"})
    said = await failure(service(key=SECRET), SHAPED)
    assert "your key is [hidden]" in said.message


async def test_an_answer_that_waits_for_tools_is_not_yet_the_answer_to_a_schema(
    host: Host, service: Callable[..., Agent]
) -> None:
    host.play_json({"tool_calls": [{"name": "look"}]})
    reply = await service().call(SHAPED, SOON)
    assert (reply.stop, reply.data) == (Stop.TOOL_USE, None)


async def test_a_schema_that_is_none_is_refused_before_anything_is_sent(
    host: Host, service: Callable[..., Agent]
) -> None:
    host.play_json({"answer": "x"})
    said = await failure(service(most=DECLARED), replace(ask("hi"), schema={"type": "thing"}))
    assert isinstance(said, InvalidRequest)
    assert (said.paid, host.seen) == (Paid.NO, [])


NOTHING_FOUND: dict[str, Any] = {
    "an empty object": {},
    "another name": {"result": "x" * 500},
    "a list": ["fine"],
    "null": None,
    "a number": 4,
    "null inside": {"answer": None},
}


@pytest.mark.parametrize("answer", NOTHING_FOUND.values(), ids=NOTHING_FOUND.keys())
async def test_an_answer_without_an_answer_is_shown_with_what_to_set(
    host: Host, service: Callable[..., Agent], answer: Any
) -> None:
    host.play_json(answer)
    error = await failure(service())
    assert isinstance(error, BadOutput)
    assert error.message.startswith("agent 'app' answered 200, but the answer has no text at any of the usual places")
    assert repr(json.dumps(answer)[:200]) in error.message
    assert "set `answer` in muster.toml" in error.suggestions[0]
    assert error.paid is Paid.NO


@pytest.mark.parametrize("answer", [{"b": "x"}, {"a": None}, "x", []])
async def test_nothing_at_the_place_that_was_named_is_told_with_the_place(
    host: Host, service: Callable[..., Agent], answer: Any
) -> None:
    host.play_json(answer)
    error = await failure(service(answer="$.a"))
    assert isinstance(error, BadOutput)
    assert "has nothing at $.a" in error.message


@pytest.mark.parametrize(
    "body", [b"", b"<html>no</html>", b"{", b"\xff\xfe", b"[" * 200_000], ids=lambda body: repr(body[:8])
)
async def test_a_body_that_is_no_json_is_bad_output(host: Host, service: Callable[..., Agent], body: bytes) -> None:
    host.play(host.answer(body))
    error = await failure(service())
    assert isinstance(error, BadOutput)
    assert "is not JSON" in error.message
    assert len(error.message) < 1000


async def test_half_a_character_does_not_lose_the_answer(host: Host, service: Callable[..., Agent]) -> None:
    host.play(host.answer(b'{"answer": "cut \\ud83d"}', content_type="application/json"))
    assert (await service().call(ask("hi"), SOON)).text == "cut \ud83d"


# Tools.

FLAT = {"id": "c1", "name": "search", "arguments": {"q": "x"}}
WRAPPED = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
CALL = ToolCall(id="c1", name="search", arguments={"q": "x"})


@pytest.mark.parametrize("call", [FLAT, WRAPPED], ids=["flat", "wrapped"])
@pytest.mark.parametrize("wrap", ["$.tool_calls", "$.choices[0].message.tool_calls", "$.mine[*]"])
async def test_tool_calls_are_read_in_both_spellings(
    host: Host, service: Callable[..., Agent], call: Any, wrap: str
) -> None:
    places: dict[str, Any] = {
        "$.tool_calls": {"tool_calls": [call]},
        "$.choices[0].message.tool_calls": {"choices": [{"message": {"content": None, "tool_calls": [call]}}]},
        "$.mine[*]": {"mine": [call], "tool_calls": "not this"},
    }
    host.play_json(places[wrap])
    reply = await service(**({"tool_calls": wrap} if "mine" in wrap else {})).call(ask("hi"), SOON)
    assert (reply.text, reply.tool_calls, reply.stop) == ("", (CALL,), Stop.TOOL_USE)


async def test_tools_that_the_service_used_by_itself_are_not_waited_for(
    host: Host, service: Callable[..., Agent]
) -> None:
    host.play_json({"answer": "done", "tool_calls": [{**FLAT, "result": {"n": 1}, "failed": True}, {"name": "look"}]})
    reply = await service().call(ask("hi"), SOON)
    assert reply.stop is Stop.END
    assert reply.tool_calls[0].result == '{"n":1}'
    assert reply.tool_calls[0].failed
    assert reply.tool_calls[1] == ToolCall(id="call_1", name="look")


async def test_tools_of_ours_are_waited_for_even_beside_a_text(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"answer": "I look.", "tool_calls": [FLAT]})
    request = Request(messages=ask("hi").messages, tools=(Tool(name="search"),))
    assert (await service().call(request, SOON)).stop is Stop.TOOL_USE


@pytest.mark.parametrize("calls", ["search", {"name": "search"}, [{"arguments": {}}], ["search"], [{"name": 3}]])
async def test_what_is_no_tool_call_is_bad_output_where_the_person_named_the_place(
    host: Host, service: Callable[..., Agent], calls: Any
) -> None:
    host.play_json({"answer": "done", "calls": calls, "tool_calls": calls})
    if calls != {"name": "search"}:  # one call without a list around it is understood
        error = await failure(service(tool_calls="$.calls"))
        assert isinstance(error, BadOutput)
        assert "$.calls" in error.message
    assert (await service().call(ask("hi"), SOON)).text == "done"


@pytest.mark.parametrize("calls", [None, []])
async def test_no_tool_calls_are_no_trouble(host: Host, service: Callable[..., Agent], calls: Any) -> None:
    host.play_json({"answer": "done", "calls": calls})
    assert (await service(tool_calls="$.calls").call(ask("hi"), SOON)).tool_calls == ()


# What it costs.

PRICE = price_from_toml(1, 10)


@pytest.mark.parametrize(
    "usage", [{"input_tokens": 3, "output_tokens": 5}, {"prompt_tokens": 3, "completion_tokens": 5.0}]
)
async def test_usage_is_found_at_the_usual_places_and_priced(
    host: Host, service: Callable[..., Agent], usage: Any
) -> None:
    host.play_json({"answer": "x", "usage": usage})
    agent = service(price=PRICE)
    reply = await agent.call(ask("hi"), SOON)
    assert (reply.usage, reply.cost, reply.lane) == (Usage(input=3, output=5), 53, Lane.BILLED)
    assert agent.quote(ask("hi")).most == len(host.seen[0].body) + 2048 * 10


async def test_usage_and_cost_are_found_where_the_person_says_and_added_up(
    host: Host, service: Callable[..., Agent]
) -> None:
    steps = [{"in": 1, "out": 2, "usd": 0.01}, {"in": 10, "out": 20, "usd": "0.0000001"}]
    host.play_json({"answer": "x", "steps": steps})
    agent = service(
        input_tokens="$.steps[*].in", output_tokens="$.steps[*].out", cost_usd="$.steps[*].usd", most=DECLARED
    )
    reply = await agent.call(ask("hi"), SOON)
    assert (reply.usage, reply.cost, reply.lane) == (Usage(input=11, output=22), 10_001, Lane.BILLED)
    assert agent.quote(ask("hi")).most == DECLARED


async def test_a_service_that_counts_nothing_is_counted_by_bytes_when_it_has_a_price(
    host: Host, service: Callable[..., Agent]
) -> None:
    host.play_json({"answer": "four", "usage": {"output_tokens": None}})
    reply = await service(price=PRICE).call(ask("hi"), SOON)
    assert reply.usage == Usage(input=len(host.seen[0].body), output=4)
    assert reply.cost == reply.usage.input + 40


@pytest.mark.parametrize("tokens", [-1, "many", True, 1.5, 2**53 + 1, float("nan"), float("inf")])
@pytest.mark.parametrize("field", ["input_tokens", "output_tokens"])
async def test_a_service_whose_counts_cannot_be_right_costs_the_most_that_it_can(
    host: Host, service: Callable[..., Agent], field: str, tokens: Any
) -> None:
    host.play_json({"answer": "four", "usage": {"input_tokens": 1, "output_tokens": 1, field: tokens}})
    agent = service(price=PRICE)
    reply = await agent.call(ask("hi"), SOON)
    assert (reply.text, reply.lane, reply.cost) == ("four", Lane.UNCERTAIN, agent.quote(ask("hi")).most)


@pytest.mark.parametrize("cost", [None, "much", -1, True, [], float(10**12)])
async def test_a_cost_that_nobody_knows_is_booked_as_the_most_that_it_can_be(
    host: Host, service: Callable[..., Agent], cost: Any
) -> None:
    host.play_json({"answer": "x", "cost": cost})
    reply = await service(cost_usd="$.cost", most=DECLARED).call(ask("hi"), SOON)
    assert (reply.text, reply.cost, reply.lane) == ("x", DECLARED, Lane.UNCERTAIN)
    assert reply.trace is not None
    assert "the maximum is booked" in reply.trace.note


async def test_a_service_of_which_nothing_is_said_costs_nothing(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"answer": "x"})
    agent = service()
    assert agent.quote(ask("hi")).most == 0
    reply = await agent.call(ask("hi"), SOON)
    assert (reply.cost, reply.usage, reply.trace) == (0, Usage(), None)


async def test_a_bad_answer_is_paid_for_all_the_same(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"cost": 0.02, "usage": {"input_tokens": 1, "output_tokens": 1}})
    said = await failure(service(cost_usd="$.cost", most=DECLARED))
    assert (said.paid, said.cost) == (Paid.YES, 20_000)
    priced = await failure(service(price=PRICE))
    assert (priced.paid, priced.cost) == (Paid.YES, 11)
    assert (await failure(service(most=DECLARED))).paid is Paid.UNKNOWN
    assert (await failure(service())).paid is Paid.NO


# How it fails.

STATUSES: dict[int, type[WireError]] = {
    307: InvalidRequest,
    400: InvalidRequest,
    401: AuthRefused,
    403: AuthRefused,
    404: CallFailed,
    405: CallFailed,
    408: OutcomeUnknown,
    409: TryLater,
    413: InvalidRequest,
    422: InvalidRequest,
    429: RateLimited,
    500: ProviderFault,
    503: Overloaded,
    504: OutcomeUnknown,
}


@pytest.mark.parametrize("status", STATUSES)
async def test_every_status_has_its_place_in_the_tree(host: Host, service: Callable[..., Agent], status: int) -> None:
    host.play_json({"error": {"message": "its words"}}, status, **{"retry-after": "7", "x-request-id": "r"})
    error = await failure(service())
    assert type(error) is STATUSES[status]
    assert error.message == f"agent 'app' answered {status}: its words"
    assert (error.status, error.retry_after, error.request_id) == (status, 7.0, "r")
    assert error.paid is Paid.NO, "nothing was said of a cost"


@pytest.mark.parametrize("status", STATUSES)
async def test_a_service_that_breaks_may_have_spent_money_before(
    host: Host, service: Callable[..., Agent], status: int
) -> None:
    host.play_json({}, status)
    error = await failure(service(most=DECLARED))
    assert error.paid is (Paid.UNKNOWN if status in (408, 500, 504) else Paid.NO)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"detail": [{"loc": ["body"]}]}', '[{"loc":["body"]}]'),
        (b'{"message": "m"}', "m"),
        (b'"just words"', "just words"),
        (b"<html>oh</html>", "<html>oh</html>"),
        (b"", "no reason given"),
        (b"{}", "{}"),
        (b"null", "null"),
    ],
)
async def test_the_words_of_a_failure_are_shown(
    host: Host, service: Callable[..., Agent], body: bytes, words: str
) -> None:
    host.play(host.answer(body, 500))
    assert (await failure(service())).message == f"agent 'app' answered 500: {words}"


async def test_an_address_where_nothing_is_says_what_to_check(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({}, 404)
    assert "check the url of agent 'app'" in (await failure(service())).suggestions[0]


async def test_a_refused_key_says_what_to_set(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({}, 401)
    assert "APP_KEY" in (await failure(service(key=SECRET))).suggestions[0]
    assert "key_env" in (await failure(service())).suggestions[0]


async def test_a_service_that_is_not_there_cost_nothing(http: HttpClient, unused_port: int) -> None:
    section = HttpSection(kind="http", url=f"http://127.0.0.1:{unused_port}/", budget_usd=1.0)
    error = await failure(make_service("app", section, profile=PROFILE, http=http, variables={}))
    assert isinstance(error, Unreachable)
    assert error.paid is Paid.NO


@pytest.mark.parametrize(("most", "paid"), [(None, Paid.NO), (DECLARED, Paid.UNKNOWN)])
async def test_an_answer_that_does_not_come_may_have_cost_what_was_declared(
    host: Host, http: HttpClient, service: Callable[..., Agent], most: Microdollars | None, paid: Paid
) -> None:
    await host.connect(http)
    host.play(host.hangs)
    with pytest.raises(OutcomeUnknown, match=r"within 0\.1 s") as caught:
        await service(most=most).call(ask("hi"), Timeouts(call=0.1))
    assert caught.value.paid is paid
    await host.left.wait()


# Secrets.


async def test_a_key_goes_out_as_a_bearer_token(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"answer": "fine"})
    await service(key=SECRET, headers={"Authorization": "Basic x"}).call(ask("hi"), SOON)
    assert host.seen[0].headers["authorization"] == f"Bearer {SECRET}"


WAYS: dict[str, dict[str, Any]] = {
    "key": {"key": SECRET},
    "header": {"headers": {"X-Api": SECRET}},
    "authorization": {"headers": {"Authorization": f"Basic {SECRET}"}},
    "query": {"path": f"/chat?token={SECRET}&v=1"},
    "lone query": {"path": f"/chat?{SECRET}"},
    "path": {"path": f"/hooks/{SECRET}/chat"},
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("status", [200, 401, 500])
async def test_no_secret_shows_even_when_the_service_repeats_it(
    host: Host, service: Callable[..., Agent], way: dict[str, Any], status: int
) -> None:
    host.play(host.answer(f'{{"error": "no entry for {SECRET}, {SECRET}"}}'.encode(), status))
    agent = service(**way)
    error = await failure(agent)
    assert "no entry for" in error.message
    assert "sesame" not in f"{error} {error!r} {error.record()} {agent!r}"


async def test_a_secret_in_the_address_is_hidden_in_both_spellings(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"error": "open sésame and open%20s%C3%A9same"}, 500)
    error = await failure(service(path="/chat?token=open%20s%C3%A9same"))
    assert error.message == "agent 'app' answered 500: [hidden] and [hidden]"


@pytest.mark.parametrize(
    "url",
    [
        f"ftp://host/x?key={SECRET}",
        f"http://me:{SECRET}@127.0.0.1/x",
        f"//{SECRET}",
        f"http://127.0.0.1:{SECRET}/",
        f"http:///{SECRET}",
        "",
    ],
)
def test_a_bad_address_is_refused_without_showing_it(http: HttpClient, url: str) -> None:
    with pytest.raises(BadConfiguration, match="the url of agent 'app' is not a valid address") as caught:
        make_service("app", HttpSection(kind="http", url=url), profile=PROFILE, http=http, variables={})
    assert "sesame" not in f"{caught.value} {caught.value.suggestions}"


def test_a_secret_is_not_sent_in_the_clear_over_the_internet(http: HttpClient) -> None:
    section = HttpSection(kind="http", url=f"http://example.org/x?k={SECRET}", headers={"x-key": SECRET})
    with pytest.raises(BadConfiguration, match="unencrypted") as caught:
        make_service("app", section, profile=PROFILE, http=http, variables={})
    assert "sesame" not in str(caught.value)
    bare = HttpSection(kind="http", url="http://example.org/x")
    assert make_service("app", bare, profile=PROFILE, http=http, variables={}).profile is PROFILE


def test_a_header_that_cannot_be_sent_is_refused_without_its_value(http: HttpClient) -> None:
    section = HttpSection(kind="http", url="http://127.0.0.1/", headers={"x-key": f"{SECRET}\r\nx: y"})
    with pytest.raises(BadConfiguration, match="'x-key'") as caught:
        make_service("app", section, profile=PROFILE, http=http, variables={})
    assert "sesame" not in str(caught.value)


# Made from a section.


async def test_a_section_makes_an_agent(host: Host, http: HttpClient) -> None:
    section = HttpSection(
        kind="http",
        url=f"{host.url}/ask",
        key_env="APP_KEY",
        headers={"x-team": "blue"},
        body={"q": "{prompt}"},
        answer="$.r.text",
        input_tokens="$.r.in",
        output_tokens="$.r.out",
        tool_calls="$.r.calls",
        cost_usd="$.r.usd",
        budget_usd=0.25,
        timeout_secs=9,
    )
    profile = profile_of("app", section)
    agent = make_service("app", section, profile=profile, http=http, variables={"APP_KEY": SECRET})
    host.play_json({"r": {"text": "fine", "in": 1, "out": 2, "usd": 0.2, "calls": [FLAT]}})
    reply = await agent.call(ask("hi"), SOON)
    assert (reply.text, reply.usage, reply.cost, reply.tool_calls) == (
        "fine",
        Usage(input=1, output=2),
        200_000,
        (CALL,),
    )
    assert agent.quote(ask("hi")).most == 250_000
    assert (host.seen[0].path, host.seen[0].json) == ("/ask", {"q": "hi"})
    assert host.seen[0].headers["authorization"] == f"Bearer {SECRET}"
    assert agent.profile.timeouts == Timeouts(call=9)


@pytest.mark.parametrize("variables", [{}, {"APP_KEY": ""}])
async def test_a_key_that_is_not_set_is_told_when_the_agent_is_asked(
    http: HttpClient, variables: dict[str, str]
) -> None:
    section = HttpSection(kind="http", url="http://127.0.0.1/", key_env="APP_KEY")
    agent = make_service("app", section, profile=PROFILE, http=http, variables=variables)
    assert agent.profile is PROFILE
    with pytest.raises(BadConfiguration, match="APP_KEY is not set"):
        agent.quote(ask("hi"))


def test_a_key_with_a_line_break_is_refused_without_showing_it(http: HttpClient) -> None:
    section = HttpSection(kind="http", url="http://127.0.0.1/", key_env="APP_KEY")
    agent = make_service("app", section, profile=PROFILE, http=http, variables={"APP_KEY": f"{SECRET}\n"})
    with pytest.raises(BadConfiguration, match="characters") as caught:
        agent.quote(ask("hi"))
    assert "sesame" not in str(caught.value)


@pytest.mark.parametrize("part", ["answer", "input_tokens", "output_tokens", "tool_calls", "cost_usd"])
def test_a_bad_path_is_named_when_the_agent_is_made(http: HttpClient, part: str) -> None:
    section = fit({"kind": "http", "url": "http://127.0.0.1/", part: "answer[0"}, HttpSection, ("agents", "app"))
    with pytest.raises(BadConfiguration, match=rf"agents\.app: {part}: 'answer\[0' is not a JSONPath"):
        make_service("app", section, profile=PROFILE, http=http, variables={})


# The contract of all agents.


@pytest.fixture
def candidate(host: Host, service: Callable[..., Agent]) -> Candidate:
    host.last = (host.answer(b'{"answer": "fine", "usage": {"input_tokens": 9, "output_tokens": 1}}'),)
    answer = host.last

    def hang() -> None:
        host.reached.clear()
        host.play(host.hangs)
        host.play(*answer)

    return Candidate(
        agent=service(price=PRICE), request=ask("Say it:  🎉", system="Be brief."), hang=hang, reached=host.reached.wait
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
async def test_a_service_keeps_the_contract_of_agents(
    candidate: Candidate, check: Callable[[Candidate], Awaitable[None]]
) -> None:
    await check(candidate)


async def test_an_empty_answer_is_no_delta(host: Host, service: Callable[..., Agent]) -> None:
    host.play_json({"answer": ""})
    deltas: list[str] = []
    reply: Reply = await service().call(ask("hi"), SOON, deltas.append)
    assert (reply.text, deltas) == ("", [])


async def test_a_canceled_call_hangs_up(host: Host, service: Callable[..., Agent]) -> None:
    host.play(host.hangs)
    call = asyncio.ensure_future(service().call(ask("hi"), SOON))
    await host.reached.wait()
    call.cancel()
    await host.left.wait()
    assert call.cancelled()
