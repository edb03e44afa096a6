import gzip
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from muster.agents.faults import Account
from muster.agents.http.sse import ServerSentEvent
from muster.agents.openai.answer import decode
from muster.agents.openai.live import OpenAIStream
from muster.agents.payload import MALFORMED
from muster.agents.usage import Ceiling
from muster.domain.call import Quality, Reply, Stop, ToolCall, Usage
from muster.domain.errors import (
    AuthRefused,
    InvalidRequest,
    MusterError,
    OutcomeUnknown,
    Paid,
    RateLimited,
    Undecodable,
)
from muster.domain.money import Lane, Microdollars
from muster.domain.price import Price, Pricing, Rates

ACCOUNT = Account(place="openai/gpt-test", variable="OPENAI_API_KEY", key="sk-secret")
CEILING = Ceiling(input=100, output=50)
RATE = {"cache_read": Decimal("0.2"), "cache_write": Decimal(2), "cache_write_1h": Decimal(2)}
PRICE = Price(base=Rates(input=Decimal(2), output=Decimal(8), **RATE))
PRICING = Pricing(standard=PRICE)
USAGE = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bonn"}'}},
    {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
]


def completion(said: dict[str, Any], finish: str | None = "stop", usage: Any = USAGE, **rest: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-test",
        "choices": [
            {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": finish, "logprobs": None, **rest}
        ],
        "usage": usage,
    }


def read(value: Any) -> Reply:
    return decode(json.dumps(value).encode(), PRICING, CEILING, ACCOUNT)


def fold(*chunks: Any) -> tuple[Reply, list[str]]:
    folding = OpenAIStream(PRICING, CEILING, ACCOUNT)
    lines = [chunk if isinstance(chunk, bytes) else json.dumps(chunk).encode() for chunk in chunks]
    deltas = [folding.feed(ServerSentEvent("message", line)) for line in lines]
    return folding.finish(), deltas


def streamed(whole: dict[str, Any], pieces: int = 3) -> list[Any]:
    """Say a whole completion the way the API streams it."""
    choice = whole["choices"][0]
    said = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for field in ("content", "refusal", "reasoning_content"):
        words = said.get(field) or ""
        cut = max(1, len(words) // pieces)
        deltas += [{field: words[start : start + cut]} for start in range(0, len(words), cut)]
    for index, call in enumerate(said.get("tool_calls") or ()):
        function = call["function"]
        deltas.append({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        for letter in function["arguments"]:
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": letter}}]})
    head = {"id": whole["id"], "object": "chat.completion.chunk", "created": 1, "model": whole["model"]}
    parts = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    parts.append({"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]})
    chunks: list[Any] = [{**head, "choices": [part], "usage": None} for part in parts]
    return [*chunks, {**head, "choices": [], "usage": whole["usage"]}, b"[DONE]"]


def test_a_completion_becomes_a_reply() -> None:
    assert read(completion({"content": "Hello."})) == Reply(
        text="Hello.",
        stop=Stop.END,
        usage=Usage(input=10, output=20),
        cost=PRICE.cost(Usage(input=10, output=20)),
        model="gpt-test",
        id="chatcmpl-1",
    )


def test_tool_calls_are_read() -> None:
    reply = read(completion({"content": None, "tool_calls": CALLS}, "tool_calls"))
    assert (reply.text, reply.stop) == ("", Stop.TOOL_USE)
    assert reply.tool_calls[0] == ToolCall(id="call_1", name="weather", arguments={"city": "Bonn"})


def test_tool_calls_of_sloppy_servers_are_read_too() -> None:
    calls = [{"function": {"name": "weather", "arguments": {"city": "Bonn"}}}, {"id": "x", "custom": {}}]
    reply = read(completion({"tool_calls": calls}, "stop"))
    assert reply.stop is Stop.TOOL_USE
    assert reply.tool_calls == (ToolCall(id="call_0", name="weather", arguments={"city": "Bonn"}),)


@pytest.mark.parametrize("arguments", ["{", "[1]", "nonsense", "3"])
def test_arguments_that_a_model_got_wrong_are_kept_as_they_came(arguments: str) -> None:
    calls = [{"id": "c", "function": {"name": "f", "arguments": arguments}}]
    assert read(completion({"tool_calls": calls})).tool_calls[0].arguments == {MALFORMED: arguments}


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": []}, {"type": "text", "text": "b"}]
    assert read(completion({"content": parts})).text == "ab"


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("stop", Stop.END),
        ("tool_calls", Stop.TOOL_USE),
        ("length", Stop.MAX_TOKENS),
        ("content_filter", Stop.REFUSED),
        ("tired", Stop.OTHER),
        (None, Stop.OTHER),
    ],
)
def test_reasons_to_stop(reason: str | None, stop: Stop) -> None:
    assert read(completion({"content": "x"}, reason)).stop is stop


def test_a_refusal_is_a_refusal_whatever_the_reason_says() -> None:
    reply = read(completion({"content": None, "refusal": "I cannot."}, "stop"))
    assert (reply.text, reply.stop) == ("I cannot.", Stop.REFUSED)


def test_what_the_cache_read_and_wrote_is_not_counted_twice() -> None:
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 1, "audio_tokens": 0}}
    assert read(completion({"content": "x"}, usage=usage)).usage == Usage(
        input=5, output=20, cache_read=4, cache_write=1
    )


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 3}, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_without_usage_bytes_are_counted_and_the_reservation_is_booked_as_uncertain(usage: Any) -> None:
    reply = read(completion({"content": "twelve bytes"}, usage=usage))
    assert reply.usage == Usage(input=100, output=12)
    booked = reply.booked(Microdollars(7))
    assert (booked.cost, booked.lane) == (7, Lane.UNCERTAIN)


@pytest.mark.parametrize("body", [b"", b"null", b"{", b"<html>", b"\xff", b"{}", b'{"choices": []}', b'{"choices": 3}'])
def test_a_success_that_cannot_be_read_leaves_the_outcome_unknown(body: bytes) -> None:
    with pytest.raises(OutcomeUnknown, match="gpt-test"):
        decode(body, PRICING, CEILING, ACCOUNT)


@pytest.mark.parametrize("body", [gzip.compress(b'{"id": 1}', mtime=0), b'{"id": "\xe9"}'], ids=["gzip", "latin-1"])
def test_a_success_that_is_not_text_is_not_asked_again(body: bytes) -> None:
    with pytest.raises(Undecodable, match="which is not UTF-8"):
        decode(body, PRICING, CEILING, ACCOUNT)


@pytest.mark.parametrize(
    ("trouble", "error"),
    [
        ({"message": "slow down", "code": 429}, RateLimited),
        ({"message": "slow down", "code": 400}, InvalidRequest),
        ({"message": "slow down", "code": 502}, OutcomeUnknown),
        ({"message": "slow down", "code": "insufficient_quota"}, AuthRefused),
        ({"message": "slow down"}, OutcomeUnknown),
        ("slow down", OutcomeUnknown),
    ],
)
def test_an_error_inside_a_success_is_an_error(trouble: Any, error: type[MusterError]) -> None:
    with pytest.raises(error, match="slow down"):
        read({"error": trouble})


def test_a_choice_that_broke_in_the_middle_leaves_the_outcome_unknown() -> None:
    with pytest.raises(OutcomeUnknown, match="fell over") as caught:
        read(completion({"content": "half"}, "error", error={"code": 429, "message": "fell over"}))
    assert caught.value.paid is Paid.UNKNOWN


WHOLES = [
    completion({"content": "Hello there, how are you?", "refusal": None}),
    completion({"content": None, "refusal": None, "tool_calls": CALLS}, "tool_calls"),
    completion({"content": "", "refusal": "I will not."}),
    completion({"content": "Grüße 🎉", "refusal": None}, "length"),
]


@pytest.mark.parametrize("whole", WHOLES)
def test_a_stream_gives_the_reply_that_a_plain_call_gives(whole: dict[str, Any]) -> None:
    ChatCompletion.model_validate(whole)
    chunks = streamed(whole)
    for chunk in chunks[:-1]:
        ChatCompletionChunk.model_validate(chunk)
    reply, deltas = fold(*chunks)
    assert reply == read(whole)
    assert "".join(deltas) == reply.text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60), st.integers(1, 7))
