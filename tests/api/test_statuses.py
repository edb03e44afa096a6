"""Every status that a route documents is provoked: those of the guards on every route, those of one route on it.

All that a client can provoke is asked of a real server. What it cannot (a defect, a failing store or provider, time
that passes) is provoked in the application.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import FastAPI

import muster
from muster.api.app import create_app
from muster.api.guards import Lifetime, RequestIds, RequestLimits
from muster.api.schema import ERRORS
from muster.app import Muster
from muster.app.kinds import AppKind, made_at
from muster.domain.doors import Door
from muster.domain.errors import MusterError, ProviderFault, StoreFailed
from muster.domain.order import DeclaredField, FieldForm, element_of, is_many, order_fields
from muster.settings import load_settings
from tests.git.repository import Repository

from .contract import routes
from .server import ADMIN, SETTINGS, SUITE, TOKENS, Project, Server

JSON_TYPE = "application/json"
JSON = {"content-type": JSON_TYPE}
HOST = {"host": "127.0.0.1"}


def smallest(known: AppKind) -> dict[str, Any]:
    """Return the smallest valid body of a request that starts work of a kind."""
    needed = [one for one in order_fields(known.order) if one.at(Door.REQUEST) and one.required(Door.REQUEST)]
    return {one.declared.alias or one.name: _least(one) for one in needed}


def _least(one: DeclaredField) -> Any:
    inner, bounds = element_of(one.kind)
    text = "sim/echo" if one.declared.form is FieldForm.AGENT else "x"
    number = one.declared.min or (bounds and bounds.min) or 1
    value = number if inner in (int, float) else text
    return [value] if is_many(one.kind) else value


# The smallest valid body of each route that needs one: of a start made from its order, or another that says more.
BODIES: Mapping[str, Any] = {known.path: smallest(known) for known in made_at(Door.REQUEST)} | {
    "/api/suites/start": {"suites": ["smoke"], "only_failed": "x"},
    "/api/chains": {"chain": "x"},
    "/api/tasks": {"prompt": "x", "continue": "x"},
    "/api/scale/start": {"agentId": "sim/echo"},
    "/api/reviews": {"run": "x", "case": "x", "opinion": "right"},
    "/api/runs/{run_id}/fork": {"from": "x"},
    "/api/runs/{run_id}/answer": {"text": "x"},
    "/api/councils/{run_id}/inject": {"text": "x"},
    "/api/tasks/{task_id}/reject": {"feedback": "x"},
    "/api/tasks/{task_id}/change": {"priority": 1},
    "/api/pool/slots/{slot}/messages": {"text": "x"},
    "/api/pool/messages": {"text": "x"},
    "/api/pool/context/{name}": {"text": "x"},
    "/api/pool/scale": {"slots": 1},
    "/api/verify": {"agents": ["nobody"]},
}
OTHER_FORMS = {"/metrics", "/api/runs/{run_id}/report", "/api/runs/{run_id}/events"}  # text, or forms that are chosen
ROUTES = [(method, path, operation) for method, path, _, operation in routes()]


def documenting(status: int) -> list[tuple[str, str]]:
    return [(method, path) for method, path, operation in ROUTES if str(status) in operation["responses"]]


class Answered:
    def __init__(self) -> None:
        self.status, self.body = 0, b""

    async def __call__(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")


async def ask(
    app: Any,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    receive: Any = None,
) -> int:
    """Send one request to an application and return its status; an error has the one form that there is."""
    target, answered = re.sub(r"\{\w+\}", "x", path), Answered()
    given = {**HOST, **(headers or {})}

    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    scope = {
        **{"type": "http", "method": method.upper(), "path": target, "raw_path": target.encode(), "root_path": ""},
        **{"query_string": b"", "scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1)},
        "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        "state": {},
    }
    try:
        await app(scope, receive or whole, answered)
    except RuntimeError:
        assert answered.status == 500  # the server raises it again, for its log
    if answered.status >= 400:
        assert set(json.loads(answered.body)["error"]) - {"fields"} == {"code", "message", "request_id"}
    return answered.status


def ask_server(
    server: Server,
    method: str,
    path: str,
    *,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    query: str = "",
) -> int:
    """Send one request to a server and return its status; an error has the one form that there is."""
    target = re.sub(r"\{\w+\}", "x", path)
    answer = server.request(method.upper(), f"{target}?{query}" if query else target, raw=body, headers=headers)
    assert answer.status < 400 or answer.error
    return answer.status


def statuses_of_server(
    server: Server, asked: list[tuple[str, str]], **request: Any
) -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = {}
    for method, path in asked:
        found.setdefault(ask_server(server, method, path, **request), []).append((method, path))
    return found


async def statuses(app: Any, asked: list[tuple[str, str]], **request: Any) -> dict[int, list[tuple[str, str]]]:
    found: dict[int, list[tuple[str, str]]] = {}
    for method, path in asked:
        found.setdefault(await ask(app, method, path, **request), []).append((method, path))
    return found


class Served:
    """An open Muster, and applications over it."""

    def __init__(self, m: Muster) -> None:
        self.muster, self.lifetime = m, Lifetime()

    def app(self, other: Muster | None = None) -> FastAPI:
        return create_app(other or self.muster, self.muster.settings, lifetime=self.lifetime)


async def opened(folder: Path, toml: str, **variables: str) -> AsyncIterator[Served]:
    (folder / "muster.toml").write_text(toml, encoding="utf-8")
    (folder / "library" / "smoke").mkdir(parents=True)
    (folder / "library" / "smoke" / "cases.yaml").write_text(SUITE, encoding="utf-8")
    settings = load_settings(folder / ".muster", folder=folder, environment=variables)
    async with muster.open(settings=settings) as m:
        yield Served(m)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async for one in opened(tmp_path, SETTINGS + '[pool]\nagent = "sim/echo"\n'):
        yield one


@pytest.fixture(scope="module")
def crewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of one local user with a pool, in a repository with a file that has changed."""
    project = Project(tmp_path_factory.mktemp("crewed"))
    repository = Repository(project.folder)
    repository.write("shop.py")
    repository.commit()
    repository.write("shop.py", "x = 2\n")
    project.declare('[pool]\nagent = "sim/echo"\n')
    with project.serve() as started:
        yield started


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with tokens, on which there can be one start in a minute."""
    project = Project(tmp_path_factory.mktemp("narrow"))
    project.declare(TOKENS, SETTINGS.replace("starts_per_minute = 10000", "starts_per_minute = 1"))
    with project.serve() as started:
        yield started


class Broken:
    """Fails whatever it is asked for."""

    def __init__(self, whole: Muster, error: Exception) -> None:
        self.log, self.clock, self.settings = whole.log, whole.clock, whole.settings
        self._error = error

    def __getattr__(self, name: str) -> Any:
        raise self._error


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (403, {"host": "elsewhere.example"}),
        (413, {"content-length": "999999999"}),
        (431, {"x-long": "x" * 40_000}),
        (415, {"content-type": "text/plain"}),
    ],
)
def test_what_the_guards_refuse_is_refused_on_every_route(crewed: Server, status: int, headers: dict[str, str]) -> None:
    asked = documenting(status)
    assert statuses_of_server(crewed, asked, headers=headers, body=b"{}") == {status: asked}
    assert len(asked) > 35


def test_every_route_but_one_needs_a_token(narrow: Server) -> None:
    asked = documenting(401)
    assert statuses_of_server(narrow, asked) == {401: asked}
    assert [one for one in ((method, path) for method, path, _ in ROUTES) if one not in asked] == [("get", "/healthz")]


async def test_every_route_is_refused_while_the_server_stops(served: Served) -> None:
    served.lifetime.stopping.set()
    asked = documenting(503)
    assert await statuses(served.app(), asked) == {503: asked}


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (500, RuntimeError("a defect")),
        (502, ProviderFault("the provider failed", status=500)),
        (503, StoreFailed("the disk is full")),
    ],
)
async def test_what_breaks_below_a_route_is_told_without_its_words(
    served: Served, status: int, error: MusterError | RuntimeError
) -> None:
    app, asked = served.app(cast(Muster, Broken(served.muster, error))), documenting(status)
    assert await statuses(app, asked, headers=JSON, body=b"{}") == {status: asked}
    assert asked


async def test_every_route_but_the_streams_has_a_time_limit() -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.Event().wait()

    app = RequestIds(
        RequestLimits(never, body_bytes=1, body_secs=60, request_secs=0.001, streams=9), log=lambda *_, **__: None
    )
    asked = documenting(504)
    assert await statuses(app, asked) == {504: asked}
    assert {path for _, path in asked} == {path for _, path, _ in ROUTES if "stream" not in path}


async def test_every_route_waits_for_a_body_for_so_long() -> None:
    async def never() -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    app = RequestIds(
        RequestLimits(cast(Any, never), body_bytes=1, body_secs=0.001, request_secs=60, streams=9),
        log=lambda *_, **__: None,
    )
    asked = documenting(408)
    assert await statuses(app, asked, receive=never) == {408: asked}
    assert len(asked) == len(ROUTES)


def test_every_route_that_takes_something_refuses_what_it_cannot_be(crewed: Server) -> None:
    """What is wrong for a run of another kind, where a path is all that is taken, stands in the tests of routes."""
    asked = documenting(400)
    for method, path, operation in ROUTES:
        takes = {one["in"] for one in operation.get("parameters", ())}
        if (method, path) in asked and ("requestBody" in operation or takes - {"path"}):
            names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
            query = "&".join(f"{name}={'x' * 2000}" for name in names)
            headers = {**JSON, "idempotency-key": "x" * 300, "last-event-id": "x"}
            body = b"{" if "requestBody" in operation else b""
            assert ask_server(crewed, method, path, headers=headers, body=body, query=query) == 400, (method, path)


def test_every_route_that_names_something_says_when_it_is_not_there(crewed: Server) -> None:
    for method, path in documenting(404):
        body = json.dumps(BODIES[path]).encode() if method != "get" and path in BODIES else b""
        query = "a=x&b=x&run=x&key=x&case=x&after=1&slot=x"
        found = ask_server(crewed, method, path, headers=JSON, body=body, query=query)
        assert found == 404, (method, path)


def test_every_start_counts_in_the_limit(narrow: Server) -> None:
    admin = narrow.with_token(ADMIN)
    ask_server(admin, "post", "/api/ask", headers=JSON, body=json.dumps(BODIES["/api/ask"]).encode())
    for method, path, operation in ROUTES:  # each of them refuses connections, which tests of the server provoke
        if "202" in operation["responses"]:
            body = json.dumps(BODIES.get(path, {})).encode()
            assert ask_server(admin, method, path, headers=JSON, body=body) == 429, (method, path)
    assert len(documenting(429)) == len(ROUTES)


def test_every_route_has_a_typed_answer() -> None:
    untyped = {path for _, path, operation in ROUTES if not all(map(is_typed, schemas(operation)))}
    assert untyped == OTHER_FORMS - {"/metrics"}
    unknown = {path for _, path, operation in ROUTES if not schemas(operation)}
    assert unknown == {"/metrics"} | {path for _, path, _ in ROUTES if "stream" in path}


def schemas(operation: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the schemas of JSON that a route answers with when all is well."""
    answers = (answer for status, answer in operation["responses"].items() if status.startswith("2"))
    return [content[JSON_TYPE]["schema"] for answer in answers if JSON_TYPE in (content := answer.get("content", {}))]


def is_typed(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema is that of a value, or of a list of values."""
    return "$ref" in schema.get("items", schema)


def test_every_error_is_of_some_route_or_of_all() -> None:
    assert all(documenting(status) for status in ERRORS)
