"""Members and results of batches of chat completions, as they are written and read."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
from pydantic import TypeAdapter

from muster.agents.faults import MAX_MESSAGE, Account
from muster.agents.openai.batch_format import ENDPOINT, OpenAIBatchFormat
from muster.agents.openai.wire import MaxTokens, encode
from muster.agents.prices import price_from_toml
from muster.domain.batch import Answered, Dropped, Errored, MemberResult, Shortfall, Tariff
from muster.domain.call import Stop, Timings, Usage, ask
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
SPELLING = OpenAIBatchFormat(Account(place="the batches at http://h", variable="SOME_KEY", key=KEY))
TARIFF = Tariff(model="m", batch=price_from_toml(1.5, 7.5), live=price_from_toml(3, 15))
COMPLETION: dict[str, Any] = {
    "id": "chatcmpl-1",
    "model": "gpt-test",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Grüße 🎉"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 20},
}


def line(response: Any = None, error: Any = None, name: str = "n_b_0") -> bytes:
    found = {"id": "batch_req_1", "custom_id": name, "response": response, "error": error}
    return json.dumps(found, ensure_ascii=False).encode()


def response(body: Any, status: int = 200) -> dict[str, Any]:
    return {"status_code": status, "request_id": "req_1", "body": body}


def read(text: bytes) -> tuple[str, MemberResult]:
    found = SPELLING.read(text)
    assert found is not None
    return found


def error_in(text: bytes) -> WireError:
    name, result = read(text)
    assert name == "n_b_0"
    assert isinstance(result, Errored)
    assert (result.error.paid, isinstance(result.error, OutcomeUnknown)) == (Paid.NO, False)
    return result.error


@pytest.mark.parametrize("max_tokens", MaxTokens)
def test_members_become_lines_that_the_official_types_know(
    max_tokens: MaxTokens, unrolled: Callable[[Any], Any]
) -> None:
    bodies = [encode(ask(f"one\n{n}\r\n--x"), "gpt-test", max_tokens=max_tokens) for n in range(2)]
    members = [SPELLING.member(f"n_b_{place}", body) for place, body in enumerate(bodies)]
    written = SPELLING.head + SPELLING.separator.join(members) + SPELLING.tail
    lines = written.split(b"\n")
    assert (len(lines), lines.pop(), b"\r" in written) == (3, b"", False)
    for place, text in enumerate(lines):
        member = json.loads(text)
        body = member.pop("body")
        assert member == {"custom_id": f"n_b_{place}", "method": "POST", "url": ENDPOINT}
        adapter: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsNonStreaming)
        assert unrolled(adapter.validate_python(body)) == body, "what the types do not know, they drop"


def test_a_success_holds_what_a_live_answer_would() -> None:
    name, result = read(line(response(COMPLETION)))
    assert name == "n_b_0"
    assert isinstance(result, Answered)
    reply = SPELLING.decode(result.answer, TARIFF, 1000, 100, Timings())
    assert (reply.text, reply.stop, reply.id, reply.model) == ("Grüße 🎉", Stop.END, "chatcmpl-1", "gpt-test")
    assert reply.cost == 10 * 1.5 + 20 * 7.5


def test_the_bytes_of_an_answer_are_kept_as_they_came() -> None:
    text = b'{"response":{"body": {"b":  1.0} ,"status_code":200},"custom_id":"a"}'
    assert read(text) == ("a", Answered(b'{"b":  1.0}'))


def test_without_usage_the_cost_is_uncertain_unless_it_has_no_price() -> None:
    body = json.dumps({"choices": [{"message": {"content": "x" * 500}}]}).encode()
    priced = SPELLING.decode(body, TARIFF, 1000, 100, Timings())
    assert (priced.usage, priced.lane) == (Usage(input=1000, output=100), Lane.UNCERTAIN)
    assert priced.booked(Microdollars(7)).cost == 7
    free = SPELLING.decode(body, replace(TARIFF, batch=None), 1000, 100, Timings())
    assert (free.cost, free.lane) == (0, Lane.BILLED)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("batch_expired", Shortfall.EXPIRED),
        ("request_expired", Shortfall.EXPIRED),
        ("batch_cancelled", Shortfall.CANCELED),
        ("batch_canceled", Shortfall.CANCELED),
        ("request_cancelled", Shortfall.CANCELED),
        ("request_canceled", Shortfall.CANCELED),
    ],
)
def test_a_member_that_was_not_processed_says_why(code: str, why: Shortfall) -> None:
    assert read(line(error={"code": code, "message": "too late"})) == ("n_b_0", Dropped(why))


STATUSES = {
    400: InvalidRequest,
    401: AuthRefused,
    404: UnknownModel,
    408: TryLater,
    429: RateLimited,
    500: ProviderFault,
    502: TryLater,
    503: Overloaded,
    504: TryLater,
}


@pytest.mark.parametrize("status", STATUSES)
def test_a_failed_member_has_the_error_of_a_live_call_and_was_not_paid(status: int) -> None:
    error = error_in(line(response({"error": {"message": f"words, and {KEY}", "code": "x"}}, status)))
    assert (type(error), error.status, error.request_id) == (STATUSES[status], status, "req_1")
    assert error.message == f"the batches at http://h answered {status}: words, and [key]"


def test_a_member_without_credit_stops_the_run() -> None:
    error = error_in(line(response({"error": {"message": "none left", "code": "insufficient_quota"}}, 429)))
    assert type(error) is AuthRefused


@pytest.mark.parametrize("body", [None, "broken", [], 5, {}])
def test_a_failure_whose_body_is_anything_is_a_failure(body: Any) -> None:
    assert type(error_in(line(response(body, 500)))) is ProviderFault


CODES = {
    "invalid_request": (400, InvalidRequest),
    "model_not_found": (404, UnknownModel),
    "rate_limit_exceeded": (429, RateLimited),
    "insufficient_quota": (429, AuthRefused),
    "server_error": (500, ProviderFault),
    "error_of_tomorrow": (500, ProviderFault),
    503: (503, Overloaded),
    504: (504, TryLater),
}


@pytest.mark.parametrize("code", CODES)
def test_an_error_without_an_answer_is_told_by_its_code(code: str | int) -> None:
    error = error_in(line(error={"code": code, "message": "words"}))
    status, kind = CODES[code]
    assert (type(error), error.status) == (kind, status)
    assert error.message.endswith("words")


@pytest.mark.parametrize(
    "error", ["broken", 5, [], {}, {"message": None}, {"code": {}}, {"code": None, "message": "x"}]
)
def test_an_error_that_cannot_be_read_is_a_fault_of_the_provider(error: Any) -> None:
    assert type(error_in(line(error=error))) is ProviderFault


def test_a_huge_error_is_cut() -> None:
    assert len(error_in(line(error={"code": "x", "message": "x" * 1_000_000})).message) < MAX_MESSAGE + 100


@pytest.mark.parametrize(
    "text", [line(), line(response(None)), line(response([])), line({"status_code": 200}), line({})]
)
def test_a_result_that_says_nothing_we_know_may_have_been_paid(text: bytes) -> None:
    name, found = read(text)
    assert name == "n_b_0"
    assert isinstance(found, Answered)
    with pytest.raises(OutcomeUnknown) as caught:
        SPELLING.decode(found.answer, TARIFF, 10, 10, Timings())
    assert caught.value.paid is Paid.UNKNOWN


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"custom_id":null}',
        b'{"custom_id":"a","response":5}',
        b'{"custom_id":"a","response":{"status_code":"200"}}',
        b'{"custom_id":"a","response":{"body":{"a":1}}',
        b'{"custom_id":"a","response":{"body":' + b"[" * 200_000,
        b"\xff\xfe",
    ],
)
def test_a_line_that_is_no_result_is_told(text: bytes) -> None:
    assert SPELLING.read(text) is None


@pytest.mark.parametrize("half", [b"\\ud83c", b"\xed\xa0\xbc"])
def test_half_a_character_does_not_lose_an_answer(half: bytes) -> None:
    text = line(response(COMPLETION)).replace("🎉".encode(), half)
    _, found = read(text)
    assert isinstance(found, Answered)
    assert SPELLING.decode(found.answer, TARIFF, 10, 10, Timings()).text == "Grüße \ud83c"


JSONS = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(body=JSONS, status=st.integers(), error=JSONS)
def test_every_result_with_a_name_is_somebodys(body: Any, status: int, error: Any) -> None:
    assert read(line(response(body, status % 1000)))[0] == "n_b_0"
    assert read(line(error=error))[0] == "n_b_0"


@given(st.binary())
def test_nothing_a_stranger_writes_raises(text: bytes) -> None:
    assert SPELLING.read(text) is None


@given(st.dictionaries(st.sampled_from([*COMPLETION, "error"]), JSONS, max_size=3))
def test_an_answer_in_a_batch_is_read_like_a_live_one(changes: dict[str, Any]) -> None:
    completion = COMPLETION | changes
    _, found = read(line(response(completion)))
    assert isinstance(found, Answered)
    assert decoded(found.answer) == decoded(json.dumps(completion, ensure_ascii=False).encode())


def decoded(answer: Any) -> Any:
    try:
        return SPELLING.decode(answer, TARIFF, 10, 10, Timings())
    except WireError as error:
        return type(error), str(error)
