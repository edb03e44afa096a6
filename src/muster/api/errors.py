"""One mapping of errors to statuses and bodies: `{"error": {"code", "message", "request_id", "fields"}}`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import ceil
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from muster.api.json_route import BodyRefused
from muster.app.serving.order_models import OrderModel
from muster.app.serving.request_flaws import flaws_sentence, order_flaws, request_flaws
from muster.domain.canonical import JsonObject
from muster.domain.errors import (
    AccessDenied,
    AgentFailed,
    AuthRefused,
    BudgetExhausted,
    CallFailed,
    Conflict,
    FixSpec,
    Interrupted,
    KeyTaken,
    LimitReached,
    MusterError,
    NotFound,
    OutOfTime,
    RunFailed,
    RunTimedOut,
    StoreFailed,
    TimedOut,
    TryLater,
)
from muster.domain.flaw import FieldFlaw

# The first that fits counts, so a class stands before the one that it is derived from.
STATUSES: tuple[tuple[type[MusterError], int], ...] = (
    (AccessDenied, 403),
    (LimitReached, 429),
    (NotFound, 404),
    (FixSpec, 400),
    (Conflict, 409),
    (KeyTaken, 409),
    (RunFailed, 409),
    (BudgetExhausted, 409),
    (RunTimedOut, 504),
    (OutOfTime, 504),
    (TimedOut, 504),
    (AgentFailed, 502),
    (AuthRefused, 502),
    (CallFailed, 502),
    (TryLater, 502),
    (Interrupted, 503),
    (StoreFailed, 503),
)

# Codes of refusals that no use case makes.
CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "request_timeout",
    413: "body_too_large",
    415: "unsupported_media_type",
    429: "limit",
    431: "headers_too_large",
    500: "internal",
    503: "stopping",
    504: "timeout",
}


MAX_MESSAGE = 10_000  # characters: secrets are looked for in all of it
METHODS = ("DELETE", "GET", "POST", "PUT")


class RequestRefused(Exception):
    """A request that is refused before any use case sees it."""

    def __init__(
        self, status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, message, dict(headers or {})
        self.code = code or CODES[status]


def status_of(error: MusterError) -> int:
    """Return the status for an error; what is nobody's fault outside of this server is 500."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def error_response(
    status: int,
    code: str,
    message: str,
    request_id: str,
    headers: Mapping[str, str] | None = None,
    *,
    fields: Sequence[Mapping[str, Any]] = (),
) -> JSONResponse:
    """Return the response for an error; `fields` are there only when it is about fields of the request."""
    detail: JsonObject = {"code": code, "message": message, "request_id": request_id}
    if fields:
        detail["fields"] = list(fields)
    return JSONResponse({"error": detail}, status_code=status, headers=dict(headers or {}))


def refusal_response(refused: RequestRefused, request_id: str) -> JSONResponse:
    """Return the response for a request that is refused before any use case sees it."""
    return error_response(refused.status, refused.code, refused.message, request_id, refused.headers)


def muster_error_response(
    error: MusterError, request_id: str, clean: Callable[[str], str], given: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the response for an error of a use case; `given` is what the path and the query of the request name."""
    status = status_of(error)
    after = getattr(error, "retry_after", None)
    headers = {"retry-after": str(max(1, ceil(after)))} if after is not None and status in (429, 503) else {}
    flaws = error.named(given or {}) if isinstance(error, NotFound) else error.flaws
    fields = [_field(flaw, clean) for flaw in flaws]
    code, message = str(error.record()["code"]), clean(_shortened(error.message))
    return error_response(status, code, message, request_id, headers, fields=fields)


def _field(flaw: FieldFlaw, clean: Callable[[str], str]) -> JsonObject:
    """Return what is wrong with a field as JSON."""
    return replace(flaw, message=clean(_shortened(flaw.message)), suggestion=clean(flaw.suggestion)).record()


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else f"{message[:MAX_MESSAGE]}…"


def install_errors(app: FastAPI, clean: Callable[[str], str]) -> None:
    """Make every error of a route a body of one form; `clean` takes out what is nobody else's business."""

    async def of_muster(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, MusterError)  # noqa: S101 - as registered below
        given = {**request.query_params, **request.path_params}
        return muster_error_response(error, request.state.request_id, clean, given)

    async def of_validation(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101
        return _validation_response(error.errors(), error.body, request)

    async def of_http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101
        code = CODES.get(error.status_code, "bad_request")
        message = _HTTP_MESSAGES.get(error.status_code, error.detail)
        headers = {"allow": _methods(app, request)} if error.status_code == 405 else error.headers
        fields = [flaw.record() for flaw in error.flaws] if isinstance(error, BodyRefused) else ()
        return error_response(error.status_code, code, message, request.state.request_id, headers, fields=fields)

    async def of_refusal(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestRefused)  # noqa: S101
        return refusal_response(error, request.state.request_id)

    app.add_exception_handler(MusterError, of_muster)
    app.add_exception_handler(RequestValidationError, of_validation)
    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(RequestRefused, of_refusal)


def _methods(app: FastAPI, request: Request) -> str:
    """Return the methods that all routes of a path take together."""
    scopes = {method: {**request.scope, "method": method} for method in METHODS}
    taken = [
        method for method, scope in scopes.items() if any(route.matches(scope)[0] is Match.FULL for route in app.routes)
    ]
    return ", ".join(sorted([*taken, "HEAD"] if "GET" in taken else taken))


_HTTP_MESSAGES = {
    404: "no such path; GET /openapi.json lists the routes",
    405: "this path does not take this method; GET /openapi.json lists the routes",
}


def _validation_response(errors: Sequence[Any], body: Any, request: Request) -> JSONResponse:
    """Return the response for a request whose fields do not fit: the path, the query, a header or the body."""
    places: dict[str, list[Any]] = {}
    for error in errors:
        place, *inner = error["loc"]
        places.setdefault(place, []).append({**error, "loc": inner})
    flaws = {place: _flaws(place, found, body, request) for place, found in places.items()}
    message = "; ".join(flaws_sentence(found, place) for place, found in flaws.items())
    fields = [flaw.record() for found in flaws.values() for flaw in found if flaw.path]
    return error_response(400, "bad_request", message, request.state.request_id, fields=fields)


def _flaws(place: str, errors: Sequence[Any], body: Any, request: Request) -> list[FieldFlaw]:
    field = getattr(getattr(request.scope.get("route"), "body_field", None), "field_info", None)
    kind = None if field is None or place != "body" else field.annotation
    if isinstance(kind, type) and issubclass(kind, OrderModel):
        return order_flaws(request.app.state.muster.library, kind, errors, body)
    names = {name: one.alias or name for name, one in getattr(kind, "model_fields", {}).items()}
    return request_flaws(errors, names)
