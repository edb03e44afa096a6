"""Stages an answer: turns its bytes into a play, whole or disturbed by a fault."""

from collections.abc import Iterator, Sequence

from muster.sim.faults import Fault, Kind
from muster.sim.play import LAST_CHUNK, LINES, SOON, Ending, Headers, Part, Play, chunk, open_stream, say

PIECE = 64 * 1024
GARBAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
SILENT = {Kind.TIMEOUT: Ending.HANG, Kind.CUT_BEFORE: Ending.CUT, Kind.CUT_AFTER: Ending.CUT}
ENDINGS = {Kind.STALLED_STREAM: Ending.HANG, Kind.CUT_STREAM: Ending.CUT}


def stage_silence(fault: Fault, latency: float) -> Play:
    """Stage a fault that sends no byte at all."""
    return Play(parts=((latency, b""),), ending=SILENT[fault.kind])


def stage_whole(body: bytes, headers: Headers, latency: float, fault: Fault | None, status: int = 200) -> Play:
    """Stage an answer that is sent in one piece."""
    if fault is None:
        return _once(say(status, body, headers), latency)
    if fault.kind is Kind.TRUNCATED:
        return _once(say(status, body[: len(body) // 2], headers), latency)
    if fault.kind is Kind.GARBAGE:
        return _once(say(200, GARBAGE, headers, "text/html"), latency)
    return _disturbed(_quarters(say(status, body, headers), len(body)), latency, fault)


def stage_stream(events: list[bytes], headers: Headers, latency: float, fault: Fault | None) -> Play:
    """Stage an answer that is sent as a stream of events."""
    head = open_stream(headers)
    if fault is None:
        return _once(b"".join((head, *map(chunk, events), LAST_CHUNK)), latency)
    if fault.kind is Kind.TRUNCATED:
        joined = b"".join(events)
        return _once(head + chunk(joined[: len(joined) // 2]) + LAST_CHUNK, latency)
    if fault.kind is Kind.GARBAGE:
        return _once(say(200, GARBAGE, headers, "text/html"), latency)
    return _disturbed([head + chunk(events[0]), *map(chunk, events[1:]), LAST_CHUNK], latency, fault)


def stage_lines(lines: Sequence[bytes], headers: Headers, latency: float, fault: Fault | None) -> Iterator[Part]:
    """Stage the lines of a file, in pieces that are made as they are sent."""
    if fault is not None and fault.kind is Kind.GARBAGE:
        yield latency, say(200, GARBAGE, headers, "text/html")
        return
    slow = fault is not None and fault.kind is Kind.SLOW_STREAM
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


def _once(data: bytes, latency: float) -> Play:
    return Play(parts=((latency, data),))


def _disturbed(pieces: list[bytes], latency: float, fault: Fault) -> Play:
    if fault.kind is Kind.SLOW_STREAM:
        gap = fault.gap_ms / 1000
        return Play(parts=((latency, pieces[0]), *((gap, piece) for piece in pieces[1:])))
    kept = b"".join(pieces[: len(pieces) // 2])
    return Play(parts=((latency, kept),), ending=ENDINGS[fault.kind])


def _quarters(answer: bytes, body_size: int) -> list[bytes]:
    size = body_size // 4
    first = len(answer) - 3 * size
    starts = [first, first + size, first + 2 * size]
    return [answer[:first], *(answer[start : start + size] for start in starts)]
