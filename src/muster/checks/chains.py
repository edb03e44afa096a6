"""How a chain of expected calls can be laid over the calls that were made, and leave enough to those outside of it.

A segment is a run of expectations whose calls stand right after each other. Laying every segment as early as it goes
leaves the most room, so that finds a way when there is one. Only calls that somebody outside of the chain could use
as well must be tried one by one.
"""

from collections.abc import Iterator, Sequence

from muster.checks.assignment import first_left_out

MOST_TRIES = 5_000

Segment = list[int]  # expectations
Fits = list[list[bool]]  # by expectation and call


class Undecided(Exception):
    """There are too many ways to try."""


def starts_of(segment: Segment, fits: Fits, *, first: bool) -> list[int]:
    """Give all calls at which a segment can begin; `first`: only the first of all."""
    last = len(fits[0]) - len(segment)
    every = range(min(last, 0) + 1) if first else range(last + 1)
    return [start for start in every if all(fits[one][start + step] for step, one in enumerate(segment))]


def earliest(segments: Sequence[Segment], starts: Sequence[list[int]]) -> list[int]:
    """Lay segments as early as they go, up to the first that finds no place."""
    free, laid = 0, []
    for segment, possible in zip(segments, starts, strict=True):
        start = next((start for start in possible if start >= free), None)
        if start is None:
            break
        laid.append(start)
        free = start + len(segment)
    return laid


def left_out_by_every_way(
    segments: Sequence[Segment], starts: Sequence[list[int]], wishes: Sequence[Sequence[int]]
) -> int | None:
    """Look for a way to lay the whole chain that grants everybody a call; give whom the last one tried leaves out."""
    wanted = {call for wish in wishes for call in wish}
    latest = _latest(segments, starts)
    left_out: int | None = None
    way: list[int] = []
    options = [_options(segments[0], starts[0], 0, latest[0], wanted)]
    for _ in range(MOST_TRIES):
        start = next(options[-1], None)
        if start is None:
            options.pop()
            if not options:
                return left_out
            way.pop()
            continue
        left_out = first_left_out(_without(wishes, segments, [*way, start]))
        if left_out is not None:
            continue
        if len(options) == len(segments):
            return None
        free, place = start + len(segments[len(way)]), len(way) + 1
        way.append(start)
        options.append(_options(segments[place], starts[place], free, latest[place], wanted))
    raise Undecided


def _options(segment: Segment, starts: list[int], free: int, latest: int, wanted: set[int]) -> Iterator[int]:
    """Give the starts worth a try: after one that takes nothing from anybody no later one can be better."""
    for start in starts:
        if free <= start <= latest:
            yield start
            if not any(start + step in wanted for step in range(len(segment))):
                return


def _latest(segments: Sequence[Segment], starts: Sequence[list[int]]) -> list[int]:
    """Give the last place at which each segment can begin so that all after it still fit."""
    latest: list[int] = []
    end = max(start + len(segments[-1]) for start in starts[-1])
    for segment, possible in zip(reversed(segments), reversed(starts), strict=True):
        end = max(start for start in possible if start + len(segment) <= end)
        latest.append(end)
    return latest[::-1]


def _without(wishes: Sequence[Sequence[int]], segments: Sequence[Segment], way: list[int]) -> list[list[int]]:
    taken = {start + step for start, segment in zip(way, segments, strict=False) for step in range(len(segment))}
    return [[call for call in wish if call not in taken] for wish in wishes]