def test_any_text_survives_streaming(words: str, pieces: int) -> None:
    whole = completion({"content": words})
    reply, deltas = fold(*streamed(whole, pieces))
    assert reply == read(whole)
    assert "".join(deltas) == words


def test_a_server_that_streams_no_usage_is_counted_by_bytes() -> None:
    chunks = [chunk for chunk in streamed(WHOLES[0]) if isinstance(chunk, bytes) or chunk["choices"]]
    assert fold(*chunks)[0].usage == Usage(input=100, output=len("Hello there, how are you?"))


NO_OUTPUT = {"prompt_tokens": 10, "completion_tokens": 0}
NO_INPUT = {"prompt_tokens": 0, "completion_tokens": 20}


@pytest.mark.parametrize("usage", [NO_OUTPUT, NO_INPUT])
@pytest.mark.parametrize(
    "said", [{"content": "Hello."}, {"content": None, "tool_calls": CALLS}, {"content": "", "reasoning_content": "Hm."}]
)
@pytest.mark.parametrize("streams", [False, True])
def test_content_without_tokens_is_booked_at_the_reservation_as_uncertain(
    usage: dict[str, int], said: dict[str, Any], streams: bool
) -> None:
    whole = completion(said, usage=usage)
    reply = fold(*streamed(whole))[0] if streams else read(whole)
    booked = reply.booked(Microdollars(7))
    assert (booked.cost, booked.lane) == (7, Lane.UNCERTAIN)


