"""/openapi.json: what FastAPI knows of the routes, with their answers and the errors that each can answer with.

The schemas of answers are made from the types of the values that routes return.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from muster.api.json_route import JsonRoute
from muster.domain.canonical import Json
from muster.domain.flaw import FlawCode
from muster.text import typed

TITLE, VERSION = "Muster", "1"
SUMMARY = "Runs of AI agents as durable work: started, watched and stopped."
ERRORS = {
    400: "The request is not valid, or names something that it may not.",
    401: "A valid token is needed.",
    403: "The token does not have the scope, or the host or origin is not allowed.",
    404: "There is no such thing, or it belongs to another user.",
    408: "The body did not arrive in time.",
    409: "It is not in a state for this, or the idempotency key was used for another request.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    429: "Too many starts, connections or streams of this client; retry-after says when to try again.",
    431: "The headers are too large.",
    500: "Something unexpected happened in the server.",
    502: "An agent or a provider failed.",
    503: "The server is stopping, or its store cannot be used.",
    504: "It took too long.",
}
METHODS = ("get", "put", "post", "delete")
JSON = "application/json"
NAMING_ROUTES = frozenset(  # runs or verifiers, in their bodies
    {"post /api/reviews", "post /api/suites/start", "post /api/tasks", "post /api/verify"}
)
PROVIDER_ROUTES = frozenset({"post /api/batches/{batch_id}/cancel"})  # that ask a provider before they answer

_TEXT = {"type": "string"}
_TEXTS = ("code", "message", "request_id")
_FIELD_TEXTS = ("path", "code", "message", "suggestion")
_FIELD = {
    "type": "object",
    "description": "What is wrong with a field; the path is its name in requests, like `goals[0].persona`.",
    "required": list(_FIELD_TEXTS),
    "properties": dict.fromkeys(_FIELD_TEXTS, _TEXT)
    | {"code": {"enum": [str(code) for code in FlawCode]}, "suggestion": {"type": ["string", "null"]}},
}
_FIELDS = {"type": "array", "items": {"$ref": "#/components/schemas/FieldError"}}
_DETAIL = {
    "type": "object",
    "required": list(_TEXTS),
    "properties": {**dict.fromkeys(_TEXTS, _TEXT), "fields": _FIELDS},
}
_ERROR = {"type": "object", "required": ["error"], "properties": {"error": _DETAIL}}


def described(routers: Sequence[APIRouter]) -> dict[str, Json]:
    """Return the schema of all routes: every operation names what it answers with, the errors too."""
    routes = [route for router in routers for route in router.routes]
    schema = get_openapi(title=TITLE, version=VERSION, summary=SUMMARY, routes=routes)
    answers, values = answer_schemas(routes)
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas.update(values, Error=_ERROR, FieldError=_FIELD)
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{}, {"token": []}]
    for path, operations in schema["paths"].items():
        for method in METHODS:
            if method in operations:
                _complete(f"{method} {path}", operations[method], answers)
    return schema


def answer_schemas(routes: Iterable[BaseRoute]) -> tuple[Mapping[str, Json], Mapping[str, Json]]:
    """Return the schema of the answer of each route by method and path, and the schemas that these refer to."""
    kinds = {
        f"{method.lower()} {route.path}": route.answer
        for route in routes
        if isinstance(route, JsonRoute) and route.answer is not None
        for method in route.methods or ()
    }
    schemas, components = typed.schema_components(kinds.values(), ref_template="#/components/schemas/{name}")
    return dict(zip(kinds, schemas, strict=True)), components


def _complete(route: str, operation: dict[str, Any], answers: Mapping[str, Json]) -> None:
    responses = operation["responses"]
    responses.pop("422", None)
    shape = answers.get(route)
    for status, response in responses.items():
        if shape is not None and status.startswith("2"):
            response.setdefault("content", {})[JSON] = {"schema": shape}
    if "202" in responses:
        responses.setdefault("200", {**responses["202"], "description": "The same request was made before."})
    body = {JSON: {"schema": {"$ref": "#/components/schemas/Error"}}}
    for status in errors_of(route, operation):
        responses[str(status)] = {"description": ERRORS[status], "content": body}


def errors_of(route: str, operation: Mapping[str, Any]) -> list[int]:
    """Return the errors that a route can answer with; those of the guards are the same for all."""
    method, _, path = route.partition(" ")
    writes = method != "get"
    names = {one["name"] for one in operation.get("parameters", ())}
    left_out = {
        401: path == "/healthz",
        404: not ("{" in path or names & {"a", "run", "after", "slot"} or route in NAMING_ROUTES) or method == "put",
        409: not (writes or path.endswith(("/report", "/diff", "/progress"))),
        415: not writes,
        502: route not in PROVIDER_ROUTES,
        504: path.endswith("/stream") or path.startswith("/api/stream/"),
    }
    return [status for status in ERRORS if not left_out.get(status)]
