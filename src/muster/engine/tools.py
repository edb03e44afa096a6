"""The loop in which an agent uses Python functions as tools: each use is a step of the run, and there is a bound."""

import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, get_type_hints

from muster.domain.call import Message, Reply, Request, Role, Stop, Tool, ToolCall, message_of
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, ToolError, ToolTurnsExceeded
from muster.engine.base.arguments import require_count, require_iterable
from muster.engine.base.mapping import gather
from muster.engine.steps import ONCE, StepFunction, StepRetries, call_function
from muster.engine.values import ValueType, json_of, schema_of
from muster.text import typed

MAX_TOOL_CALLS = 128  # of one reply

Call = Callable[[Request, str], Awaitable[Reply]]  # with the key of the call


class StepDoer(Protocol):
    """Does what a tool does once."""

    async def __call__(
        self, key: str, function: Callable[[], Awaitable[Json]], *, retries: int = 0, backoff: float = 1.0
    ) -> Json:
        """Return what the function returned, now or before."""


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A Python function as a tool: its name, its docstring, and its parameters with their types."""

    function: Callable[..., Any]
    tool: Tool
    parameters: Any  # the type of its arguments
    policy: StepRetries = ONCE

    async def use(self, call: ToolCall) -> str:
        """Return what the agent is told: the result, or what was wrong with its arguments."""
        try:
            read = ValueType(self.parameters).read(call.arguments, "what it was called with")
        except BadArgument as error:
            return f"error: {error.message}"
        arguments = {name: getattr(read, name) for name in self.parameters.__struct_fields__}
        try:
            result = await call_function(partial(self.function, **arguments))
        except ToolError as error:
            return f"error: {error.message}"
        return _told(result, self.tool.name)


def _told(result: object, name: str) -> str:
    if isinstance(result, str):
        return result
    return json.dumps(json_of(result, f"the result of tool {name!r}"), ensure_ascii=False)


def function_tool(function: Callable[..., Any]) -> FunctionTool:
    """Return a function as a tool; raises BadArgument for one whose parameters have no types, or cannot be JSON.

    Every use of a tool is a step: of one that `@muster.step` made a step, the function and its retries count.
    """
    if isinstance(function, StepFunction):
        return replace(function_tool(function.function), policy=function.policy)
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise BadArgument(
            f"a tool must be a function with a name, not {function!r}", suggestions=("define it with def or async def",)
        )
    try:
        parameters = _parameters(function, name)
        schema = schema_of(parameters)
    except (NameError, TypeError) as error:
        raise BadArgument(f"the parameters of tool {name!r} cannot be described: {error}") from error
    description = inspect.getdoc(function) or ""
    return FunctionTool(function, Tool(name=name, description=description, parameters=schema), parameters)


def _parameters(function: Callable[..., Any], name: str) -> Any:
    hints = get_type_hints(function, include_extras=True)
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{parameter} cannot be given by name")
        if parameter.name not in hints:
            raise TypeError(f"{parameter.name} has no type; write {parameter.name}: str")
        given = (parameter.name, hints[parameter.name])
        fields.append(given if parameter.default is parameter.empty else (*given, parameter.default))
    return typed.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)


class ToolLoop:
    """Asks an agent until it answers without calling a tool."""

    def __init__(self, functions: Sequence[Callable[..., Any]], *, ask: Call, step: StepDoer, max_turns: int) -> None:
        require_count("max_turns", max_turns, 1)
        require_iterable("tools", functions)
        self._tools = {one.tool.name: one for one in map(function_tool, functions)}
        if len(self._tools) < len(functions):
            raise BadArgument("must have names of their own, and two have the same", argument="tools")
        self._ask, self._step, self._max_turns = ask, step, max_turns

    async def answer(self, key: str, request: Request) -> Reply:
        """Return the reply that calls no tool; raises ToolTurnsExceeded when none came in so many turns."""
        request = replace(request, tools=(*request.tools, *(one.tool for one in self._tools.values())))
        for turn in range(1, self._max_turns + 1):
            reply = await self._ask(request, f"{key}/{turn:03d}")
            if reply.stop is not Stop.TOOL_USE or not reply.tool_calls:
                return reply
            results = await self._results(f"{key}/{turn:03d}/tool", reply.tool_calls)
            request = replace(request, messages=(*request.messages, message_of(reply), *results))
        raise ToolTurnsExceeded(
            f"the agent still called tools after {self._max_turns} turns",
            suggestions=("allow more with max_turns, or tell the agent when to stop",),
        )

    async def _results(self, key: str, calls: Sequence[ToolCall]) -> Sequence[Message]:
        if len(calls) > MAX_TOOL_CALLS:
            raise ToolTurnsExceeded(f"the agent called {len(calls)} tools at once; at most {MAX_TOOL_CALLS} are used")
        texts = await gather(self._step_of(f"{key}/{number}", call) for number, call in enumerate(calls, 1))
        return [
            Message(role=Role.TOOL, text=str(text), tool_call_id=call.id)
            for call, text in zip(calls, texts, strict=True)
        ]

    def _step_of(self, key: str, call: ToolCall) -> Awaitable[Json]:
        known = self._tools.get(call.name)
        if known is None:  # nobody knows how long such a name is, and what is in it
            return self._step(f"{key}/unknown", partial(self._refuse, call))
        using, policy = partial(known.use, call), known.policy
        return self._step(f"{key}/{call.name}", using, retries=policy.retries, backoff=policy.backoff)

    async def _refuse(self, call: ToolCall) -> str:
        return f"error: there is no tool {call.name!r}; there are: {', '.join(self._tools)}"
