import gzip
import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from anthropic.types import Message as OfficialMessage
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.anthropic.answer import decode
from muster.agents.anthropic.live import AnthropicStream
from muster.agents.faults import Account
from muster.agents.http.sse import ServerSentEvent
from muster.agents.payload import MALFORMED
from muster.agents.usage import Ceiling
from muster.domain.call import Reply, Stop, ToolCall, Usage
from muster.domain.errors import AuthRefused, InvalidRequest, MusterError, OutcomeUnknown, Overloaded, Paid, Undecodable
from muster.domain.money import NOTHING, Lane, Microdollars
from muster.domain.price import Price, Pricing, Rates

ACCOUNT = Account(place="anthropic/claude-test", variable="ANTHROPIC_API_KEY", key="sk-secret")
CEILING = Ceiling(input=100, output=50)
PRICE = Price(
    base=Rates(
        input=Decimal(3),
        output=Decimal(15),
        cache_read=Decimal("0.3"),
        cache_write=Decimal("3.75"),
        cache_write_1h=Decimal(6),
    )
)
PRICING = Pricing(standard=PRICE)
USAGE = {"input_tokens": 10, "output_tokens": 20, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}


def message(*content: dict[str, Any], stop: str | None = "end_turn", usage: Any = USAGE, **rest: Any) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": usage,
        **rest,
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def read(value: Any) -> Reply:
    return decode(json.dumps(value).encode(), PRICING, CEILING, ACCOUNT)


def fold(*events: dict[str, Any]) -> tuple[Reply, list[str]]:
    folding = AnthropicStream(PRICING, CEILING, ACCOUNT)
    deltas = [folding.feed(ServerSentEvent(event["type"], json.dumps(event).encode())) for event in events]
    return folding.finish(), deltas


def streamed(whole: dict[str, Any], pieces: int = 3) -> list[dict[str, Any]]:
    """Say a whole message the way the API streams it."""
    opening = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opening}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        empty, field, said = {**block, "thinking": "", "signature": ""}, "thinking", block.get("thinking", "")
        kind = "thinking_delta"
        if block["type"] == "text":
            empty, field, said, kind = text(""), "text", block["text"], "text_delta"
        if block["type"] == "tool_use":
            empty, field, kind = {**block, "input": {}}, "partial_json", "input_json_delta"
            said = json.dumps(block["input"]) if block["input"] else ""
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        cut = max(1, len(said) // pieces)
        for start in range(0, len(said), cut):
            delta = {"type": kind, field: said[start : start + cut]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        if "signature" in block:
            delta = {"type": "signature_delta", "signature": block["signature"]}
            events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    usage = {"output_tokens": whole["usage"]["output_tokens"]}
    return [*events, {"type": "message_delta", "delta": ending, "usage": usage}, {"type": "message_stop"}]


USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bonn"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "s"}


def test_a_message_becomes_a_reply() -> None:
    assert read(message(text("Hello."))) == Reply(
        text="Hello.",
        stop=Stop.END,
        usage=Usage(input=10, output=20),
        cost=PRICE.cost(Usage(input=10, output=20)),
        model="claude-test",
        id="msg_1",
    )


def test_text_blocks_are_joined_and_unknown_blocks_ignored() -> None:
    strange = {"type": "hologram", "text": 7, "input": "x", "name": None}
    reply = read(message(THOUGHT, text("a"), strange, text("b"), USE, stop="tool_use"))
    assert (reply.text, reply.stop) == ("ab", Stop.TOOL_USE)
    assert reply.tool_calls == (ToolCall(id="toolu_1", name="weather", arguments={"city": "Bonn"}),)


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", Stop.END),
        ("stop_sequence", Stop.SEQUENCE),
        ("tool_use", Stop.TOOL_USE),
        ("max_tokens", Stop.MAX_TOKENS),
        ("model_context_window_exceeded", Stop.MAX_TOKENS),
        ("refusal", Stop.REFUSED),
        ("pause_turn", Stop.OTHER),
        (None, Stop.OTHER),
    ],
)
def test_reasons_to_stop(reason: str | None, stop: Stop) -> None:
    assert read(message(text("x"), stop=reason)).stop is stop


