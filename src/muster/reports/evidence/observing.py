"""What an agent did with a case, put together again from the calls of an archive."""

from collections.abc import Mapping, Sequence
from typing import Any

from muster.domain.call import Quality, Reply, Stop, ToolCall
from muster.domain.canonical import Json
from muster.domain.case import Case
from muster.domain.verdict import OUT_OF_TIME, CaseResult, Observation
from muster.reports.evidence.layout import CALLS
from muster.reports.evidence.lines import read_as

Call = Mapping[str, Any]  # a line of calls.jsonl


def observe(case: Case, calls: Sequence[Call], result: CaseResult) -> Observation:
    """Give what was observed; what no call can show, such as time that was over, is taken from the result."""
    answers: list[str] = []
    tool_calls: list[ToolCall] = []
    quality, error = Quality.GOOD, result.error
    for call in calls:
        if call.get("reply") is None:
            error = call.get("error") or {"code": "no_reply", "message": "there is no reply"}
            break
        reply = read_as(Reply, call["reply"], CALLS)
        quality = reply.quality
        tool_calls += reply.tool_calls
        if not (case.tools and reply.stop is Stop.TOOL_USE and reply.tool_calls):
            answers.append(reply.text)
    if len(calls) < len(result.keys):
        error = error or {"code": "no_call", "message": "a call of this result is not in the archive"}
    return Observation(
        answers=tuple(answers),
        tool_calls=tuple(tool_calls),
        quality=quality,
        error=error,
        timed_out=_is_late(error),
        keys=result.keys,
    )


def observe_recorded(text: str | None, result: CaseResult) -> Observation:
    """Give a recorded answer as if it had been said."""
    if text is None:
        return Observation(error=result.error or {"code": "not_recorded", "message": "there is no recorded answer"})
    return Observation(answers=(text,))


def _is_late(error: Mapping[str, Json] | None) -> bool:
    return error is not None and error.get("code") in OUT_OF_TIME
