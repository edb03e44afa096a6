"""Compressed answers: decoded as they arrive, bounded, and never half of one taken for the whole."""

import contextlib
import gzip
import json
import zlib
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.http.client import HttpClient
from muster.agents.http.encoding import ContentDecoder, decoder_of
from muster.agents.http.response import MAX_ERROR_BYTES, ResponseParser
from muster.agents.openai.batch import OpenAIBatches
from muster.agents.openai.batch_format import scope_of
from muster.agents.openai.live import OpenAIAgent
from muster.domain.agent import Timeouts
from muster.domain.call import ask
from muster.domain.errors import InvalidRequest, OutcomeUnknown, Paid, TryLater, Undecodable
from tests.agents.conftest import Host

SOON = Timeouts(connect=20.0, idle=20.0, call=20.0)
MOST = 10_000


@cache
def bomb() -> bytes:
    return gzip.compress(b"x" * 100_000_000)  # in 100 KB


def raw_deflate(data: bytes) -> bytes:
    stream = zlib.compressobj(wbits=-15)
    return stream.compress(data) + stream.flush()


def in_parts(data: bytes) -> bytes:
    return gzip.compress(data[: len(data) // 2]) + gzip.compress(data[len(data) // 2 :])


Compress = Callable[[bytes], bytes]
CODINGS: dict[str, tuple[bytes, Compress]] = {
    "gzip": (b"gzip", gzip.compress),
    "old name": (b"X-Gzip", gzip.compress),
    "several parts": (b"gzip", in_parts),
    "deflate": (b"deflate", zlib.compress),
    "raw deflate": (b"deflate", raw_deflate),
    "beside nothing": (b"identity, gzip", gzip.compress),
}
PIECES = st.lists(st.integers(1, 40), max_size=30)


def answer(body: bytes, coding: bytes = b"gzip", status: int = 200) -> bytes:
    head = b"HTTP/1.1 %d X\r\ncontent-encoding: %b\r\ncontent-length: %d\r\n\r\n"
    return head % (status, coding, len(body)) + body


def read(data: bytes, sizes: list[int] | None = None, *, most: int = MOST, endless: bool = False) -> ResponseParser:
    """Feed bytes in pieces of these sizes, then the rest, then the end."""
    response = ResponseParser("http://h", most)
    response.begin(endless=endless)
    for size in [*(sizes or ()), len(data)]:
        piece, data = data[:size], data[size:]
        if piece:
            response.feed(piece)
    response.end()
    return response


@pytest.mark.parametrize(("coding", "compress"), CODINGS.values(), ids=CODINGS)
@given(body=st.binary(max_size=300), sizes=PIECES)
def test_any_cut_of_the_bytes_gives_the_same_body(
    coding: bytes, compress: Compress, body: bytes, sizes: list[int]
) -> None:
    response = read(answer(compress(body), coding), sizes)
    assert (response.take(), response.whole, response.reusable) == (body, True, True)


@given(st.lists(st.binary(max_size=100), max_size=5), st.sampled_from([b"gzip", b"deflate"]))
def test_any_bytes_are_decoded_or_refused(pieces: list[bytes], coding: bytes) -> None:
    decoder = decoder_of(coding)
    assert isinstance(decoder, ContentDecoder)
    with contextlib.suppress(ValueError):
        for piece in pieces:
            assert len(decoder.decode(piece, 1000)) <= 1000


@pytest.mark.parametrize(("coding", "compress"), CODINGS.values(), ids=CODINGS)
def test_half_a_body_is_not_taken_for_the_whole(coding: bytes, compress: Compress) -> None:
    body = compress(b"hello" * 100)
    ends = {len(gzip.compress(b"hello" * 50))} if compress is in_parts else set()
    for size in set(range(1, len(body))) - ends:
        with pytest.raises(Undecodable, match="is not valid") as caught:
            read(answer(body[:size], coding))
        assert caught.value.paid is Paid.UNKNOWN
        with pytest.raises(OutcomeUnknown, match="closed it before a whole answer"):
            read(b"HTTP/1.1 200 X\r\ncontent-encoding: %b\r\n\r\n" % coding + body[:size])


def test_a_body_that_ends_with_the_connection_is_whole_when_its_coding_says_so() -> None:
    assert read(b"HTTP/1.1 200 X\r\ncontent-encoding: gzip\r\n\r\n" + gzip.compress(b"hello")).take() == b"hello"


@pytest.mark.parametrize(
    "body",
    [b"hello", gzip.compress(b"hello") + b"more", zlib.compress(b"hello") + b"more"],
    ids=["plain", "gzip and more", "deflate and more"],
)
def test_a_body_of_another_kind_is_refused_by_name(body: bytes) -> None:
    coding = b"deflate" if body.startswith(b"\x78") else b"gzip"
    with pytest.raises(Undecodable, match=f"answered 200 with a body that is not valid {coding.decode()}"):
        read(answer(body, coding))


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_without_a_body_has_none_to_decode(status: int) -> None:
    response = read(b"HTTP/1.1 %d X\r\ncontent-encoding: gzip\r\n\r\n" % status)
    assert (response.whole, response.take()) == (True, b"")


def test_an_empty_body_is_empty_in_every_coding() -> None:
    assert read(answer(b"")).take() == b""


def test_one_parser_reads_compressed_and_plain_answers_in_turn() -> None:
    response = ResponseParser("http://h", MOST)
    for data in (answer(gzip.compress(b"hello")), b"HTTP/1.1 200 X\r\ncontent-length: 5\r\n\r\nhello") * 2:
        response.begin()
        response.feed(data)
        assert (response.whole, response.take()) == (True, b"hello")


@pytest.mark.parametrize("size", [1000, 65_536])
def test_a_bomb_is_given_up_as_soon_as_it_is_too_long(size: int) -> None:
    with pytest.raises(Undecodable, match="longer than 10000 bytes when decoded from gzip"):
        read(answer(bomb()), [size] * (len(bomb()) // size))
    assert len(read(answer(gzip.compress(b"x" * MOST))).take()) == MOST


def test_a_bomb_of_a_failure_is_cut_to_what_is_read_of_it() -> None:
    response = read(answer(bomb(), status=400), most=10**9)
    assert (response.status, response.whole) == (400, True)
    assert MAX_ERROR_BYTES < len(response.take()) <= MAX_ERROR_BYTES + 1


def test_one_read_of_a_file_without_end_stays_within_bounds() -> None:
    response = ResponseParser("http://h", MOST)
    response.begin(endless=True)
    data = answer(bomb())
    response.feed(data[:65_536])
    assert MOST < response.unread <= 66 * 2**20


@pytest.mark.parametrize("coding", [b"gzip", b"br"])
def test_a_failure_is_known_by_its_status_whatever_its_body_is(coding: bytes) -> None:
    response = read(answer(b"this is nothing", coding, 429))
    assert (response.status, response.whole, response.reusable, response.take()) == (429, True, False, b"")
    half = read(answer(gzip.compress(b"hello")[:-4], status=429))
    assert (half.status, half.take()) == (429, b"hello")


def compressed(value: bytes, status: int = 200, kind: str = "application/json") -> bytes:
    return Host.answer(gzip.compress(value), status, content_encoding="gzip", content_type=kind)


async def test_bodies_are_asked_for_and_taken_compressed(host: Host, http: HttpClient) -> None:
    host.play(compressed(b"hello" * 1000))
    for _ in range(2):
        assert (await http.post(host.url, {}, b"", SOON)).body == b"hello" * 1000
    assert (host.seen[0].headers["accept-encoding"], host.connections) == ("gzip, deflate", 1)


async def test_events_are_read_as_they_are_written(host: Host, http: HttpClient) -> None:
    stream = zlib.compressobj(wbits=31)
    first = stream.compress(b"data: one\n\n") + stream.flush(zlib.Z_SYNC_FLUSH)
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
    host.play(head, host.chunk(first), host.hangs)
    async with http.stream(host.url, {}, b"", SOON) as flow:
        found = b""
        while not found.endswith(b"\n\n"):
            found += await anext(flow.chunks)
        assert found == b"data: one\n\n", "though the server has not ended"


async def test_a_stream_that_is_cut_leaves_the_outcome_unknown(host: Host, http: HttpClient) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n"
    host.play(head, host.chunk(gzip.compress(b"data: one\n\n")[:-6]), b"0\r\n\r\n")
    with pytest.raises(Undecodable, match="its end is missing"):
        async with http.stream(host.url, {}, b"", SOON) as flow:
            await flow.body()


async def test_files_of_any_length_are_read_compressed(host: Host) -> None:
    http = HttpClient(most_bytes=1000)
    lines = b"".join(b'{"n":%d}\n' % number for number in range(300_000))
    host.play(compressed(lines))
    async with http.fetch(host.url, {}, SOON) as flow:
        assert await flow.body() == lines
    await http.close()


REPLY = {
    "id": "r1",
    "model": "gpt-test",
    "choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1},
}


async def test_replies_and_refusals_of_a_model_are_readable(host: Host, openai: OpenAIAgent) -> None:
    host.play(compressed(json.dumps(REPLY).encode()))
    assert (await openai.call(ask("hi"), SOON)).text == "hello"
    host.play(compressed(b'{"error":{"message":"no such thing"}}', 400))
    for on_delta in (None, lambda _: None):
        with pytest.raises(InvalidRequest, match="no such thing"):
            await openai.call(ask("hi"), SOON, on_delta)


def batches(host: Host, http: HttpClient) -> OpenAIBatches:
    return OpenAIBatches(key="k", variable="K", base_url=f"{host.url}/v1", scope=scope_of("m"), http=http)


async def test_results_of_a_batch_are_read_compressed(host: Host, http: HttpClient) -> None:
    lines = b'{"custom_id":"a"}\n' * 10_000
    host.play(compressed(lines, kind="application/jsonl"))
    found = [chunk async for chunk in batches(host, http).results(f"{host.url}/v1/files/f/content", SOON)]
    assert b"".join(found) == lines


async def test_results_of_a_batch_that_are_cut_can_be_fetched_again_at_no_cost(host: Host, http: HttpClient) -> None:
    half = gzip.compress(b'{"custom_id":"a"}\n' * 10_000)[:-20]
    host.play(host.answer(half, content_encoding="gzip"))
    with pytest.raises(TryLater, match="its end is missing") as caught:
        async for _ in batches(host, http).results(f"{host.url}/v1/files/f/content", SOON):
            pass
    assert caught.value.paid is Paid.NO
