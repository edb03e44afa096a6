"""Permissions of an agent in a slot: it asks, a person decides, and its session is continued with the decision.

A question ends the call of the agent, and its failure in the journal is the question. The run then waits for a signal
without a process. Every question has a channel of its own, so that a decision is never taken for another one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from muster.domain.call import Message, Reply, Request, Role
from muster.domain.canonical import Json
from muster.domain.errors import CallFailed, Paid, PermissionAsked
from muster.engine.context import Context
from muster.pool.order import OnPermission
from muster.pool.prompts import message_text
from muster.pool.tasks import INBOX, AssignedSlot

GRANTED = "granted_tools"  # the setting of agents that takes tools which a person has granted


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionQuestion:
    """What an agent asks permission for."""

    key: str  # of the call that ended with it
    tool: str  # empty when the agent does not name it
    input: Mapping[str, Json] | None  # what the tool is to be used with, where that is known
    session: str  # in which the agent goes on; empty when it cannot

    @property
    def channel(self) -> str:
        """The channel on which the decision is sent."""
        return f"permission/{self.key}"

    @property
    def wanted(self) -> str:
        """The tool, as a sentence names it."""
        return self.tool or "a tool that it does not name"


def question_of(key: str, failure: Mapping[str, Any] | None) -> PermissionQuestion | None:
    """Return the question that the failure of a call is; None for any other failure."""
    if failure is None or failure.get("code") != PermissionAsked.code:
        return None
    return PermissionQuestion(
        key=key,
        tool=str(failure.get("tool") or ""),
        input=failure.get("input"),
        session=str(failure.get("session") or ""),
    )


def continued_key(key: str, number: int) -> str:
    """Return the key of the call that follows after so many questions of a round; without any, that of the round."""
    return key if number == 0 else f"{key}/permission/{number:03d}"


async def call_with_permissions(
    ctx: Context, slot: AssignedSlot, request: Request, key: str, granted: Sequence[str]
) -> tuple[Reply, Sequence[str]]:
    """Call the agent of a slot until it answers, each question decided by a person; return the granted tools too."""
    for number in count():
        answer = await _ask(ctx, slot, _granting(request, granted), continued_key(key, number))
        if isinstance(answer, Reply):
            return answer, granted
        decision = await _decision(ctx, slot, answer)
        if decision["allowed"] and (tool := decision.get("tool") or answer.tool):
            granted = tuple(dict.fromkeys([*granted, tool]))
        request = _continuing(request, answer, decision)
    raise AssertionError  # it counts without end


async def _ask(ctx: Context, slot: AssignedSlot, request: Request, key: str) -> Reply | PermissionQuestion:
    """Return the reply, or the question with which the call ended; a question that is recorded is not asked again."""
    asks = slot.on_permission == OnPermission.ASK
    final = (PermissionAsked.code,) if asks else ()
    try:
        return await ctx.call(
            slot.agent,
            request,
            key=key,
            schema=request.schema,
            stream=True,
            final_failures=final,
            inbox=ctx.inbox(key, INBOX, slot=slot.id, written=message_text),
        )
    except CallFailed as error:
        record = error.record()
        question = question_of(key, record)
        if question is None:
            raise
        if not asks or not question.session:
            raise _unanswerable(slot, question, record, asks=asks) from error
        return question


async def _decision(ctx: Context, slot: AssignedSlot, question: PermissionQuestion) -> Mapping[str, Any]:
    told = {"slot": slot.name, "tool": question.tool or None, "input": question.input}
    await ctx.emit(f"{question.key}/asked", "task.permission", told)
    signal = await ctx.receive(f"{question.key}/decided", question.channel)
    decided: Any = {"allowed": False} if signal is None else signal.payload
    return dict(decided)


def _unanswerable(
    slot: AssignedSlot, question: PermissionQuestion, record: Mapping[str, Any], *, asks: bool
) -> PermissionAsked:
    """Return why a task ends with a question: it is not to be asked, or its agent could not be continued."""
    what = f"slot {slot.name}: agent {slot.agent!r} asked for permission to use {question.wanted}"
    if asks:
        what += ", and cannot be continued with the answer: it has no session that can be resumed"
    ways = [*record.get("suggestions", ())] if asks else [_ASK, *record.get("suggestions", ())]
    error = PermissionAsked(
        what,
        log=str(record.get("log", "")),
        tool=question.tool or None,
        arguments=question.input,
        paid=Paid(record.get("paid", Paid.NO)),
        suggestions=tuple(ways),
    )
    error.command, error.exit_status = record.get("command"), record.get("exit_code")
    return error


_ASK = 'to be asked: on_permission = "ask" in [pool], or --on-permission ask'


def _granting(request: Request, granted: Sequence[str]) -> Request:
    return replace(request, settings={**(request.settings or {}), GRANTED: list(granted)}) if granted else request


def _continuing(request: Request, question: PermissionQuestion, decision: Mapping[str, Json]) -> Request:
    """Return the request that continues the session of the agent and says what was decided."""
    return replace(
        request,
        messages=(Message(role=Role.USER, text=decision_text(question, decision)),),
        volatile={**request.volatile, "session": question.session},
    )


def decision_text(question: PermissionQuestion, decision: Mapping[str, Json]) -> str:
    """Return what an agent is told of a decision."""
    if decision["allowed"]:
        return f"Permission to use {decision.get('tool') or question.wanted} was granted. Continue with the task."
    reason = str(decision.get("reason") or "")
    why = f": {reason}" if reason else "."
    return f"Permission to use {question.wanted} was denied{why}\nContinue with the task without it."