def test_the_cache_is_counted_by_how_long_it_keeps() -> None:
    kept = {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 4}
    usage = {**USAGE, "cache_creation_input_tokens": 7, "cache_read_input_tokens": 5, "cache_creation": kept}
    assert read(message(text("x"), usage=usage)).usage == Usage(
        input=10, output=20, cache_read=5, cache_write=3, cache_write_1h=4
    )
    assert read(message(text("x"), usage={**usage, "cache_creation": None})).usage.cache_write == 7


def test_without_usage_bytes_are_counted_and_the_reservation_is_booked_as_uncertain() -> None:
    reply = read(message(text("twelve bytes"), usage=None))
    assert reply.usage == Usage(input=100, output=12)
    booked = reply.booked(Microdollars(7))
    assert (booked.cost, booked.lane) == (7, Lane.UNCERTAIN)
    assert read(message(text("x" * 1000), usage=None)).usage.output == CEILING.output


NO_OUTPUT = {**USAGE, "output_tokens": 0}
NO_INPUT = {**USAGE, "input_tokens": 0}
NOTHING_COUNTED = {**NO_INPUT, "output_tokens": 0}


@pytest.mark.parametrize("usage", [NO_OUTPUT, NO_INPUT, NOTHING_COUNTED])
@pytest.mark.parametrize("content", [text("Hello."), USE, THOUGHT], ids=["text", "tool call", "thinking"])
@pytest.mark.parametrize("streams", [False, True])
def test_content_without_tokens_is_booked_at_the_reservation_as_uncertain(
    usage: dict[str, int], content: dict[str, Any], streams: bool
) -> None:
    whole = message(content, usage=usage)
    reply = fold(*streamed(whole))[0] if streams else read(whole)
    booked = reply.booked(Microdollars(7))
    assert (booked.cost, booked.lane) == (7, Lane.UNCERTAIN)
    assert reply.usage.input == CEILING.input
    assert reply.trace is not None
    assert "tokens were reported" in reply.trace.note


def test_an_empty_answer_without_output_tokens_is_certain() -> None:
    reply = read(message(usage=NO_OUTPUT))
    assert (reply.cost, reply.lane) == (PRICE.cost(Usage(input=10)), Lane.BILLED)


@pytest.mark.parametrize("field", ["cache_read_input_tokens", "cache_creation_input_tokens"])
def test_a_request_that_the_cache_has_wholly_taken_is_certain(field: str) -> None:
    assert read(message(text("Hello."), usage={**NO_INPUT, field: 9})).lane is Lane.BILLED


def test_what_was_counted_is_booked_when_it_is_more_than_the_reservation() -> None:
    reply = read(message(text("Hello."), usage={**NO_OUTPUT, "input_tokens": 1_000_000}))
    assert (reply.cost, reply.lane) == (PRICE.cost(Usage(input=1_000_000)), Lane.UNCERTAIN)


@pytest.mark.parametrize("field", ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"])
def test_a_later_0_does_not_replace_what_was_counted_before(field: str) -> None:
    events = streamed(message(text("x"), usage={**USAGE, field: 8}))
    events[-2]["usage"] = {"output_tokens": 9, field: 0, "cache_creation": {"ephemeral_5m_input_tokens": 0}}
    reply = fold(*events)[0]
    assert reply == replace(read(message(text("x"), usage={**USAGE, field: 8, "output_tokens": 9})))


def test_the_count_with_which_a_stream_begins_is_not_that_of_its_answer() -> None:
    events = streamed(message(text("x")))
    del events[-2]["usage"]
    assert fold(*events)[0].lane is Lane.UNCERTAIN


@pytest.mark.parametrize("body", [b"", b"null", b"{", b'{"content": "x"}', b"<html>", b"\xff\xfe", b'{"id": 1}'])
def test_a_success_that_cannot_be_read_leaves_the_outcome_unknown(body: bytes) -> None:
    with pytest.raises(OutcomeUnknown, match="claude-test") as caught:
        decode(body, PRICING, CEILING, ACCOUNT)
    assert caught.value.paid is Paid.UNKNOWN


@pytest.mark.parametrize("body", [gzip.compress(b'{"id": 1}', mtime=0), b'{"id": "\xe9"}'], ids=["gzip", "latin-1"])
def test_a_success_that_is_not_text_is_not_asked_again(body: bytes) -> None:
    with pytest.raises(Undecodable, match="which is not UTF-8"):
        decode(body, PRICING, CEILING, ACCOUNT)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("overloaded_error", Overloaded),
        ("invalid_request_error", InvalidRequest),
        ("authentication_error", AuthRefused),
        ("billing_error", AuthRefused),
        ("never_seen_error", OutcomeUnknown),
    ],
)
def test_an_error_inside_a_success_is_an_error(kind: str, error: type[MusterError]) -> None:
    with pytest.raises(error, match="no luck"):
        read({"type": "error", "error": {"type": kind, "message": "no luck"}})


