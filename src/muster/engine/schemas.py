"""Schemas of replies: what a caller may give as one, and what is raised for an answer that does not fit it."""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from types import UnionType
from typing import Any

from muster.domain.call import Quality, Reply, Request, Stop
from muster.domain.entry import question_command
from muster.domain.errors import BadArgument, BadOutput, RecordedFailure
from muster.domain.ids import RunId
from muster.engine.value_flaws import fields_of, is_validated
from muster.engine.values import Model, ValueType, schema_of

JsonSchema = Mapping[str, object]  # as a program writes it
SchemaLike = JsonSchema | type[Any] | UnionType


def completed(request: Request, system: str, schema: SchemaLike | None) -> Request:
    """Return the request with what was given beside it."""
    if system:
        request = replace(request, system=system)
    return request if schema is None else replace(request, schema=json_schema(schema))


@dataclass(frozen=True, slots=True)
class AskedData:
    """A call whose answer is to be data; one error tells of any that is not, whoever found that out."""

    run: RunId
    key: str
    agent: str
    schema: SchemaLike

    async def of(self, calling: Awaitable[Reply]) -> Reply[Any]:
        """Return the reply of the call; raises BadOutput for one whose data does not fit, which costs what it cost."""
        try:
            reply = await calling
        except BadOutput as error:
            raise self.misfit_in(error) or error from error.__cause__
        return self.fitting(reply)

    def misfit_in(self, error: BaseException | None) -> BadOutput | None:
        """Return the error for an answer that its agent has found not to fit; None for anything else that failed."""
        told = error.record() if isinstance(error, BadOutput | RecordedFailure) else {}
        if told.get("code") != BadOutput.code or "answer" not in told:
            return None
        answer = (error.answer or "") if isinstance(error, BadOutput) else str(told["answer"])
        reply = Reply(text=answer, data_error=str(told["flaw"]))
        return self.misfit(reply.data_error, reply, log=str(told.get("log", "")))

    def fitting(self, reply: Reply) -> Reply[Any]:
        """Return a reply whose data fits, and is of the type that was given as the schema."""
        wrong = _flaw(reply)
        if not wrong and (isinstance(self.schema, Mapping) or reply.stop is Stop.TOOL_USE):
            return reply
        try:
            if not wrong:
                return replace(reply, data=ValueType(self.schema).read(reply.data, "its answer"))
        except BadArgument as misfit:
            wrong = misfit.message
        raise self.misfit(wrong, reply)

    def misfit(self, wrong: str, reply: Reply, log: str = "") -> BadOutput:
        """Return the error for an answer: which call it was, all that is wrong with it, and what it says."""
        way = f"see it in full: {question_command(self.run, self.key)}"
        error = BadOutput(f"call {self.key!r} to {self.agent}: {wrong}", log=log, suggestions=(way,))
        error.reply, error.flaw, error.answer = reply, wrong, reply.text
        return error


def json_schema(schema: SchemaLike) -> Mapping[str, Any]:
    """Return a schema as JSON; raises BadArgument for anything that is neither a mapping nor a type."""
    if isinstance(schema, Mapping):
        return schema
    kind: Any = type(schema)
    if isinstance(kind, Model) or is_validated(kind) or fields_of(kind) is not None:
        raise BadArgument(
            f"must be a type, not an instance of {kind.__name__}",
            argument="schema",
            suggestions=(f"write schema={kind.__name__}",),
        )
    try:
        return schema_of(schema)
    except (NameError, TypeError) as error:
        raise BadArgument(
            f"schema must be a JSON Schema (a dict) or a type: a dataclass, a TypedDict, a Pydantic model; {error}"
        ) from error


def _flaw(reply: Reply) -> str:
    if reply.stop is Stop.TOOL_USE:
        return "" if reply.tool_calls else "it stopped for tool calls but made none, and data was requested"
    if reply.quality in (Quality.CUT, Quality.REFUSED):
        return f"its answer was {reply.quality}, and data was requested"
    return reply.data_error
