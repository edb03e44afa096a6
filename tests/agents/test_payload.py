"""JSON and numbers of agents: written fast, read strictly, and amounts only where they are amounts."""

import json
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.anthropic import answer as anthropic
from muster.agents.anthropic.live import AnthropicStream as AnthropicFold
from muster.agents.faults import Account
from muster.agents.http.sse import ServerSentEvent
from muster.agents.openai import answer as openai
from muster.agents.openai.live import OpenAIStream as OpenAIFold
from muster.agents.payload import MALFORMED, arguments_of, count_of, joined, microdollars_of, reader, to_json
from muster.agents.usage import Ceiling
from muster.domain.call import Reply, Stop
from muster.domain.errors import OutcomeUnknown
from muster.domain.price import Pricing

ACCOUNT = Account(place="some/model")
CEILING = Ceiling(input=100, output=50)
HALF = "cut here: \ud83d"
USAGE = {"input_tokens": 1, "output_tokens": 2}
COUNTS = {"prompt_tokens": 1, "completion_tokens": 2}


def said(text: str, usage: Any = USAGE) -> bytes:
    content = [{"type": "text", "text": text}]
    return json.dumps({"id": "m", "content": content, "stop_reason": "max_tokens", "usage": usage}).encode()


def completed(text: str, usage: Any = COUNTS) -> bytes:
    choice = {"message": {"content": text}, "finish_reason": "length"}
    return json.dumps({"id": "c", "choices": [choice], "usage": usage}).encode()


def streamed_by_anthropic(*pieces: str) -> Reply:
    fold = AnthropicFold(Pricing(), CEILING, ACCOUNT)
    deltas = [{"type": "content_block_delta", "delta": {"type": "text_delta", "text": piece}} for piece in pieces]
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m", "usage": USAGE}},
        {"type": "content_block_start", "content_block": {"type": "text", "text": ""}},
        *deltas,
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}},
        {"type": "message_stop"},
    ]
    assert "".join([fold.feed(ServerSentEvent(event["type"], json.dumps(event).encode())) for event in events])
    return fold.finish()


def streamed_by_openai(*pieces: str) -> Reply:
    fold = OpenAIFold(Pricing(), CEILING, ACCOUNT)
    for piece in pieces:
        fold.feed(
            ServerSentEvent("message", json.dumps({"id": "c", "choices": [{"delta": {"content": piece}}]}).encode())
        )
    ending = {"choices": [{"delta": {}, "finish_reason": "length"}], "usage": COUNTS}
    fold.feed(ServerSentEvent("message", json.dumps(ending).encode()))
    return fold.finish()


STREAMS = [streamed_by_anthropic, streamed_by_openai]


@pytest.mark.parametrize("usage", [True, False])
def test_half_a_character_does_not_cost_the_answer(usage: bool) -> None:
    replies = [
        anthropic.decode(said(HALF, USAGE if usage else None), Pricing(), CEILING, ACCOUNT),
        openai.decode(completed(HALF, COUNTS if usage else None), Pricing(), CEILING, ACCOUNT),
    ]
    for reply in replies:
        assert (reply.text, reply.stop, reply.usage.output) == (HALF, Stop.MAX_TOKENS, 2 if usage else 13)


@pytest.mark.parametrize("streamed", STREAMS)
def test_half_a_character_does_not_cost_a_stream(streamed: Any) -> None:
    assert streamed("cut ", "here: \ud83d").text == HALF


@pytest.mark.parametrize("streamed", STREAMS)
def test_a_character_whose_halves_come_apart_is_one_again(streamed: Any) -> None:
    assert streamed("a\ud83c", "\udf89b", "\udf89").text == "a🎉b\udf89"


