"""What an agent did with a case, put together again from the calls of an archive."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.checks.scripted_tools import quality_in, use, wants_tools
from muster.domain.call import Quality, Reply, ToolCall
from muster.domain.canonical import Json
from muster.domain.case import Case
from muster.domain.money import Microdollars
from muster.domain.verdict import OUT_OF_TIME, CaseResult, Observation
from muster.reports.evidence.layout import CALLS
from muster.reports.evidence.lines import read_as

Call = Mapping[str, Any]  # a line of calls.jsonl


def observe(case: Case, calls: Sequence[Call], result: CaseResult) -> Observation:
    """Give what was observed; what no call can show, such as time that was over, is taken from the result."""
    replies, error = _replies(calls)
    error = error or result.error
    if len(calls) < len(result.keys):
        error = error or {"code": "no_call", "message": "a call of this result is not in the archive"}
    return Observation(
        answers=tuple(reply.text for reply in replies if not wants_tools(case, reply)),
        tool_calls=tuple(call for reply in replies for call in _used(case, reply)),
        quality=_quality(case, replies),
        error=error,
        timed_out=_is_late(error),
        seconds=round(sum(reply.timings.wire for reply in replies), 6),
        cost=Microdollars(sum(reply.cost for reply in replies)),
        input_tokens=sum(reply.usage.all_input for reply in replies),
        output_tokens=sum(reply.usage.output for reply in replies),
        model=next((reply.model for reply in reversed(replies) if reply.model), ""),
        keys=result.keys,
    )


def _quality(case: Case, replies: Sequence[Reply]) -> Quality:
    """Return the quality of the first reply that is not good: it is not made good by what is said after it."""
    bad = (quality for reply in replies if (quality := quality_in(case, reply)) is not Quality.GOOD)
    return next(bad, Quality.GOOD)


def _replies(calls: Sequence[Call]) -> tuple[list[Reply], Mapping[str, Json] | None]:
    """Give the replies up to the first call that has none, and why it has none."""
    replies: list[Reply] = []
    for call in calls:
        if call.get("reply") is None:
            return replies, call.get("error") or {"code": "no_reply", "message": "there is no reply"}
        replies.append(read_as(Reply, call["reply"], CALLS))
    return replies, None


def _used(case: Case, reply: Reply) -> tuple[ToolCall, ...]:
    """Give the tools that were called, those of the case with what they gave."""
    if not wants_tools(case, reply):
        return reply.tool_calls
    return tuple(use(case.tools, call) for call in reply.tool_calls)


def observe_recorded(text: str | None, result: CaseResult) -> Observation:
    """Give a recorded answer as if it had been said."""
    if text is None:
        return Observation(error=result.error or {"code": "not_recorded", "message": "there is no recorded answer"})
    return Observation(answers=(text,))


def _is_late(error: Mapping[str, Json] | None) -> bool:
    return error is not None and error.get("code") in OUT_OF_TIME
