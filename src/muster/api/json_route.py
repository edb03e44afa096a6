"""Routes that take and answer with JSON: what it leaves open is refused in bodies, and values are encoded once.

Two readers would understand otherwise what JSON leaves open. FastAPI neither converts nor checks answers.
"""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, NoReturn, get_args, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import HTTPException
from fastapi.routing import APIRoute

from muster.api.callers import Scope
from muster.app.serving.request_flaws import flaws_sentence
from muster.domain.canonical import JsonObject
from muster.domain.flaw import FieldFlaw
from muster.text.json_documents import flaw_of, number_flaw
from muster.text.views import json_bytes

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # of which there must be two, one after the other
MAX_KEYS = 1_000  # of one object: each that no route knows becomes an error of its own


class BodyRefused(HTTPException):
    """A body that cannot be stored, with the field that is to blame where one is."""

    def __init__(self, wrong: str, flaw: FieldFlaw | None) -> None:
        self.flaws = () if flaw is None or not flaw.path else (flaw,)
        super().__init__(400, flaws_sentence(self.flaws, "body") or f"body: {wrong}")


class JsonRequest(Request):
    """A request whose body names every key once and holds only numbers that JSON has."""

    async def json(self) -> Any:
        """Return the body; raises HTTPException for a duplicate key in an object, and for too many keys."""
        body = await self.body()
        try:
            text = body.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise HTTPException(400, f"body: it is not UTF-8: {error.reason} at byte {error.start:,}") from None
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse_constant)
        wrong = flaw_of(found) or (_SURROGATE.search(body) and _text_flaw(found))
        if wrong:
            raise BodyRefused(wrong, _number_flaw(found))
        return found


def _object(pairs: Sequence[tuple[str, Any]]) -> JsonObject:
    if len(pairs) > MAX_KEYS:
        raise HTTPException(400, f"body: an object may have {MAX_KEYS:,} keys")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise HTTPException(400, "body: an object has the same key twice; duplicate keys are not allowed")
    return found


def _number_flaw(found: Any) -> FieldFlaw | None:
    try:
        return number_flaw(found)
    except RecursionError:  # what is nested too deeply has no field that is to blame
        return None


def _text_flaw(found: Any) -> str | None:
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return "it contains a lone surrogate"
    return None


def _refuse_constant(name: str) -> NoReturn:
    raise HTTPException(400, f"body: {name} is not a number in JSON")


@dataclass(frozen=True, slots=True)
class RequiredScope:
    """The dependency of a route that only tokens with a scope may use."""

    scope: Scope

    def __call__(self, request: Request) -> None:
        """Raise Forbidden for a caller without the scope."""
        request.state.caller.require(self.scope)


class JsonRoute(APIRoute):
    """A route that reads bodies strictly, and only those of callers that have its scope, and encodes its answer."""

    def __init__(self, path: str, endpoint: Callable[..., Awaitable[Any]], **options: Any) -> None:
        self.answer = answer_of(endpoint)
        status = options.get("status_code") or 200
        super().__init__(path, _encoded(endpoint, status), **{**options, "response_model": None})

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return what handles a request."""
        handle = super().get_route_handler()
        scopes = [one.dependency for one in self.dependencies if isinstance(one.dependency, RequiredScope)]

        async def read_strictly(request: Request) -> Response:
            for scope in scopes:
                scope(request)
            return await handle(JsonRequest(request.scope, request.receive))

        return read_strictly


def answer_of(endpoint: Callable[..., Any]) -> Any:
    """Return the type of the value that an endpoint answers with; None when it makes responses only."""
    declared = get_type_hints(endpoint)["return"]
    if not any(isinstance(kind, type) and issubclass(kind, Response) for kind in (declared, *get_args(declared))):
        return declared
    return next((kind for kind in get_args(declared) if not issubclass(kind, Response)), None)


def json_response(value: Any, status: int = 200) -> Response:
    """Return a value as a response of JSON."""
    return Response(json_bytes(value), status_code=status, media_type="application/json")


def _encoded(endpoint: Callable[..., Awaitable[Any]], status: int) -> Callable[..., Awaitable[Response]]:
    """Return an endpoint whose value becomes a response, with the status that it has set if it has set one."""

    @wraps(endpoint)
    async def answer(**given: Any) -> Response:
        value, set_by = await endpoint(**given), given.get("response")
        if isinstance(value, Response):
            return value
        return json_response(value, (set_by.status_code if set_by is not None else None) or status)

    return answer