@given(st.text(), st.integers(0, 20))
def test_any_text_is_whole_again_however_its_halves_came_apart(text: str, at: int) -> None:
    halves = "".join(chr(unit) for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"))
    assert joined([halves[:at], halves[at:]]) == halves.encode("utf-16-le", "surrogatepass").decode(
        "utf-16-le", "surrogatepass"
    )


def test_half_a_character_in_arguments_is_kept() -> None:
    assert arguments_of('{"a":"\\ud83d"}') == {"a": "\ud83d"}
    assert arguments_of('{"a":"\ud83d"}') == {"a": "\ud83d"}
    assert arguments_of('{"a":"\\ud83d"') == {MALFORMED: '{"a":"\\ud83d"'}


@pytest.mark.parametrize("wrong", [[1], 3, "[1]", '"\\ud83d"'])
def test_what_are_no_arguments_is_kept_as_it_came(wrong: Any) -> None:
    assert arguments_of(wrong) == {MALFORMED: wrong}


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"x":"\\ud83d',
        b'{"a":"\\ud83d"}',
        b'{"\\ud83d',
        b"\\ud83d",
        b'{"a":1,"x":"\\ud83d\xff"}',
        b"[" * 10**5 + b"\\ud83d",
    ],
)
def test_what_is_broken_besides_stays_broken(body: bytes) -> None:
    with pytest.raises((msgspec.DecodeError, UnicodeError)):
        reader(dict[str, int])(body)
    with pytest.raises(OutcomeUnknown):
        anthropic.decode(body, Pricing(), CEILING, ACCOUNT)
    with pytest.raises(OutcomeUnknown):
        openai.decode(body, Pricing(), CEILING, ACCOUNT)


def test_an_error_with_half_a_character_in_it_is_still_that_error() -> None:
    for trouble in ("no \ud83d", {"message": "no \ud83d"}, {"message": ["no \ud83d"]}):
        with pytest.raises(OutcomeUnknown, match="no"):
            openai.decode(to_json({"error": trouble}), Pricing(), CEILING, ACCOUNT)
    with pytest.raises(OutcomeUnknown, match="no \ud83d"):
        anthropic.decode(to_json({"error": {"type": "x", "message": "no \ud83d"}}), Pricing(), CEILING, ACCOUNT)


@pytest.mark.parametrize(
    ("values", "micro"),
    [
        ([0], 0),
        ([0.01], 10_000),
        ([2], 2_000_000),
        (["0.25"], 250_000),
        ([Decimal("0.0000125")], 13),
        ([1e-7], 1),  # rounded up
        ([0.0000011], 2),
        ([0.1, 0.2], 300_000),  # though the sum of the floating-point numbers is more
        ([0.1 + 0.2], 300_000),
        ([0.012470000000000002], 12_470),
        ([None, 1], 1_000_000),
        ([True], None),
        ([float("nan")], None),
        ([float("inf")], None),
        (["nan"], None),
        ([-1], None),
        ([1, -1], None),
        (["free"], None),
        ([1, "free"], None),
        ([None, {}], None),
        ([None], None),
        ([], None),
        ([10**30], None),
        ([10**9, 10**9], None),
        ([10**5000], None),
    ],
)
def test_amounts_are_added_up_and_nonsense_makes_them_unknown(values: list[Any], micro: int | None) -> None:
    assert microdollars_of(*values) == micro


@given(st.floats(min_value=0, max_value=1e6))
def test_an_amount_is_never_less_than_was_said_by_more_than_noise(dollars: float) -> None:
    cost = microdollars_of(dollars)
    assert cost is not None
    assert -1e-3 <= cost - dollars * 1_000_000 < 1.001


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([3], 3),
        ([5.0], 5),
        ([1, None, 2], 3),
        ([0], 0),
        ([None], None),
        ([], None),
        ([True], None),
        (["5"], None),
        ([-1], None),
        ([1.5], None),
        ([1.5, 1.5], None),
        ([[3]], None),
        ([float("nan")], None),
        ([float("inf")], None),
        ([2**53], 2**53),
        ([2**53 + 1], None),
        ([2**53, 1], None),
    ],
)
def test_counts_are_whole_numbers_from_nothing_to_what_json_holds_exactly(values: list[Any], count: int | None) -> None:
    assert count_of(*values) == count
