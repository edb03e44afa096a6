"""Requests and answers of the Responses API, by themselves and as a stream; the SDK's types are the oracle."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from openai.types.responses.response_create_params import (
    ResponseCreateParamsNonStreaming,
    ResponseCreateParamsStreaming,
)
from pydantic import TypeAdapter

from muster.agents.faults import Account
from muster.agents.http.sse import ServerSentEvent
from muster.agents.openai.batch_format import ResponsesBatchFormat
from muster.agents.openai.responses_answer import decode
from muster.agents.openai.responses_live import ResponsesStream
from muster.agents.openai.responses_wire import encode
from muster.agents.payload import MALFORMED
from muster.agents.usage import Ceiling
from muster.domain.batch import Answered, Errored, Tariff
from muster.domain.call import Message, Reply, Role, Stop, Timings, ToolCall, Usage, ask, message_of
from muster.domain.content import BlockKind
from muster.domain.effort import EFFORT, EXTRA
from muster.domain.errors import AuthRefused, InvalidRequest, MusterError, OutcomeUnknown, Paid, RateLimited
from muster.domain.money import Lane, Microdollars
from muster.domain.price import Price, Pricing, Rates

from .test_wire import EVERYTHING, SCHEMA, USED

ACCOUNT = Account(place="openai/gpt-test", variable="OPENAI_API_KEY", key="sk-secret")
CEILING = Ceiling(input=100, output=50)
RATE = {"cache_read": Decimal("0.2"), "cache_write": Decimal(2), "cache_write_1h": Decimal(2)}
PRICE = Price(base=Rates(input=Decimal(2), output=Decimal(8), **RATE))
PRICING = Pricing(standard=PRICE)
USAGE = {
    "input_tokens": 10, "output_tokens": 20, "total_tokens": 30,
    "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1},
    "output_tokens_details": {"reasoning_tokens": 8},
}  # fmt: skip
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"}
CALL = {
    "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "status": "completed",
    "arguments": '{"city":"Bonn"}',
}  # fmt: skip


def message(text: str, kind: str = "output_text", **more: Any) -> dict[str, Any]:
    part = {"type": kind, "text": text, "annotations": []} if kind == "output_text" else {"type": kind, kind: text}
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part], **more}


def response(*output: Any, status: str | None = "completed", **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1, "model": "gpt-test", "output": list(output),
        "status": status, "usage": USAGE, "error": None, "incomplete_details": None, "parallel_tool_calls": True,
        "tool_choice": "auto", "tools": [], **more,
    }  # fmt: skip


def cut(reason: str) -> dict[str, Any]:
    return {"status": "incomplete", "incomplete_details": {"reason": reason}}


def read(value: Any) -> Reply:
    return decode(json.dumps(value).encode(), PRICING, CEILING, ACCOUNT, model="gpt-test")


def fold(*events: Any) -> tuple[Reply, list[str]]:
    folding = ResponsesStream(PRICING, CEILING, ACCOUNT, "gpt-test")
    lines = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    deltas = [folding.feed(ServerSentEvent("message", line)) for line in lines]
    return folding.finish(), deltas


def streamed(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """Say a whole response the way the API streams it; items are whole in the event that ends them."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**whole, "status": "in_progress", "output": [], "usage": None}}
    ]
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"], "content_index": 0}
        begun = {**item, **({"encrypted_content": ""} if item["type"] == "reasoning" else {})}
        events.append({"type": "response.output_item.added", "output_index": index, "item": begun})
        for part in item.get("content") or ():
            refusal = part["type"] == "refusal"
            kind = "refusal" if refusal else "output_text"
            more: dict[str, Any] = {} if refusal else {"logprobs": []}
            letters = part.get("text") or part.get("refusal")
            events += [{"type": f"response.{kind}.delta", "delta": letter, **place, **more} for letter in letters]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": f"response.{whole['status']}", "response": whole})
    return [event | {"sequence_number": number} for number, event in enumerate(events)]


def sent(request: Any, **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(encode(request, "gpt-test", **options))
    return body


def test_the_simplest_request_says_no_more_than_it_must() -> None:
    assert sent(replace(ask("hi"), max_tokens=50)) == {
        "model": "gpt-test",
        "max_output_tokens": 50,
        "input": [{"role": "user", "content": "hi"}],
        "store": False,
    }


def test_a_full_request_in_full(unrolled: Any) -> None:
    request = replace(EVERYTHING, stop=(), seed=None, settings={EFFORT: "low"})
    body = sent(request, stream=True, tier="flex", reasons=True)
    assert body == {
        "model": "gpt-test",
        "max_output_tokens": 99,
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "How is the weather?"},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Bonn"}'},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
            {"role": "system", "content": "Be kind."},
        ],
        "tools": [
            {
                "type": "function", "name": "weather", "description": "Tells the weather.", "parameters": SCHEMA,
                "strict": False,
            },
            {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}, "strict": False},
        ],
        "temperature": 0.5,
        "top_p": 0.9,
        "text": {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}},
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "service_tier": "flex",
        "stream": True,
    }  # fmt: skip
    assert unrolled(TypeAdapter(ResponseCreateParamsStreaming).validate_python(body)) == body
    plain = sent(request)
    assert unrolled(TypeAdapter(ResponseCreateParamsNonStreaming).validate_python(plain)) == plain


