"""Checks of the tool calls that were really observed.

When every expectation is strict, exactly these calls must have been made, in this order. Else the strict ones and the
subsequences form a chain: a strict one stands right after the one before it in the chain (at its head: is the first
call), a subsequence anywhere after it; other calls may stand between. Unordered ones stand anywhere, outside of the
chain. No call meets two expectations.
"""

import json
from collections.abc import Sequence
from itertools import islice

from muster.checks.assignment import first_left_out
from muster.checks.chains import MOST_TRIES, Fits, Segment, Undecided, earliest, left_out_by_every_way, starts_of
from muster.checks.matching import covers
from muster.domain.call import ToolCall
from muster.domain.case import ToolExpectation, ToolOrder
from muster.domain.verdict import CheckResult

NAME = "tool_sequence"
_SHOWN = 200
_SHOWN_CALL = 60


def check_tools(expected: Sequence[ToolExpectation], calls: Sequence[ToolCall]) -> CheckResult | None:
    """Say whether the expected calls were made; None when nothing is expected."""
    if not expected:
        return None
    wanted = _shorten(", ".join(f"{one.tool} ({one.order.value})" for one in expected))
    try:
        why = _strict(expected, calls) if _all_strict(expected) else _mixed(expected, calls)
    except Undecided:
        why = f"more than {MOST_TRIES} ways to match calls and expectations were tried; expect fewer unordered calls"
        return CheckResult(name=NAME, passed=False, expected=wanted, why=why, broken=True)
    if not why:
        return CheckResult(name=NAME, passed=True, expected=wanted)
    return CheckResult(name=NAME, passed=False, expected=wanted, why=f"{why}; {_called(calls)}")


def meets(call: ToolCall, expectation: ToolExpectation) -> bool:
    """Whether a call is the expected one: the same tool, and arguments that hold what is asked for."""
    return call.name == expectation.tool and covers(call.arguments, expectation.args_match)


def _all_strict(expected: Sequence[ToolExpectation]) -> bool:
    return all(one.order is ToolOrder.STRICT for one in expected)


def _strict(expected: Sequence[ToolExpectation], calls: Sequence[ToolCall]) -> str:
    for place, one in enumerate(expected):
        if place >= len(calls):
            return f"{_asked(one)} was not called as number {place + 1}"
        if not meets(calls[place], one):
            return f"call {place + 1} is {_shown(calls[place])} and not {_asked(one)}"
    if len(calls) > len(expected):
        return f"call {len(expected) + 1}, {_shown(calls[len(expected)])}, is one too many"
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
    return "" if left_out is None else f"{_asked(expected[anywhere[left_out]])} was not called apart from the others"


def _segments(expected: Sequence[ToolExpectation]) -> tuple[list[Segment], bool]:
    """Give the segments of the chain, and whether it begins with the first call."""
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
