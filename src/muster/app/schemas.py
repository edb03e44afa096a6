"""JSON Schemas as the engine uses them: what takes long is done in a thread, so that everything else goes on."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, BadOutput, InvalidRequest
from muster.text.json_documents import find_value, flaw_of
from muster.text.json_schema import NO_ANSWER, evaluate, flaw, misfit, schema_flaw
from muster.text.patterns import TooSlow

QUICK_SECONDS = 0.05  # of CPU, for which everything else may be kept waiting


class JsonSchemas:
    """Checks schemas of requests, and applies them to replies."""

    def require(self, schema: Mapping[str, Json]) -> None:
        """Raise InvalidRequest for a mapping that is not a JSON Schema."""
        wrong = schema_flaw(schema)
        if wrong is not None:
            raise InvalidRequest(f"the schema of the request is not a JSON Schema: {wrong}")

    async def parse(self, reply: Reply, schema: Mapping[str, Json]) -> Reply:
        """Return the reply with its answer as data, or with the reason why that does not fit the schema."""
        if reply.data is not None or reply.stop in NO_ANSWER:  # an agent that checks its answers has set it
            return reply
        try:
            value = find_value(reply.text, schema)
        except BadOutput as error:
            return replace(reply, data_error=error.message)
        wrong = flaw_of(value) or await _flaw(value, schema)
        return replace(reply, data_error=misfit(wrong)) if wrong else replace(reply, data=value, data_error="")


async def _flaw(value: Json, schema: Mapping[str, Json]) -> str | None:
    try:
        return evaluate(value, schema, QUICK_SECONDS)
    except TooSlow:
        return await asyncio.to_thread(flaw, value, schema)
    except BadArgument as error:
        return error.message