@pytest.mark.parametrize(
    ("settings", "reasons", "asked"),
    [({}, False, False), ({}, True, True), ({EFFORT: "low"}, False, True), ({EFFORT: "none"}, False, False)],
)
def test_reasoning_is_asked_for_only_where_there_is_some(settings: Any, reasons: bool, asked: bool) -> None:
    assert ("include" in sent(replace(ask("hi"), settings=settings), reasons=reasons)) is asked


def test_what_a_section_adds_is_joined_with_what_is_said_anyway() -> None:
    extra = {"text": {"verbosity": "low"}, "metadata": {"team": "blue"}}
    body = sent(replace(ask("hi"), schema=SCHEMA, settings={EXTRA: extra}))
    assert set(body["text"]) == {"verbosity", "format"}
    assert body["metadata"] == {"team": "blue"}


def test_a_response_becomes_a_reply() -> None:
    counted = Usage(input=5, output=20, cache_read=4, cache_write=1, thinking=8)
    assert read(response(message("Hello."))) == Reply(
        text="Hello.", stop=Stop.END, usage=counted, cost=PRICE.cost(counted), model="gpt-test", id="resp_1"
    )


def test_reasoning_goes_back_as_it_came_before_what_it_led_to() -> None:
    comment = message("I look.", phase="commentary")
    reply = read(response(REASONING, comment, CALL))
    assert (reply.text, reply.stop) == ("I look.", Stop.TOOL_USE)
    assert reply.tool_calls == (ToolCall(id="call_1", name="weather", arguments={"city": "Bonn"}),)
    assert reply.content is not None
    assert (reply.content.provider, reply.content.model) == ("openai/responses", "gpt-test")
    kinds = [block.kind for block in reply.content.blocks]
    assert kinds == [BlockKind.THINKING, BlockKind.TEXT, BlockKind.TOOL_CALL]
    told = Message(role=Role.TOOL, text="sunny", tool_call_id="call_1")
    again = replace(ask("hi"), messages=(USED[0], message_of(reply), told))
    assert sent(again)["input"][1:4] == [REASONING, comment, CALL]


def test_reasoning_that_nothing_follows_is_not_sent_back() -> None:
    reply = read(response(REASONING, **cut("max_output_tokens")))
    assert (reply.text, reply.stop, reply.content is None) == ("", Stop.MAX_TOKENS, False)
    again = replace(ask("hi"), messages=(USED[0], message_of(reply), USED[0]))
    assert [item.get("role") for item in sent(again)["input"]] == ["user", "user"]


def test_reasoning_without_its_content_is_not_sent_back() -> None:
    reply = read(response({**REASONING, "encrypted_content": None}, CALL))
    told = Message(role=Role.TOOL, text="sunny", tool_call_id="call_1")
    again = replace(ask("hi"), messages=(USED[0], message_of(reply), told))
    bare = {name: CALL[name] for name in ("type", "call_id", "name", "arguments")}
    assert sent(again)["input"][1:2] == [bare]


def test_text_and_calls_alone_are_not_kept_twice() -> None:
    assert read(response(message("Hi."), CALL)).content is None


def test_a_comment_on_the_way_is_no_part_of_the_answer() -> None:
    final = message("42", phase="final_answer")
    assert read(response(message("Let me count. ", phase="commentary"), final)).text == "42"


def test_reasoning_that_can_be_read_is_what_the_model_thought() -> None:
    summary = [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]
    reply = read(response({**REASONING, "summary": summary}, message("Hi.")))
    assert reply.content is not None
    assert reply.content.thinking == "First.\n\nThen."


@pytest.mark.parametrize(
    ("more", "stop"),
    [
        ({}, Stop.END),
        (cut("max_output_tokens"), Stop.MAX_TOKENS),
        (cut("content_filter"), Stop.REFUSED),
        (cut("steered"), Stop.OTHER),
        ({"status": "incomplete"}, Stop.OTHER),
        ({"status": None}, Stop.OTHER),
    ],
)
def test_reasons_to_stop(more: dict[str, Any], stop: Stop) -> None:
    assert read(response(message("x"), **more)).stop is stop


@pytest.mark.parametrize("arguments", ["{", "[1]", "nonsense", "3"])
def test_arguments_that_a_model_got_wrong_are_kept_as_they_came(arguments: str) -> None:
    assert read(response({**CALL, "arguments": arguments})).tool_calls[0].arguments == {MALFORMED: arguments}


