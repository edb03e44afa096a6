"""What a server answered, as values: the JSON of a success, or an error of the tree for a refusal. Pure."""

import json
from collections.abc import Mapping

from muster.agents.http.client import HttpResponse
from muster.domain.canonical import Json
from muster.domain.errors import (
    AccessDenied,
    AuthRefused,
    BadArgument,
    BadConfiguration,
    Conflict,
    LimitReached,
    MusterError,
    NotFound,
    Overloaded,
    ProviderFault,
)

SIMPLE: Mapping[int, type[MusterError]] = {403: AccessDenied, 404: NotFound, 409: Conflict}


def read_json(url: str, response: HttpResponse) -> Mapping[str, Json]:
    """Return the JSON object of a success; raises what a refusal stands for."""
    if not 200 <= response.status < 300:
        raise refusal_of(response)
    found = json_object(response.body)
    if found is None:
        raise not_muster(url)
    return found


def not_muster(url: str) -> BadConfiguration:
    """Return the error about a server that speaks otherwise."""
    return BadConfiguration(f"{url} does not answer like muster serve", suggestions=("check the address",))


def json_object(body: bytes) -> Mapping[str, Json] | None:
    """Return a body as a JSON object; None when it is not one."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def refusal_of(response: HttpResponse) -> MusterError:
    """Return the error that a status stands for, with the words of the server."""
    status = response.status
    said = (json_object(response.body) or {}).get("error")
    error = said if isinstance(said, dict) else {}
    message = str(error.get("message") or f"the server answered with status {status}")
    request_id = error.get("request_id")
    if status in SIMPLE:
        return SIMPLE[status](message)
    if status == 401:
        return AuthRefused(message, status=status, suggestions=("give the secret of a token: token=…",))
    if status == 429:
        after = _seconds(response.headers.get("retry-after"))
        return LimitReached(message, retry_after=1.0 if after is None else after)
    if 400 <= status < 500:
        return BadArgument(message)
    kind = Overloaded if status == 503 else ProviderFault
    return kind(message, status=status, request_id=request_id if isinstance(request_id, str) else None)


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None
