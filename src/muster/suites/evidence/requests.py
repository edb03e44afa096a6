"""Whether recorded requests are those that the cases ask: a reply counts as the answer to its own question. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.domain.call import Message, Reply, Role, message_json
from muster.domain.canonical import Json
from muster.suites.case import Case
from muster.suites.checks.tool_calls import use, wants_tools
from muster.suites.evidence.archive import read_as
from muster.suites.evidence.layout import CALLS
from muster.suites.judge.question import JudgeQuestion

Call = Mapping[str, Any]  # a line of calls.jsonl


def asked_flaw(case: Case, calls: Sequence[Call]) -> str:
    """Return which call of the agent was not asked what the case asks, after what was answered before it."""
    messages: tuple[Message, ...] = case.messages
    follow_ups = iter(case.follow_ups)
    for call in calls:
        if _messages(call) != [message_json(message) for message in messages]:
            return f"the request of {call.get('key')} does not ask what the case asks"
        if call.get("reply") is None:
            return ""
        reply = read_as(Reply, call["reply"], CALLS)
        messages += tuple(_heard(case, reply, follow_ups))
    return ""


def judged_flaw(question: JudgeQuestion, judge: str, calls: Sequence[Call]) -> str:
    """Return which call of a judge is not about the recorded answer; those of commands are their own affair."""
    for call in calls:
        if call.get("agent") == judge and not is_about(question, text_of(call)):
            return f"the request of {call.get('key')} is not about the recorded answer"
    return ""


def is_about(question: JudgeQuestion, text: str) -> bool:
    """Return whether a request holds the material of a question; without secrets, its fence is another one."""
    if question.material in text:
        return True
    return _MARK in question.material and all(answer in text for answer in question.answers)


def text_of(call: Call) -> str:
    """Return the texts of a request."""
    found = _messages(call)
    return "\n".join(str(one.get("text", "")) for one in found if isinstance(one, Mapping))


_MARK = "[redacted:"


def _messages(call: Call) -> list[Json]:
    request = call.get("request")
    found = request.get("messages") if isinstance(request, Mapping) else None
    return found if isinstance(found, list) else []


def _heard(case: Case, reply: Reply, follow_ups: Iterator[str]) -> Iterator[Message]:
    """Yield what a conversation goes on with after a reply."""
    if wants_tools(case, reply):
        yield Message(role=Role.ASSISTANT, text=reply.text, tool_calls=reply.tool_calls)
        for tool in reply.tool_calls:
            yield Message(role=Role.TOOL, text=use(case.tools, tool).result or "", tool_call_id=tool.id)
        return
    yield Message(role=Role.ASSISTANT, text=reply.text)
    yield from (Message(role=Role.USER, text=said) for said in [next(follow_ups, None)] if said is not None)
