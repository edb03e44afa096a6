import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.http.response import MAX_HEAD_BYTES, ResponseParser
from muster.domain.errors import OutcomeUnknown, Paid, Undecodable

MOST = 1000
TYPE = b"content-type: text/plain\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\nx: y\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: z\r\n\r\n"

WHOLE = {
    "length": b"HTTP/1.1 200 OK\r\n" + TYPE + b"content-length: 5\r\n\r\nhello",
    "chunked": b"HTTP/1.1 200 OK\r\n"
    + TYPE
    + b"Transfer-Encoding: Chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\n"
    + TYPE
    + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nstatus: 9\r\n\r\n",
    "interim": CONTINUE + b"HTTP/1.1 200 OK\r\n" + TYPE + b"content-length: 5\r\n\r\nhello",
    "identity": b"HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\n" + TYPE + b"content-length: 5\r\n\r\nhello",
}
CLOSING = {
    "until close": b"HTTP/1.1 200 OK\r\n" + TYPE + b"\r\nhello",
    "until close, identity": b"HTTP/1.1 200 OK\r\ncontent-encoding: identity\r\n" + TYPE + b"\r\nhello",
    "old": b"HTTP/1.0 200 OK\r\n" + TYPE + b"content-length: 5\r\n\r\nhello",
    "says close": b"HTTP/1.1 200 OK\r\nconnection: close\r\n" + TYPE + b"content-length: 5\r\n\r\nhello",
}
PIECES = st.lists(st.integers(1, 40), max_size=30)


def read(data: bytes, sizes: list[int] | None = None, *, most: int = MOST) -> ResponseParser:
    """Feed bytes in pieces of these sizes, then the rest, then the end."""
    response = ResponseParser("http://h", most)
    for size in [*(sizes or ()), len(data)]:
        piece, data = data[:size], data[size:]
        if piece:
            response.feed(memoryview(piece))
    response.end()
    return response


@pytest.mark.parametrize("data", [*WHOLE.values(), *CLOSING.values()], ids=[*WHOLE, *CLOSING])
@given(sizes=PIECES)
def test_any_cut_of_the_bytes_gives_the_same_answer(data: bytes, sizes: list[int]) -> None:
    response = read(data, sizes)
    assert (response.status, response.take(), response.headers["Content-Type"]) == (200, b"hello", "text/plain")
    assert not {"x", "link", "status"} & set(response.headers), "of interim answers and trailers nothing is kept"
    assert response.reusable is (data in WHOLE.values())


@pytest.mark.parametrize("data", WHOLE.values(), ids=WHOLE)
@given(sizes=PIECES, extra=st.sampled_from([b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil", b"evil", b"\0"]))
def test_what_follows_an_answer_spoils_the_connection_and_not_the_answer(
    data: bytes, sizes: list[int], extra: bytes
) -> None:
    response = read(data + extra, sizes)
    assert (response.status, response.take(), response.reusable) == (200, b"hello", False)


@pytest.mark.parametrize("data", WHOLE.values(), ids=WHOLE)
def test_half_an_answer_leaves_the_outcome_unknown(data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(OutcomeUnknown) as caught:
            read(data[:size])
        assert caught.value.paid is Paid.UNKNOWN


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("more", [b"", b"content-length: 5\r\n", b"transfer-encoding: chunked\r\n"])
def test_some_answers_have_no_body(status: int, more: bytes) -> None:
    response = read(b"HTTP/1.1 %d X\r\n%b\r\n" % (status, more))
    assert (response.whole, response.reusable, response.take()) == (True, True, b"")


def test_one_response_reads_many_answers() -> None:
    response = ResponseParser("http://h", MOST)
    for data in WHOLE.values():
        response.begin()
        response.feed(data)
        assert (response.whole, response.reusable, response.take()) == (True, True, b"hello")


def test_headers_are_found_in_any_case_and_joined() -> None:
    headers = read(b"HTTP/1.1 200 OK\r\nA: 1\r\nb: \xc3\xbc\xff\r\na: 2\r\ncontent-length: 0\r\n\r\n").headers
    assert (headers["a"], headers["A"], headers.get("B"), headers.get("c", "none")) == ("1, 2", "1, 2", "ü�", "none")
    assert list(headers) == ["a", "b", "content-length"]
    assert (len(headers), "A" in headers, "ü" in headers) == (3, True, False)
    assert "1, 2" in repr(headers)


GARBAGE = {
    "words": b"this is not HTTP at all\r\n\r\n",
    "tls": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "http/2": b"\x00\x00\x12\x04\x00\x00\x00\x00\x00",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
    "length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "bad length": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    "other protocol": b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
    "other protocol, unsaid": b"HTTP/1.1 101 X\r\n\r\n",
    "bad header": b"HTTP/1.1 200 OK\r\na b\r\n\r\n",
    "nothing": b"",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
@given(sizes=PIECES)
def test_garbage_leaves_the_outcome_unknown(data: bytes, sizes: list[int]) -> None:
    with pytest.raises(OutcomeUnknown, match="http://h: "):
        read(data, sizes)


@pytest.mark.parametrize(
    ("header", "shown"),
    [
        (b"content-encoding: zstd\r\ncontent-length: 1", "zstd"),
        (b"content-encoding: gzip, gzip\r\ncontent-length: 1", "gzip, gzip"),
        (b"content-encoding: br", "br"),
        (b"transfer-encoding: gzip, chunked", "gzip, chunked"),
        (b"transfer-encoding: gzip", "gzip"),
    ],
)
def test_an_encoding_that_nobody_asked_for_is_refused_by_name(header: bytes, shown: str) -> None:
    with pytest.raises(Undecodable, match=f"answered 200 encoded as '{shown}'"):
        read(b"HTTP/1.1 200 X\r\n%b\r\n\r\n" % header)


HEADS = {
    "many": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * MAX_HEAD_BYTES,
    "long": b"HTTP/1.1 200 OK\r\na: " + b"b" * 2 * MAX_HEAD_BYTES,
    "long name": b"HTTP/1.1 200 OK\r\n" + b"b" * 2 * MAX_HEAD_BYTES,
    "long reason": b"HTTP/1.1 200 " + b"b" * 2 * MAX_HEAD_BYTES,
    "interim": b"HTTP/1.1 102 X\r\n\r\n" * MAX_HEAD_BYTES,
    "trailers": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * MAX_HEAD_BYTES,
    "chunk extension": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;" + b"a" * 2 * MAX_HEAD_BYTES,
}


@pytest.mark.parametrize("data", HEADS.values(), ids=HEADS)
@pytest.mark.parametrize("size", [1000, 65_536])
def test_a_head_without_end_is_given_up(data: bytes, size: int) -> None:
    with pytest.raises(OutcomeUnknown, match=f"head of the answer is longer than {MAX_HEAD_BYTES} bytes"):
        read(data, [size] * (len(data) // size))


@pytest.mark.parametrize("size", [1, 7, 10**9])
def test_a_body_without_end_is_given_up(size: int) -> None:
    body = b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n" + b"x" * 1001
    with pytest.raises(OutcomeUnknown, match="longer than 1000 bytes"):
        read(body, [size] * (len(body) // size))
    assert len(read(body, most=1001).take()) == 1001
