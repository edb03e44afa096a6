"""Members and results of Message Batches, as they are written and read."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from anthropic.types.messages import MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import BatchCreateParams
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from muster.agents.anthropic.batch import AnthropicBatchFormat, encode
from muster.agents.faults import MAX_MESSAGE, Account
from muster.agents.prices import price_from_toml
from muster.domain.batch import Answered, Dropped, Errored, MemberResult, Shortfall, Tariff
from muster.domain.call import Message, Request, Role, Stop, Timings, Tool, Usage, ask
from muster.domain.errors import (
    AuthRefused,
    InvalidRequest,
    OutcomeUnknown,
    Overloaded,
    Paid,
    ProviderFault,
    RateLimited,
    TryLater,
    UnknownModel,
    WireError,
)
from muster.domain.money import Lane, Microdollars

KEY = "sk-very-secret"
SPELLING = AnthropicBatchFormat(Account(place="the batches at http://h", variable="SOME_KEY", key=KEY))
TARIFF = Tariff(model="m", batch=price_from_toml(1.5, 7.5), live=price_from_toml(3, 15))
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-test",
    "content": [{"type": "text", "text": "Grüße 🎉"}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 20, "service_tier": "batch"},
}


def line(result: Any, name: str = "n_b_0") -> bytes:
    return json.dumps({"custom_id": name, "result": result}, ensure_ascii=False).encode()


def read(text: bytes) -> tuple[str, MemberResult]:
    found = SPELLING.read(text)
    assert found is not None
    return found


def error_in(error: Any) -> WireError:
    name, result = read(line({"type": "errored", "error": error}))
    assert name == "n_b_0"
    assert isinstance(result, Errored)
    assert (result.error.paid, isinstance(result.error, OutcomeUnknown)) == (Paid.NO, False)
    return result.error


def test_members_become_one_body() -> None:
    bodies = [encode(ask(text), "claude-test", cache=False) for text in ("one", "two")]
    members = [SPELLING.member(f"n_b_{place}", body) for place, body in enumerate(bodies)]
    written = SPELLING.head + SPELLING.separator.join(members) + SPELLING.tail
    assert json.loads(written) == {
        "requests": [{"custom_id": f"n_b_{place}", "params": json.loads(body)} for place, body in enumerate(bodies)]
    }


FULL = Request(
    messages=(Message(role=Role.USER, text="How is the weather?"),),
    system="Be brief.",
    tools=(Tool(name="weather", description="Tells the weather."),),
    max_tokens=99,
    stop=("END",),
)


@pytest.mark.parametrize("cache", [False, True])
def test_the_official_types_know_everything_we_send(cache: bool, unrolled: Callable[[Any], Any]) -> None:
    requests = (ask("hi"), FULL, replace(FULL, system=""), replace(FULL, cache="5m"))
    members = [SPELLING.member(f"n_b_{n}", encode(one, "m", cache=cache)) for n, one in enumerate(requests)]
    body = json.loads(SPELLING.head + SPELLING.separator.join(members) + SPELLING.tail)
    adapter: TypeAdapter[Any] = TypeAdapter(BatchCreateParams)
    assert unrolled(adapter.validate_python(body)) == body, "what the types do not know, they drop"


def test_a_batch_may_mark_the_shared_prefix_for_an_hour() -> None:
    body = json.loads(encode(FULL, "m", cache=True))
    assert body["system"][0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    own = json.loads(encode(replace(FULL, cache="5m"), "m", cache=True))
    assert own["system"][0]["cache_control"]["ttl"] == "5m"
    assert json.loads(encode(FULL, "m", cache=False))["system"] == "Be brief."


def test_a_success_holds_what_a_live_answer_would() -> None:
    text = line({"type": "succeeded", "message": MESSAGE})
    MessageBatchIndividualResponse.model_validate_json(text)
    name, result = read(text)
    assert name == "n_b_0"
    assert isinstance(result, Answered)
    reply = SPELLING.decode(result.answer, TARIFF, 1000, 100, Timings())
    assert (reply.text, reply.stop, reply.id, reply.model) == ("Grüße 🎉", Stop.END, "msg_1", "claude-test")
    assert reply.cost == 10 * 1.5 + 20 * 7.5


def test_the_bytes_of_an_answer_are_kept_as_they_came() -> None:
    text = b'{"custom_id":"a","result":{ "message" : {"b":  1.0,"c":"\\u00fc"} ,"type":"succeeded"}}\r'
    assert read(text) == ("a", Answered(b'{"b":  1.0,"c":"\\u00fc"}'))


def test_without_usage_the_cost_is_uncertain_unless_it_has_no_price() -> None:
    body = json.dumps({"content": [{"type": "text", "text": "x" * 500}]}).encode()
    priced = SPELLING.decode(body, TARIFF, 1000, 100, Timings())
    assert (priced.usage, priced.lane) == (Usage(input=1000, output=100), Lane.UNCERTAIN)
    assert priced.booked(Microdollars(7)).cost == 7
    free = SPELLING.decode(body, replace(TARIFF, batch=None), 1000, 100, Timings())
    assert (free.cost, free.lane) == (0, Lane.BILLED)


@pytest.mark.parametrize(("kind", "why"), [("canceled", Shortfall.CANCELED), ("expired", Shortfall.EXPIRED)])
def test_a_member_that_was_not_processed_says_why(kind: str, why: Shortfall) -> None:
    assert read(line({"type": kind})) == ("n_b_0", Dropped(why))


KINDS = {
    "invalid_request_error": (400, InvalidRequest),
    "authentication_error": (401, AuthRefused),
    "billing_error": (402, AuthRefused),
    "permission_error": (403, AuthRefused),
    "not_found_error": (404, UnknownModel),
    "request_too_large": (413, InvalidRequest),
    "rate_limit_error": (429, RateLimited),
    "api_error": (500, ProviderFault),
    "timeout_error": (504, TryLater),
    "overloaded_error": (529, Overloaded),
    "error_of_tomorrow": (500, ProviderFault),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("nested", [True, False])
def test_a_failed_member_has_the_error_of_a_live_call_and_was_not_paid(kind: str, nested: bool) -> None:
    inner = {"type": kind, "message": f"words, and {KEY}"}
    error = error_in({"type": "error", "error": inner, "request_id": "req_1"} if nested else inner)
    status, expected = KINDS[kind]
    assert (type(error), error.status) == (expected, status)
    assert error.message == f"the batches at http://h answered {status}: words, and [key]"
    assert error.request_id == ("req_1" if nested else None)


@pytest.mark.parametrize(
    "error", [None, 5, "broken", [], {}, {"error": 5}, {"error": {"message": ["x"]}}, {"error": None}]
)
def test_an_error_that_cannot_be_read_is_a_fault_of_the_provider(error: Any) -> None:
    assert type(error_in(error)) is ProviderFault


def test_a_failure_without_any_error_is_a_fault_of_the_provider() -> None:
    _, result = read(line({"type": "errored"}))
    assert isinstance(result, Errored)
    assert "no reason given" in result.error.message


def test_a_huge_error_is_cut() -> None:
    error = error_in({"error": {"type": "api_error", "message": "x" * 1_000_000}})
    assert len(error.message) < MAX_MESSAGE + 100


@pytest.mark.parametrize(
    "result",
    [
        {"type": "paused"},
        {},
        {"type": "succeeded"},
        {"type": "succeeded", "message": None},
        {"type": "succeeded", "message": []},
    ],
)
def test_a_result_that_says_nothing_we_know_may_have_been_paid(result: Any) -> None:
    name, found = read(line(result))
    assert name == "n_b_0"
    assert isinstance(found, Answered)
    with pytest.raises(OutcomeUnknown) as caught:
        SPELLING.decode(found.answer, TARIFF, 10, 10, Timings())
    assert caught.value.paid is Paid.UNKNOWN


def test_an_error_that_hides_in_a_success_is_raised() -> None:
    _, found = read(line({"type": "succeeded", "message": {"error": {"type": "overloaded_error", "message": "full"}}}))
    assert isinstance(found, Answered)
    with pytest.raises(Overloaded, match="full"):
        SPELLING.decode(found.answer, TARIFF, 10, 10, Timings())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\n",
        b"null",
        b"[]",
        b"{}",
        b"{",
        b'{"custom_id":"a"}',
        b'{"custom_id":"a","result":null}',
        b'{"custom_id":5,"result":{"type":"canceled"}}',
        b'{"result":{"type":"canceled"}}',
        b'{"custom_id":"a","result":{"type":"succeeded","message":{"a":1}}',
        b'{"custom_id":"a","result":{"type":"succeeded","message":' + b"[" * 200_000,
        b"\xff\xfe",
        b"<html>",
    ],
)
def test_a_line_that_is_no_result_is_told(text: bytes) -> None:
    assert SPELLING.read(text) is None


@pytest.mark.parametrize("half", [b"\\ud83c", b"\xed\xa0\xbc"])
def test_half_a_character_does_not_lose_an_answer(half: bytes) -> None:
    text = line({"type": "succeeded", "message": MESSAGE}).replace("🎉".encode(), half)
    _, found = read(text)
    assert isinstance(found, Answered)
    assert SPELLING.decode(found.answer, TARIFF, 10, 10, Timings()).text == "Grüße \ud83c"


@given(
    st.binary() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(lambda x: json.dumps(x).encode())
)
def test_nothing_a_stranger_writes_raises(text: bytes) -> None:
    assert SPELLING.read(text) is None


JSONS = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["succeeded", "errored", "canceled", "x"])},
        optional={"message": JSONS, "error": JSONS},
    )
)
def test_every_result_with_a_name_is_somebodys(result: Any) -> None:
    assert read(line(result))[0] == "n_b_0"


@given(st.dictionaries(st.sampled_from([*MESSAGE, "error"]), JSONS, max_size=3))
def test_an_answer_in_a_batch_is_read_like_a_live_one(changes: dict[str, Any]) -> None:
    message = MESSAGE | changes
    _, found = read(line({"type": "succeeded", "message": message}))
    assert isinstance(found, Answered)
    assert decoded(found.answer) == decoded(json.dumps(message, ensure_ascii=False).encode())


def decoded(answer: Any) -> Any:
    try:
        return SPELLING.decode(answer, TARIFF, 10, 10, Timings())
    except WireError as error:
        return type(error), str(error)
