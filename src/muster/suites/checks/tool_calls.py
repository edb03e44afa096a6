"""Checks of the tool calls that were really observed.

When every expectation is strict, exactly these calls must have been made, in this order. Else the strict ones and the
subsequences form a chain: a strict one stands right after the one before it in the chain (at its head: is the first
call), a subsequence anywhere after it; other calls may stand between. Unordered ones stand anywhere, outside of the
chain. No call meets two expectations.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from muster.domain.call import Quality, Reply, Stop, ToolCall, has_visible_character
from muster.domain.canonical import Json
from muster.suites.values.case import Case, ScriptedTool, ToolExpectation, ToolOrder
from muster.suites.values.rules import ScoringRules
from muster.suites.values.verdict import CheckResult

MAX_TRIES = 5_000

Segment = list[int]  # expectations
Fits = list[list[bool]]  # by expectation and call


class Undecided(Exception):
    """There are too many ways to try."""


def starts_of(segment: Segment, fits: Fits, *, first: bool) -> list[int]:
    """Return all calls at which a segment can begin; `first`: only the first of all."""
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
    for _ in range(MAX_TRIES):
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
    """Yield the starts worth a try: after one that conflicts with no other, no later one can be better."""
    for start in starts:
        if free <= start <= latest:
            yield start
            if not any(start + step in wanted for step in range(len(segment))):
                return


def _latest(segments: Sequence[Segment], starts: Sequence[list[int]]) -> list[int]:
    """Return the last place at which each segment can begin so that all after it still fit."""
    latest: list[int] = []
    end = max(start + len(segments[-1]) for start in starts[-1])
    for segment, possible in zip(reversed(segments), reversed(starts), strict=True):
        end = max(start for start in possible if start + len(segment) <= end)
        latest.append(end)
    return latest[::-1]


def _without(wishes: Sequence[Sequence[int]], segments: Sequence[Segment], way: list[int]) -> list[list[int]]:
    taken = {start + step for start, segment in zip(way, segments, strict=False) for step in range(len(segment))}
    return [[call for call in wish if call not in taken] for wish in wishes]


NAME = "tool_sequence"
_SHOWN = 200
_SHOWN_CALL = 60


def check_tools(expected: Sequence[ToolExpectation], calls: Sequence[ToolCall]) -> CheckResult | None:
    """Return whether the expected calls were made; None when nothing is expected."""
    if not expected:
        return None
    wanted = _shorten(", ".join(f"{one.tool} ({one.order.value})" for one in expected))
    try:
        why = _strict(expected, calls) if _all_strict(expected) else _mixed(expected, calls)
    except Undecided:
        why = f"matching calls with expectations took more than {MAX_TRIES} steps; expect fewer unordered calls"
        return CheckResult(name=NAME, passed=False, expected=wanted, why=why, broken=True)
    if not why:
        return CheckResult(name=NAME, passed=True, expected=wanted)
    return CheckResult(name=NAME, passed=False, expected=wanted, why=f"{why}; {_called(calls)}")


def meets(call: ToolCall, expectation: ToolExpectation) -> bool:
    """Return whether a call is the expected one: the same tool, and arguments that hold what is asked for."""
    return call.name == expectation.tool and covers(call.arguments, expectation.args_match)


def _all_strict(expected: Sequence[ToolExpectation]) -> bool:
    return all(one.order is ToolOrder.STRICT for one in expected)


def _strict(expected: Sequence[ToolExpectation], calls: Sequence[ToolCall]) -> str:
    for place, one in enumerate(expected):
        if place >= len(calls):
            return f"call {place + 1}, {_asked(one)}, is missing"
        if not meets(calls[place], one):
            return f"call {place + 1} is {_shown(calls[place])}, not {_asked(one)}"
    if len(calls) > len(expected):
        return f"call {len(expected) + 1}, {_shown(calls[len(expected)])}, was not expected"
    return ""


def _mixed(expected: Sequence[ToolExpectation], calls: Sequence[ToolCall]) -> str:
    fits = [[meets(call, one) for call in calls] for one in expected]
    segments, first = _segments(expected)
    starts = [starts_of(segment, fits, first=first and not place) for place, segment in enumerate(segments)]
    laid = earliest(segments, starts)
    if len(laid) < len(segments):
        return _chain_broke(expected, segments, laid, fits, first and not laid)
    anywhere = [place for place, one in enumerate(expected) if one.order is ToolOrder.UNORDERED]
    wishes = [[call for call, fit in enumerate(row) if fit] for row in fits]
    if (left_out := first_left_out(wishes)) is not None:  # in whatever order
        return f"{_asked(expected[left_out])} was not called as often as expected"
    if not (segments and anywhere):
        return ""
    left_out = left_out_by_every_way(segments, starts, [wishes[place] for place in anywhere])
    return "" if left_out is None else f"{_asked(expected[anywhere[left_out]])} was not called apart from others"


def _segments(expected: Sequence[ToolExpectation]) -> tuple[list[Segment], bool]:
    """Return the segments of the chain, and whether it begins with the first call."""
    found: list[Segment] = []
    first = False
    for place, one in enumerate(expected):
        if one.order is ToolOrder.UNORDERED:
            continue
        if found and one.order is ToolOrder.STRICT:
            found[-1].append(place)
        else:
            first = first or (not found and one.order is ToolOrder.STRICT)
            found.append([place])
    return found, first


def _chain_broke(
    expected: Sequence[ToolExpectation], segments: list[Segment], laid: list[int], fits: Fits, first: bool
) -> str:
    """Name the expectation at which the chain cannot go on: the first of its segment that finds no place."""
    segment = segments[len(laid)]
    free = laid[-1] + len(segments[len(laid) - 1]) if laid else 0
    length = 1
    while any(start >= free for start in starts_of(segment[:length], fits, first=first)):
        length += 1
    missed = _asked(expected[segment[length - 1]])
    if length > 1:
        return f"{missed} was not called right after {_asked(expected[segment[length - 2]])}"
    if laid:
        return f"{missed} was not called after {_asked(expected[segments[len(laid) - 1][-1]])}"
    return f"{missed} was not called first" if first else f"{missed} was not called"


def _asked(one: ToolExpectation) -> str:
    return _shorten(f"{one.tool}({_json(one.args_match)})" if one.args_match else one.tool, _SHOWN_CALL)


def _shown(call: ToolCall) -> str:
    name = call.name if call.name.isprintable() else repr(call.name)
    return _shorten(f"{name}({_json(call.arguments) if call.arguments else ''})", _SHOWN_CALL)


def _called(calls: Sequence[ToolCall]) -> str:
    if not calls:
        return "no tool was called"
    return _shorten("called: " + ", ".join(_shown(call) for call in islice(calls, 20)), _SHOWN)


def _json(value: object) -> str:
    try:
        return json.dumps(value, default=str)
    except RecursionError:
        return "…"


def _shorten(text: str, longest: int = _SHOWN) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def first_left_out(wishes: Sequence[Sequence[int]]) -> int | None:
    """Return the first whose wishes cannot be granted together with all before it; None when everybody gets one."""
    holders: dict[int, int] = {}
    things: dict[int, int] = {}
    for person in range(len(wishes)):
        if not _grant(person, wishes, holders, things):
            return person
    return None


def _grant(person: int, wishes: Sequence[Sequence[int]], holders: dict[int, int], things: dict[int, int]) -> bool:
    """Find one more a thing, moving others to another of their wishes where needed."""
    asked_by: dict[int, int] = {}
    waiting = [person]
    for someone in waiting:  # grows while it is gone through
        for thing in wishes[someone]:
            if thing in asked_by:
                continue
            asked_by[thing] = someone
            if thing not in holders:
                _hand_over(thing, person, asked_by, holders, things)
                return True
            waiting.append(holders[thing])
    return False


def _hand_over(
    thing: int, person: int, asked_by: dict[int, int], holders: dict[int, int], things: dict[int, int]
) -> None:
    while True:
        someone = asked_by[thing]
        before = things.get(someone)
        holders[thing], things[someone] = someone, thing
        if someone == person or before is None:
            return
        thing = before


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal; true is not 1, and 1 is 1.0."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if _is_list(left) and _is_list(right):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    return bool(left == right)


def covers(found: Json, asked: Json) -> bool:
    """Return whether a value contains the expected one: of objects at least the expected keys, else exactly it."""
    if isinstance(asked, Mapping):
        return isinstance(found, Mapping) and all(
            name in found and covers(found[name], value) for name, value in asked.items()
        )
    return same(found, asked)


def _is_list(value: Json) -> bool:
    return isinstance(value, list | tuple)


def wants_tools(case: Case, reply: Reply) -> bool:
    """Return whether the agent waits for tools of the case; one that uses tools by itself has their results already."""
    return bool(case.tools) and reply.stop is Stop.TOOL_USE and bool(reply.tool_calls)


def quality_in(case: Case, reply: Reply, rules: ScoringRules) -> Quality:
    """Return the quality of a reply to a case: what ends a turn is text, or a call of a tool that the case knows."""
    if wants_tools(case, reply):
        return reply.quality
    known = {*(tool.name for tool in case.tools), *(one.tool for one in case.tool_sequence)}
    quality = reply.quality_given(known)
    if quality is Quality.EMPTY and not rules.hidden_escapes and has_visible_character(reply.text):
        return Quality.GOOD
    return quality


def use(tools: tuple[ScriptedTool, ...], call: ToolCall) -> ToolCall:
    """Return a call with what its tool says; a tool that is not there, or has nothing to say to it, fails."""
    tool = next((tool for tool in tools if tool.name == call.name), None)
    if tool is None:
        return replace(call, result=f"error: there is no tool {call.name!r}", failed=True)
    for scripted in tool.results:
        if covers(call.arguments, scripted.args_match):
            return replace(call, result=scripted.result, failed=False)
    return replace(call, result=f"error: {call.name} has no result for these arguments", failed=True)
