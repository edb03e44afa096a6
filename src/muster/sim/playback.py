"""Turns the bytes of an answer into a playback: timed parts, whole or disturbed by a fault."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

from muster.sim.faults import Fault, FaultKind
from muster.sim.protocols.ask import SimRefusal, WireProtocol
from muster.text.http_messages import Headers, response_head, whole_response

EVENTS = "text/event-stream; charset=utf-8"
LINES = "application/x-jsonl"
LAST_CHUNK = b"0\r\n\r\n"
SOON = 1e-9  # seconds: just long enough for others to be served first

Part = tuple[float, bytes]


class ConnectionEnd(Enum):
    """What happens to the connection after the last byte."""

    KEEP = "keep"  # it serves the next request
    CUT = "cut"  # it is closed in the middle
    HANG = "hang"  # nothing more comes, until the client goes away


def _nothing() -> None:
    pass


class Playback(NamedTuple):  # made for every request, and a tuple is made fastest
    """Bytes to write, each after so many seconds, and how it ends; the parts may be made as they are written."""

    parts: Iterable[Part]
    ending: ConnectionEnd = ConnectionEnd.KEEP
    ended: Callable[[], None] = _nothing  # called once: played to its end, or the client went away


def open_stream(headers: Headers = (), kind: str = EVENTS) -> bytes:
    """Spell the head of an answer that comes in chunks."""
    return response_head(200, kind, headers) + b"\r\ntransfer-encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Spell one chunk of a stream."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def at_once(data: bytes) -> Playback:
    """Play an answer without waiting."""
    return Playback(parts=((0.0, data),))


PIECE = 64 * 1024
GARBAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
SILENT = {
    FaultKind.TIMEOUT: ConnectionEnd.HANG,
    FaultKind.CUT_BEFORE: ConnectionEnd.CUT,
    FaultKind.CUT_AFTER: ConnectionEnd.CUT,
}
ENDINGS = {FaultKind.STALLED_STREAM: ConnectionEnd.HANG, FaultKind.CUT_STREAM: ConnectionEnd.CUT}


def play_silence(fault: Fault, latency: float) -> Playback:
    """Return the playback of a fault that sends no byte at all."""
    return Playback(parts=((latency, b""),), ending=SILENT[fault.kind])


def play_whole(body: bytes, headers: Headers, latency: float, fault: Fault | None, status: int = 200) -> Playback:
    """Return the playback of an answer that is sent in one piece."""
    if fault is None:
        return _once(whole_response(status, body, headers), latency)
    if fault.kind is FaultKind.TRUNCATED:
        return _once(whole_response(status, body[: len(body) // 2], headers), latency)
    if fault.kind is FaultKind.GARBAGE:
        return _once(whole_response(200, GARBAGE, headers, "text/html"), latency)
    return _disturbed(_quarters(whole_response(status, body, headers), len(body)), latency, fault)


def play_stream(events: list[bytes], headers: Headers, latency: float, fault: Fault | None) -> Playback:
    """Return the playback of an answer that is sent as a stream of events."""
    head = open_stream(headers)
    if fault is None:
        return _once(b"".join((head, *map(chunk, events), LAST_CHUNK)), latency)
    if fault.kind is FaultKind.TRUNCATED:
        joined = b"".join(events)
        return _once(head + chunk(joined[: len(joined) // 2]) + LAST_CHUNK, latency)
    if fault.kind is FaultKind.GARBAGE:
        return _once(whole_response(200, GARBAGE, headers, "text/html"), latency)
    return _disturbed([head + chunk(events[0]), *map(chunk, events[1:]), LAST_CHUNK], latency, fault)


def play_lines(lines: Sequence[bytes], headers: Headers, latency: float, fault: Fault | None) -> Iterator[Part]:
    """Yield the lines of a file, in pieces that are made as they are sent."""
    if fault is not None and fault.kind is FaultKind.GARBAGE:
        yield latency, whole_response(200, GARBAGE, headers, "text/html")
        return
    slow = fault is not None and fault.kind is FaultKind.SLOW_STREAM
    kept = lines if fault is None or slow else _half(lines)
    gap = fault.gap_ms / 1000 if fault is not None and slow else SOON
    yield latency, open_stream(headers, LINES)
    for piece in _pieces(kept, max(1, sum(map(len, kept)) // 4) if slow else PIECE):
        yield gap, chunk(piece)
    if fault is None or fault.kind not in ENDINGS:
        yield 0.0, LAST_CHUNK


def _half(lines: Sequence[bytes]) -> list[bytes]:
    # Ends in the middle of a line, if there is one.
    middle = len(lines) // 2
    return [*lines[:middle], *(line[: len(line) // 2] for line in lines[middle : middle + 1])]


def _pieces(lines: Sequence[bytes], size: int) -> Iterator[bytes]:
    gathered, length = list[bytes](), 0
    for line in lines:
        gathered.append(line)
        length += len(line)
        if length >= size:
            yield from _cut(b"".join(gathered))
            gathered, length = [], 0
    yield from _cut(b"".join(gathered))


def _cut(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), PIECE):
        yield data[start : start + PIECE]


def _once(data: bytes, latency: float) -> Playback:
    return Playback(parts=((latency, data),))


def _disturbed(pieces: list[bytes], latency: float, fault: Fault) -> Playback:
    if fault.kind is FaultKind.SLOW_STREAM:
        gap = fault.gap_ms / 1000
        return Playback(parts=((latency, pieces[0]), *((gap, piece) for piece in pieces[1:])))
    kept = b"".join(pieces[: len(pieces) // 2])
    return Playback(parts=((latency, kept),), ending=ENDINGS[fault.kind])


def _quarters(answer: bytes, body_size: int) -> list[bytes]:
    size = body_size // 4
    first = len(answer) - 3 * size
    starts = [first, first + size, first + 2 * size]
    return [answer[:first], *(answer[start : start + size] for start in starts)]


REASONS = {
    400: "this request was refused by the fault plan",
    401: "invalid key, by the fault plan",
    403: "this key may not do that, by the fault plan",
    404: "not found, by the fault plan",
    413: "the request is too large, by the fault plan",
    429: "too many requests, by the fault plan",
    500: "internal server error, by the fault plan",
    529: "overloaded, by the fault plan",
}


def raise_refusal(fault: Fault) -> None:
    """Raise the refusal of a fault that is an error answer; do nothing for any other."""
    status = fault.kind.status
    if status is not None:
        unavailable = fault.kind is FaultKind.RESOURCE_UNAVAILABLE
        reason = (
            "Resource unavailable: the tier flex has no place, by the fault plan" if unavailable else REASONS[status]
        )
        code = fault.kind.value if unavailable else None
        raise SimRefusal(status, reason, code=code, retry_after=fault.retry_after)


def request_id(number: int) -> str:
    """Name a request by its number at this server."""
    return f"req_sim_{number:08d}"


def headers_of(dialect: WireProtocol, number: int, refused: SimRefusal | None = None) -> list[tuple[str, str]]:
    """Return the headers of an answer: its name, and when to come again."""
    headers = [(dialect.request_id_header, request_id(number))]
    if refused is not None and refused.retry_after is not None:
        headers.append(("retry-after", f"{refused.retry_after:.3f}".rstrip("0").rstrip(".")))
    return headers
