"""The agent under test at work on one case: turns of the user's, tools that it really calls, and what was observed."""

import json
from dataclasses import dataclass
from typing import Any

from muster.domain.call import Message, Quality, Reply, Request, Role, Tool, ToolCall, message_of
from muster.domain.errors import ReplayMiss, RetriesExhausted, StopRun, WireError
from muster.domain.money import NOTHING, Microdollars
from muster.engine.context import Context
from muster.suites.cases import Unit
from muster.suites.checks.tool_calls import quality_in, use, wants_tools
from muster.suites.spec import SuiteSpec
from muster.suites.values.case import MAX_TOOL_CALLS, MAX_TOOL_TURNS, Case
from muster.suites.values.rules import ScoringRules
from muster.suites.values.verdict import OUT_OF_TIME, Observation


@dataclass(slots=True, kw_only=True)
class Conversation:
    """A conversation as it grows."""

    messages: tuple[Message, ...]
    answers: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    keys: tuple[str, ...] = ()
    seconds: float = 0.0
    cost: Microdollars = NOTHING
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    model: str = ""
    quality: Quality = Quality.GOOD

    def hear(self, reply: Reply, quality: Quality) -> None:
        """Take in a reply."""
        self.seconds += reply.timings.wire
        self.cost = Microdollars(self.cost + reply.cost)
        self.input_tokens += reply.usage.all_input
        self.output_tokens += reply.usage.output
        self.thinking_tokens += reply.usage.thinking
        self.model = reply.model or self.model
        if self.quality is Quality.GOOD:  # a bad one is not made good by what is said after it
            self.quality = quality

    def observed(self, error: Any = None, *, timed_out: bool = False) -> Observation:
        """Return what was observed."""
        return Observation(
            answers=self.answers,
            tool_calls=self.tool_calls,
            quality=self.quality,
            error=error,
            timed_out=timed_out,
            seconds=round(self.seconds, 6),
            cost=self.cost,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            thinking_tokens=self.thinking_tokens,
            model=self.model,
            keys=self.keys,
        )


async def talk(ctx: Context, unit: Unit, spec: SuiteSpec, rules: ScoringRules) -> Observation:
    """Ask a case from its first turn to its last; a call that fails ends it and is part of what was observed."""
    going = Conversation(messages=unit.case.messages)
    follow_ups = iter(unit.case.follow_ups)
    try:
        while True:
            error = await _turn(ctx, unit, spec, going, rules)
            said = None if error is not None else next(follow_ups, None)
            if said is None:
                return going.observed(error, timed_out=error is not None and error["code"] in OUT_OF_TIME)
            answer = Message(role=Role.ASSISTANT, text=going.answers[-1])
            going.messages += (answer, Message(role=Role.USER, text=said))
    except StopRun:
        raise
    except ReplayMiss as error:  # of this case alone: the others may be known
        return going.observed(error.record())
    except WireError as error:
        # The last failure and not "gave up after 5 attempts": a replay knows no more than that either.
        cause = error.last if isinstance(error, RetriesExhausted) else error
        record = cause.record()
        return going.observed(record, timed_out=record["code"] in OUT_OF_TIME)


async def _turn(ctx: Context, unit: Unit, spec: SuiteSpec, going: Conversation, rules: ScoringRules) -> Any:
    """Get one answer, with all tools that the agent calls before it; returns an error when there is none."""
    for _ in range(MAX_TOOL_TURNS + 1):
        left = None if unit.case.timeout is None else unit.case.timeout - going.seconds
        if left is not None and left <= 0:
            return {
                "code": "out_of_time",
                "message": f"the {unit.case.timeout:g} s ended before the last turn",
            }
        key = f"{unit.key}/{len(going.keys) + 1}"
        going.keys += (key,)
        reply = await ctx.call(
            unit.subject.agent,
            request_of(unit, spec, going.messages),
            key=key,
            timeout=left,
            known=not spec.generate,
        )
        going.hear(reply, quality_in(unit.case, reply, rules))
        if not wants_tools(unit.case, reply):
            going.tool_calls += reply.tool_calls
            going.answers += (reply.text,)
            return None
        if len(reply.tool_calls) > MAX_TOOL_CALLS:
            message = f"it called {len(reply.tool_calls)} tools at once; at most {MAX_TOOL_CALLS} are answered"
            return {"code": "tool_calls", "message": message}
        _use_tools(unit.case, reply, going)
    return {"code": "tool_turns", "message": f"it still called tools after {MAX_TOOL_TURNS} rounds of them"}


def request_of(unit: Unit, spec: SuiteSpec, messages: tuple[Message, ...]) -> Request:
    """Make the request of one turn."""
    case = unit.case
    seed = spec.seed if case.seed is None else case.seed
    return Request(
        messages=messages,
        system=_system(unit),
        tools=_tools(case) if case.tools else (),
        max_tokens=spec.max_tokens if case.max_tokens is None else case.max_tokens,
        temperature=spec.temperature if case.temperature is None else case.temperature,
        # Another one in each epoch: with the same one all epochs would be the same.
        seed=None if seed is None else seed + unit.epoch - 1,
        environment=case.environment or None,
    )


def _tools(case: Case) -> tuple[Tool, ...]:
    return tuple(Tool(name=tool.name, description=tool.description, parameters=tool.parameters) for tool in case.tools)


def _system(unit: Unit) -> str:
    if unit.case.context is None:
        return unit.system
    context = json.dumps(unit.case.context, ensure_ascii=False, indent=2, sort_keys=True)
    return f"{unit.system}\n\nContext:\n{context}".lstrip()


def _use_tools(case: Case, reply: Reply, going: Conversation) -> None:
    going.messages += (message_of(reply),)
    for call in reply.tool_calls:
        used = use(case.tools, call)
        going.tool_calls += (used,)
        going.messages += (Message(role=Role.TOOL, text=used.result or "", tool_call_id=call.id),)