@pytest.mark.parametrize(
    "usage",
    [None, {}, {"input_tokens": 3}, {"input_tokens": 0, "output_tokens": 0}, {"input_tokens": -1, "output_tokens": 1}],
)
@pytest.mark.parametrize("streams", [False, True])
def test_without_a_usage_that_can_be_right_the_reservation_is_booked_as_uncertain(usage: Any, streams: bool) -> None:
    whole = response(REASONING, message("twelve bytes"), usage=usage)
    reply = fold(*streamed(whole))[0] if streams else read(whole)
    booked = reply.booked(Microdollars(7))
    assert (booked.cost, booked.lane) == (7, Lane.UNCERTAIN)


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"{", b"<html>", b"\xff", b"{}", b'{"output": 3}', b'{"output": [], "status": "queued"}'],
)
def test_a_success_that_cannot_be_read_leaves_the_outcome_unknown(body: bytes) -> None:
    with pytest.raises(OutcomeUnknown, match="gpt-test"):
        decode(body, PRICING, CEILING, ACCOUNT)


FAILURES: list[tuple[Any, type[MusterError]]] = [
    ({"code": "server_error", "message": "fell over"}, OutcomeUnknown),
    ({"code": "rate_limit_exceeded", "message": "fell over"}, RateLimited),
    ({"code": "invalid_prompt", "message": "fell over"}, InvalidRequest),
    ({"code": "insufficient_quota", "message": "fell over"}, AuthRefused),
]


@pytest.mark.parametrize(("trouble", "error"), FAILURES)
@pytest.mark.parametrize("streams", [False, True])
def test_a_response_that_failed_may_have_been_paid(trouble: Any, error: type[MusterError], streams: bool) -> None:
    whole = response(status="failed", error=trouble, usage=None)
    with pytest.raises(error, match="fell over") as caught:
        fold(*streamed(whole)) if streams else read(whole)
    assert caught.value.paid is Paid.UNKNOWN  # type: ignore[attr-defined]


SLOW = {"code": 429, "message": "slow down"}


@pytest.mark.parametrize("trouble", [{"type": "error", **SLOW}, {"type": "error", "error": SLOW}])
def test_an_error_in_a_stream_costs_nothing_only_before_anything_came(trouble: Any) -> None:
    with pytest.raises(RateLimited, match="slow down") as caught:
        fold(trouble)
    assert caught.value.paid is Paid.NO
    with pytest.raises(OutcomeUnknown, match="slow down"):
        fold(*streamed(response(message("x")))[:1], trouble)


WHOLES = [
    response(message("Hello there.")),
    response(REASONING, CALL, {**CALL, "id": "fc_2", "call_id": "call_2"}),
    response(message("I will not.", "refusal")),
    response(REASONING, message("Grüße 🎉"), **cut("max_output_tokens"), service_tier="default"),
]


@pytest.mark.parametrize("whole", WHOLES)
@pytest.mark.parametrize("output", ["told again", "left out"])
def test_a_stream_gives_the_reply_that_a_plain_call_gives(whole: dict[str, Any], output: str) -> None:
    Response.model_validate(whole)
    events = streamed(whole)
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    for event in events:
        adapter.validate_python(event)
    if output == "left out":
        events[-1]["response"] = {name: value for name, value in whole.items() if name != "output"}
    reply, deltas = fold(*events)
    assert reply == read({**whole, "output": response(*[e["item"] for e in events if "done" in e["type"]])["output"]})
    assert "".join(deltas) == reply.text


def test_an_item_counts_as_it_was_when_it_was_whole() -> None:
    events = streamed(response(REASONING, message("x")))
    events[-1]["response"] = response({**REASONING, "encrypted_content": ""}, message("x"))
    reply, _ = fold(*events)
    assert reply.content is not None
    assert reply.content.blocks[0].raw == REASONING


def test_a_stream_that_ends_too_early_leaves_the_outcome_unknown() -> None:
    with pytest.raises(OutcomeUnknown, match="ended before"):
        fold(*streamed(WHOLES[0])[:-1], b"[DONE]")
    with pytest.raises(OutcomeUnknown):
        fold(b"{")


def test_a_member_of_a_batch_is_read_like_a_live_answer() -> None:
    spelling = ResponsesBatchFormat(ACCOUNT, "gpt-test")
    member = json.loads(spelling.member("r1", encode(ask("hi"), "gpt-test")))
    assert (member["url"], member["custom_id"]) == ("/v1/responses", "r1")
    whole = response(REASONING, message("Hi."))
    line = {"custom_id": "r1", "response": {"status_code": 200, "request_id": "x", "body": whole}, "error": None}
    name, result = spelling.read(json.dumps(line).encode()) or ("", None)
    assert isinstance(result, Answered)
    tariff = Tariff(model="gpt-test", batch=PRICE, live=PRICE)
    reply = spelling.decode(result.answer, tariff, CEILING.input, CEILING.output, Timings())
    assert (name, reply) == ("r1", replace(read(whole), timings=Timings()))
    line["response"] = {"status_code": 400, "body": {"error": {"message": "no", "code": "x"}}}
    _, refused = spelling.read(json.dumps(line).encode()) or ("", None)
    assert isinstance(refused, Errored)
