"""/openapi.json: what FastAPI knows of the routes, with the errors that every route can answer with."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

ERRORS = {
    400: "The request is not valid, or names something that it may not.",
    401: "A valid token is needed.",
    403: "The token does not have the scope, or the host or origin is not allowed.",
    404: "There is no such thing, or it belongs to another user.",
    405: "The path does not take this method.",
    408: "The body did not arrive in time.",
    409: "It is not in a state for this, or the idempotency key was used for another request.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    429: "Too many starts; retry-after says when another is possible.",
    431: "The headers are too large.",
    500: "Something unexpected happened in the server.",
    502: "An agent or a provider failed.",
    503: "The server is stopping, or its store cannot be used.",
    504: "It took too long.",
}
METHODS = ("get", "put", "post", "delete")

_TEXT = {"type": "string"}
_TEXTS = ("code", "message", "request_id")
_DETAIL = {"type": "object", "required": list(_TEXTS), "properties": dict.fromkeys(_TEXTS, _TEXT)}
_ERROR = {"type": "object", "required": ["error"], "properties": {"error": _DETAIL}}


def install_schema(app: FastAPI) -> None:
    """Let the application describe itself with every status that it answers with."""

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
            app.openapi_schema = with_errors(found)
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]  # as FastAPI wants it to be extended


def with_errors(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema in which every operation names the errors of this server, and none that it never makes."""
    components = schema.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Error"] = _ERROR
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    schema["security"] = [{}, {"token": []}]
    for operations in schema["paths"].values():
        for method in METHODS:
            if method in operations:
                _complete(operations[method]["responses"])
    return schema


def _complete(responses: dict[str, Any]) -> None:
    responses.pop("422", None)
    if "202" in responses:
        responses.setdefault("200", {**responses["202"], "description": "The same request was made before."})
    body = {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    for status, description in ERRORS.items():
        responses[str(status)] = {"description": description, "content": body}
