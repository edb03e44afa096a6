"""Refusals of the gateway in the shapes of the providers, so that every client knows them for what they are. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from muster.domain.canonical import JsonObject
from muster.domain.errors import (
    AccessDenied,
    BadArgument,
    BadConfiguration,
    BudgetExhausted,
    LimitReached,
    MusterError,
    NotFound,
    ReplayMiss,
    StopRun,
    Unreachable,
    WireError,
)
from muster.domain.provider import ANTHROPIC

FINAL = {"x-should-retry": "false"}  # every client stops at once, instead of asking for what is refused again


class RefusalShape(NamedTuple):
    """How a refusal is told: the status, and what the providers call such an error."""

    status: int
    anthropic: str
    openai: str
    headers: Mapping[str, str] = {}


_INVALID = RefusalShape(400, "invalid_request_error", "invalid_request_error", FINAL)
_BUDGET = RefusalShape(402, "billing_error", "insufficient_quota", FINAL)
_BROKEN = RefusalShape(502, "api_error", "server_error")
_SHAPES: tuple[tuple[type[MusterError], RefusalShape], ...] = (  # the first that fits holds
    (ReplayMiss, RefusalShape(404, "not_found_error", "invalid_request_error", FINAL)),
    (BudgetExhausted, _BUDGET),
    (BadConfiguration, _BUDGET),  # a price, a limit or a key that nobody has set
    (BadArgument, _INVALID),
    (AccessDenied, RefusalShape(403, "permission_error", "permission_error", FINAL)),
    (NotFound, RefusalShape(404, "not_found_error", "invalid_request_error", FINAL)),
    (LimitReached, RefusalShape(429, "rate_limit_error", "rate_limit_error", FINAL)),
    (Unreachable, _BROKEN),
    (WireError, _BROKEN),
    (StopRun, RefusalShape(503, "overloaded_error", "server_error")),
)
UNKNOWN_KEY = RefusalShape(401, "authentication_error", "invalid_request_error", FINAL)
TOO_LARGE = RefusalShape(413, "request_too_large", "invalid_request_error", FINAL)
TOO_SLOW = RefusalShape(408, "timeout_error", "invalid_request_error")
STOPPING = RefusalShape(503, "overloaded_error", "server_error", {"retry-after": "5"})
FOREIGN = RefusalShape(403, "permission_error", "permission_error", FINAL)
INVALID = _INVALID
UNEXPECTED = RefusalShape(500, "api_error", "server_error")


def shape_of(error: MusterError) -> RefusalShape:
    """Return how an error is told."""
    return next(
        (shape for kind, shape in _SHAPES if isinstance(error, kind)), RefusalShape(409, "api_error", "server_error")
    )


def told(api: str, shape: RefusalShape, message: str, request_id: str, param: str | None = None) -> JsonObject:
    """Return the body of a refusal in the shape of an API."""
    if api == ANTHROPIC:
        return {"type": "error", "error": {"type": shape.anthropic, "message": message}, "request_id": request_id}
    return {"error": {"message": message, "type": shape.openai, "param": param, "code": shape.openai}}


def words(error: MusterError) -> str:
    """Return the message of an error with what to do about it."""
    ways = "; ".join(map(str, error.suggestions))
    return f"Muster: {error.message}{f' ({ways})' if ways else ''}"