def test_an_empty_answer_without_output_tokens_is_certain() -> None:
    reply = read(completion({"content": ""}, usage=NO_OUTPUT))
    assert (reply.cost, reply.lane) == (PRICE.cost(Usage(input=10)), Lane.BILLED)


def test_a_later_0_does_not_replace_what_was_counted_before() -> None:
    chunks = streamed(WHOLES[0])
    chunks.insert(-1, {**chunks[-2], "usage": {"prompt_tokens": 0, "completion_tokens": 0}})
    assert fold(*chunks)[0] == read(WHOLES[0])


def pieces_of(*pieces: dict[str, Any]) -> list[Any]:
    """Say a completion with tool calls the way a server streams it that has its own idea of their pieces."""
    head = {"id": "c", "model": "m"}
    chunks: list[Any] = [{**head, "choices": [{"index": 0, "delta": {"tool_calls": [one]}}]} for one in pieces]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}], "usage": USAGE})
    return [*chunks, b"[DONE]"]


def use(arguments: str, name: str | None = None, **more: Any) -> dict[str, Any]:
    return {**more, "function": {"arguments": arguments} | ({"name": name} if name else {})}


FIRST, SECOND = use('{"a"', "one", id="x"), use('{"b"', "two", id="y")
STREAMED_CALLS = {
    "no index": [FIRST, use(":1}"), SECOND, use(":2}")],
    "no index, ids again": [FIRST, SECOND, use(":1}", id="x"), use(":2}", id="y")],
    "no index, no ids": [use('{"a":1}', "one"), use('{"b"', "two"), use(":2}")],
    "always index 0": [{**FIRST, "index": 0}, use(":1}", index=0), {**SECOND, "index": 0}, use(":2}", index=0)],
    "another id in every piece": [{**FIRST, "index": 0}, use(":1}", id="z", index=0), use('{"b":2}', "two", index=1)],
    "not in order": [use('{"b":2}', "two", id="y", index=1), use('{"a":1}', "one", id="x", index=0)],
}


@pytest.mark.parametrize("pieces", STREAMED_CALLS.values(), ids=STREAMED_CALLS)
def test_streamed_tool_calls_are_kept_apart_whatever_numbers_them(pieces: list[dict[str, Any]]) -> None:
    calls = fold(*pieces_of(*pieces))[0].tool_calls
    assert [(call.name, call.arguments) for call in calls] == [("one", {"a": 1}), ("two", {"b": 2})]
    assert len({call.id for call in calls}) == 2


def test_a_stream_without_done_is_whole_when_it_gave_its_reason() -> None:
    assert fold(*streamed(WHOLES[0])[:-1])[0] == read(WHOLES[0])


def test_a_stream_without_a_reason_that_ended_is_kept_and_is_not_good() -> None:
    reply, _ = fold(*streamed(WHOLES[0])[:3], b"[DONE]")
    assert (reply.stop, reply.quality, bool(reply.text)) == (Stop.OTHER, Quality.UNFINISHED, True)
    with pytest.raises(OutcomeUnknown, match="ended before"):
        fold(*streamed(WHOLES[0])[:3])


@pytest.mark.parametrize("reason", ["error", None, "eos_token", ...], ids=str)
def test_an_answer_that_does_not_say_that_it_is_whole_is_kept_and_is_not_good(reason: Any) -> None:
    whole = completion({"content": "Hello."}, reason)
    if reason is ...:
        del whole["choices"][0]["finish_reason"]
    reply, good = read(whole), read(completion({"content": "Hello."}))
    assert (reply.text, reply.cost, reply.lane) == ("Hello.", good.cost, good.lane)
    assert (reply.quality, good.quality) == (Quality.UNFINISHED, Quality.GOOD)


def test_an_event_that_cannot_be_read_leaves_the_outcome_unknown() -> None:
    for data in (b"", b"{", b"[]", b'{"choices": 3}'):
        with pytest.raises(OutcomeUnknown):
            fold(data)


TROUBLE = {"error": {"code": 429, "message": "too fast for sk-secret"}}


def test_an_error_before_anything_came_costs_nothing() -> None:
    with pytest.raises(RateLimited, match=r"too fast for \[key\]") as caught:
        fold(TROUBLE)
    assert caught.value.paid is Paid.NO


def test_an_error_in_the_middle_leaves_the_outcome_unknown() -> None:
    with pytest.raises(OutcomeUnknown, match="too fast"):
        fold(*streamed(WHOLES[0])[:1], TROUBLE)
    broken = streamed(WHOLES[0])[:2]
    broken[1]["choices"][0]["error"] = TROUBLE["error"]
    with pytest.raises(OutcomeUnknown, match="too fast"):
        fold(*broken)


def test_other_choices_are_ignored() -> None:
    chunks = streamed(WHOLES[0])
    other = {**chunks[1], "choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": None}]}
    assert fold(chunks[0], other, *chunks[1:])[0] == read(WHOLES[0])
