"""Schemas of replies: what a caller may give as one, and what is raised for an answer that does not fit it."""

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from types import UnionType
from typing import Any, TypeVar, overload

from muster.domain.call import Quality, Reply, Request, Stop
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput
from muster.engine.value_flaws import fields_of, is_validated
from muster.engine.values import Model, ValueType, schema_of

T = TypeVar("T")
JsonSchema = Mapping[str, object]  # as a program writes it
SchemaLike = JsonSchema | type[Any] | UnionType


def completed(request: Request, system: str, schema: SchemaLike | None) -> Request:
    """Return the request with what was given beside it."""
    if system:
        request = replace(request, system=system)
    return request if schema is None else replace(request, schema=json_schema(schema))


async def fitting(calling: Awaitable[Reply], schema: SchemaLike) -> Reply[Any]:
    """Return the reply of a call, whose data fits a schema."""
    return require_data(await calling, schema)


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


@overload
def require_data(reply: Reply, schema: type[T]) -> Reply[T]: ...


@overload
def require_data(reply: Reply, schema: UnionType) -> Reply[object]: ...


@overload
def require_data(reply: Reply, schema: JsonSchema) -> Reply[Json]: ...


def require_data(reply: Reply, schema: SchemaLike) -> Reply[Any]:
    """Return a reply whose data fits, and is of the type that was given as the schema.

    Raises BadOutput for any other, which costs what it cost.
    """
    wrong = _flaw(reply)
    if not wrong and (isinstance(schema, Mapping) or reply.stop is Stop.TOOL_USE):
        return reply
    try:
        if not wrong:
            return replace(reply, data=ValueType(schema).read(reply.data, "its answer"))
    except BadArgument as misfit:
        wrong = misfit.message
    error = BadOutput(wrong, suggestions=("the reply is kept: muster runs show RUN --call KEY",))
    error.reply = reply
    raise error


def _flaw(reply: Reply) -> str:
    if reply.stop is Stop.TOOL_USE:
        return "" if reply.tool_calls else "it stopped for tool calls but made none, and data was requested"
    if reply.quality in (Quality.CUT, Quality.REFUSED):
        return f"its answer was {reply.quality}, and data was requested"
    return reply.data_error