WHOLES = [
    message(text("Hello there, how are you?")),
    message(THOUGHT, text("I look."), USE, {**USE, "id": "toolu_2", "input": {}}, stop="tool_use"),
    message(text("Grüße 🎉"), text(" and more"), stop="max_tokens"),
    message(stop="refusal"),
]


@pytest.mark.parametrize("whole", WHOLES)
def test_a_stream_gives_the_reply_that_a_plain_call_gives(whole: dict[str, Any]) -> None:
    OfficialMessage.model_validate(whole)
    reply, deltas = fold(*streamed(whole))
    assert reply == read(whole)
    assert "".join(deltas) == reply.text


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=4), st.integers(1, 7))
def test_any_text_survives_streaming(texts: list[str], pieces: int) -> None:
    whole = message(*(text(words) for words in texts))
    reply, deltas = fold(*streamed(whole, pieces))
    assert reply == read(whole)
    assert "".join(deltas) == reply.text == "".join(texts)


def test_the_last_counts_hold() -> None:
    events = streamed(message(text("x")))
    events[-2]["usage"] = {"output_tokens": 9, "input_tokens": 11, "cache_read_input_tokens": 2}
    assert fold(*events)[0].usage == Usage(input=11, output=9, cache_read=2)


def test_arguments_that_are_cut_are_kept_as_they_came() -> None:
    events = streamed(message(USE, stop="max_tokens"))
    cut = [event for event in events if event["type"] != "content_block_delta" or event != events[-4]]
    arguments = fold(*cut)[0].tool_calls[0].arguments
    assert arguments.keys() == {MALFORMED}


def test_a_stream_without_its_end_leaves_the_outcome_unknown() -> None:
    with pytest.raises(OutcomeUnknown, match="ended before"):
        fold(*streamed(WHOLES[0])[:-1])


def test_an_event_that_cannot_be_read_leaves_the_outcome_unknown() -> None:
    for data in (b"", b"{", b"[]", b'{"type": "content_block_start", "content_block": 3}', b'{"type":"message_start"}'):
        with pytest.raises(OutcomeUnknown):
            AnthropicStream(PRICING, CEILING, ACCOUNT).feed(ServerSentEvent("message_start", data))


ERROR = {"type": "error", "error": {"type": "overloaded_error", "message": "full of sk-secret"}}


def test_an_error_before_the_message_began_costs_nothing() -> None:
    with pytest.raises(Overloaded, match=r"full of \[key\]") as caught:
        fold(ERROR)
    assert (caught.value.paid, caught.value.status) == (Paid.NO, 529)


def test_an_error_in_the_middle_leaves_the_outcome_unknown() -> None:
    with pytest.raises(OutcomeUnknown, match="full") as caught:
        fold(*streamed(WHOLES[0])[:4], ERROR)
    assert caught.value.paid is Paid.UNKNOWN


def test_events_of_the_future_are_ignored() -> None:
    whole = streamed(WHOLES[0])
    future = {"type": "mood_update", "message": "cheerful", "index": 3}
    assert fold(*whole[:3], future, *whole[3:])[0] == read(WHOLES[0])


def test_a_price_of_none_costs_nothing() -> None:
    body = json.dumps(WHOLES[0]).encode()
    assert decode(body, Pricing(), CEILING, ACCOUNT) == replace(read(WHOLES[0]), cost=NOTHING)
