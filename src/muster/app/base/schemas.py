"""JSON Schemas as the engine uses them: what takes long is done in threads, so that everything else goes on."""

from collections.abc import Mapping
from dataclasses import replace

from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput, InvalidRequest
from muster.text.json_documents import find_value, flaw_of
from muster.text.schemas.guard import in_schema_thread
from muster.text.schemas.json_schema import MAX_FLAWS, NO_ANSWER, flaw, is_quick, misfit, schema_flaw


class JsonSchemas:
    """Checks schemas of requests, and applies them to replies."""

    async def require(self, schema: Mapping[str, Json]) -> None:
        """Raise InvalidRequest for a mapping that is not a JSON Schema."""
        wrong = schema_flaw(schema) if is_quick("", schema) else await in_schema_thread(schema_flaw, schema)
        if wrong is not None:
            raise InvalidRequest(f"the schema of the request is not a JSON Schema: {wrong}")

    async def parse(self, reply: Reply, schema: Mapping[str, Json]) -> Reply:
        """Return the reply with its answer as data, or with the reason why that does not fit the schema."""
        if reply.data is not None or reply.stop in NO_ANSWER:  # an agent that checks its answers has set it
            return reply
        quick = is_quick(reply.text, schema)
        return _parsed(reply, schema) if quick else await in_schema_thread(_parsed, reply, schema)


def _parsed(reply: Reply, schema: Mapping[str, Json]) -> Reply:
    try:
        value = find_value(reply.text, schema)
    except BadOutput as error:
        return replace(reply, data_error=error.message)
    wrong = flaw_of(value) or flaw(value, schema, most=MAX_FLAWS)
    return replace(reply, data_error=misfit(wrong)) if wrong else replace(reply, data=value, data_error="")
