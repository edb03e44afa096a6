"""Schemas of replies: what a caller may give as one, and what is raised for an answer that does not fit it."""

from collections.abc import Awaitable, Mapping
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

from muster.domain.call import Quality, Reply, Request, Stop
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput


@runtime_checkable
class Model(Protocol):
    """A Pydantic model, as far as it is needed here."""

    def model_json_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the model."""

    def model_validate(self, data: Any) -> object:
        """Return an instance, or raise ValueError."""


SchemaLike = Mapping[str, Json] | Model


def completed(request: Request, system: str, schema: SchemaLike | None) -> Request:
    """Return the request with what was given beside it."""
    if system:
        request = replace(request, system=system)
    return request if schema is None else replace(request, schema=json_schema(schema))


async def fitting(calling: Awaitable[Reply], schema: SchemaLike) -> Reply:
    """Return the reply of a call, whose data fits a schema."""
    return require_data(await calling, schema)


def json_schema(schema: SchemaLike) -> Mapping[str, Json]:
    """Return a schema as JSON; raises BadArgument for anything that is neither a mapping nor a Pydantic model."""
    if isinstance(schema, Mapping):
        return schema
    if isinstance(schema, Model):
        return schema.model_json_schema()
    raise BadArgument(f"schema must be a JSON Schema (a dict) or a Pydantic model, not {type(schema).__name__}")


def require_data(reply: Reply, schema: SchemaLike) -> Reply:
    """Return a reply whose data fits; raises BadOutput for any other, which costs what it cost."""
    wrong = _flaw(reply, schema)
    if wrong:
        error = BadOutput(wrong, suggestions=("the reply is kept: muster runs show RUN --call KEY",))
        error.reply = reply
        raise error
    return reply


def _flaw(reply: Reply, schema: SchemaLike) -> str:
    if reply.stop is Stop.TOOL_USE:
        return "" if reply.tool_calls else "it stopped for tool calls but made none, and data was requested"
    if reply.quality in (Quality.CUT, Quality.REFUSED):
        return f"its answer was {reply.quality}, and data was requested"
    if reply.data_error or isinstance(schema, Mapping):
        return reply.data_error
    try:
        schema.model_validate(reply.data)  # a model may ask for more than its schema says
    except ValueError as error:
        return f"its answer does not fit the model: {error}"
    return ""
