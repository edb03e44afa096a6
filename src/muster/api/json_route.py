"""Reading bodies: what JSON leaves open is refused, because two readers would understand it differently."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.exceptions import HTTPException
from fastapi.routing import APIRoute

from muster.api.callers import Scope
from muster.text.json_documents import flaw_of

_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")  # of which there must be two, one after the other
MOST_KEYS = 1_000  # of one object: each that no route knows becomes an error of its own


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
            raise HTTPException(400, f"body: {wrong}")
        return found


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise HTTPException(400, f"body: an object may have {MOST_KEYS:,} keys")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise HTTPException(400, "body: an object has the same key twice; duplicate keys are not allowed")
    return found


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
    """A route that reads bodies strictly, and only those of callers that have its scope."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return what handles a request."""
        handle = super().get_route_handler()
        scopes = [one.dependency for one in self.dependencies if isinstance(one.dependency, RequiredScope)]

        async def read_strictly(request: Request) -> Response:
            for scope in scopes:
                scope(request)
            return await handle(JsonRequest(request.scope, request.receive))

        return read_strictly
