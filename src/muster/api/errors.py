"""One mapping of errors to statuses and bodies: `{"error": {"code", "message", "request_id"}}`."""

from collections.abc import Callable, Mapping
from math import ceil
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match

from muster.app.serving.order_models import PLAIN_WORDS
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


LONGEST_MESSAGE = 10_000  # characters: secrets are looked for in all of it
METHODS = ("DELETE", "GET", "POST", "PUT")
MOST_TOLD = 5  # things that are wrong with one request


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
    status: int, code: str, message: str, request_id: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the response for an error."""
    body = {"error": {"code": code, "message": message, "request_id": request_id}}
    return JSONResponse(body, status_code=status, headers=dict(headers or {}))


def refusal_response(refused: RequestRefused, request_id: str) -> JSONResponse:
    """Return the response for a request that is refused before any use case sees it."""
    return error_response(refused.status, refused.code, refused.message, request_id, refused.headers)


def muster_error_response(error: MusterError, request_id: str, clean: Callable[[str], str]) -> JSONResponse:
    """Return the response for an error of a use case."""
    status = status_of(error)
    after = getattr(error, "retry_after", None)
    headers = {"retry-after": str(max(1, ceil(after)))} if after is not None and status in (429, 503) else {}
    return error_response(status, str(error.record()["code"]), clean(_shortened(error.message)), request_id, headers)


def _shortened(message: str) -> str:
    return message if len(message) <= LONGEST_MESSAGE else f"{message[:LONGEST_MESSAGE]}…"


def install_errors(app: FastAPI, clean: Callable[[str], str]) -> None:
    """Make every error of a route a body of one form; `clean` takes out what is nobody else's business."""

    async def of_muster(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, MusterError)  # noqa: S101 - as registered below
        return muster_error_response(error, request.state.request_id, clean)

    async def of_validation(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, RequestValidationError)  # noqa: S101
        return error_response(400, "bad_request", validation_message(error.errors()), request.state.request_id)

    async def of_http(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)  # noqa: S101
        code = CODES.get(error.status_code, "bad_request")
        message = _HTTP_MESSAGES.get(error.status_code, error.detail)
        headers = {"allow": _methods(app, request)} if error.status_code == 405 else error.headers
        return error_response(error.status_code, code, message, request.state.request_id, headers)

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


def validation_message(errors: Any) -> str:
    """Return what is wrong with a request: where, and what it must be; never what was sent, which may be a secret."""
    told = [f"{_place(error['loc'])}: {_sentence(error)}" for error in errors[:MOST_TOLD]]
    left = len(errors) - len(told)
    return "; ".join(told) + (f"; and {left} more" if left else "")


def _place(location: Any) -> str:
    where, *names = [str(part) for part in location]
    names = [] if len(names) == 1 and names[0].isdecimal() else names  # the offset of a flaw in JSON helps nobody
    return f"{where} {'.'.join(names)}" if names else where


def _sentence(error: Mapping[str, Any]) -> str:
    if error.get("type") in PLAIN_WORDS:
        return PLAIN_WORDS[error["type"]]
    message = str(error.get("msg", "is not valid")).removeprefix("Value error, ")
    return message[:1].lower() + message[1:]
