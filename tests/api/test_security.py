"""What the server refuses, over real connections; and that 401 comes before anything else is told."""

import json
import socket
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.forkserver import run as run_module

from .server import ADMIN, CHAIN, CI, EVE, SETTINGS, TOKENS, Project, Server

BROKEN = """import asyncio

import muster


@muster.workload("broken")
async def broken(ctx, spec):
    raise RuntimeError("broken")


async def submit():
    async with muster.open() as m:
        print((await m.submit("broken", {})).id)


if __name__ == "__main__":
    asyncio.run(submit())
"""
ASK = {"agent": "sim/echo", "prompt": "hello"}
ODD_HOSTS = [
    "[::1].evil.example",
    "[::1]evil:1",
    "[::1",
    "localhost:1:2",
    "localhost:x",
    "localhost@evil",
    "local host",
]
POST = b"POST /api/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7420", "127.0.0.1.evil.example", "", *ODD_HOSTS])
def test_a_wrong_host_is_refused(server: Server, host: str) -> None:
    answer = server.get("/healthz", host=host)
    assert (answer.status, answer.error["code"]) == (403, "forbidden")


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "LOCALHOST", "[::1]:9"])
def test_loopback_is_known_by_its_names(server: Server, host: str) -> None:
    assert server.get("/healthz", host=host).status == 200


@pytest.mark.parametrize("line", ["Host: localhost", "Host: evil.example", "Origin: a\r\nOrigin: b"])
def test_a_header_that_decides_stands_once(server: Server, line: str) -> None:
    whole = f"GET /healthz HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\n"
    answer = _raw(server, whole.encode())
    assert answer.startswith(b"HTTP/1.1 400")
    assert b"\r\nconnection: close\r\n" in answer


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost"])
def test_a_foreign_origin_is_refused(server: Server, origin: str) -> None:
    assert server.post("/api/ask", ASK, origin=origin).status == 403
    assert server.get("/api/runs", origin=origin).status == 403


def test_the_servers_own_pages_and_allowed_ones_may_use_it(project: Project) -> None:
    project.declare("", SETTINGS.replace("[serve]", '[serve]\nallowed_origins = ["https://dash.example"]'))
    with project.serve() as server:
        assert server.get("/healthz", origin=server.url).status == 200
        allowed = server.get("/healthz", origin="https://dash.example")
        assert allowed.headers["access-control-allow-origin"] == "https://dash.example"
        asked = {"origin": "https://dash.example", "access-control-request-method": "POST"}
        preflight = server.request("OPTIONS", "/api/ask", headers=asked)
        assert preflight.status == 204
        routes = server.get("/openapi.json").json["paths"].values()
        methods = {name.upper() for route in routes for name in route}
        assert set(preflight.headers["access-control-allow-methods"].split(", ")) == methods
        assert "idempotency-key" in preflight.headers["access-control-allow-headers"]
        assert server.get("/healthz", origin="https://other.example").status == 403


@pytest.mark.parametrize("path", ["/api/runs", "/nothing", "/openapi.json", "/api/runs/x/cancel", "/metrics"])
@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {ADMIN}"}, {"authorization": "Bearer"}],
)
def test_401_comes_before_anything_else_is_told(shared: Server, path: str, headers: dict[str, str]) -> None:
    for method in ("GET", "POST", "TRACE"):
        answer = shared.request(method, path, headers=headers)
        assert (answer.status, answer.error["code"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
    large = shared.request("POST", path, raw=b"x" * 2_000_000, headers={**headers, "content-type": "text/plain"})
    assert large.status == 401


def test_health_needs_no_token_and_tells_nothing(shared: Server) -> None:
    told = shared.get("/healthz").json
    assert told.pop("driven_here", []) == []  # in a fleet: all is left to workers
    assert told == {"status": "ok"}


def test_a_token_without_the_scope_is_refused(shared: Server) -> None:
    eve, ci = shared.with_token(EVE), shared.with_token(CI)
    assert eve.get("/api/runs").status == 200
    refused = eve.post("/api/ask", ASK)
    assert (refused.status, refused.error["code"]) == (403, "forbidden")
    assert "'start'" in refused.error["message"]
    broken = eve.request("POST", "/api/ask", raw=b"{", headers={"content-type": "application/json"})
    assert broken.status == 403  # before anything is said about the body
    assert ci.get("/api/audit").status == 403
    assert ci.get("/api/pool").status == 403
    assert ci.get("/api/batches").status == 403
    assert shared.with_token(ADMIN).get("/api/audit").status == 200


def test_an_oversized_body_is_refused_whether_or_not_it_says_so(server: Server) -> None:
    answer = server.request("POST", "/api/ask", raw=b"x" * 2_000_000, headers={"content-type": "application/json"})
    assert (answer.status, answer.error["code"]) == (413, "body_too_large")
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    assert _raw(server, head + chunk * 20).startswith(b"HTTP/1.1 413")


@pytest.mark.one_server
def test_an_operator_bounds_connections_and_streams_of_an_address(project: Project) -> None:
    project.declare("", SETTINGS.replace("[serve]", "[serve]\nconnections_per_client = 3\nstreams_per_client = 1"))
    with project.serve() as server:
        run = server.post("/api/ask", {"agent": "me", "prompt": "?"}).json["id"]
        with _opened(server, f"/api/stream/{run}") as stream:
            assert stream.recv(12) == b"HTTP/1.1 200"
            refused = server.get(f"/api/stream/{run}")
            assert (refused.status, refused.error["code"], refused.headers["retry-after"]) == (429, "limit", "5")
            with _opened(server, "/healthz") as one, _opened(server, "/healthz") as two:
                assert (one.recv(12), two.recv(12)) == (b"HTTP/1.1 200",) * 2
                assert server.get("/healthz").error["code"] == "limit"


def test_a_slow_body_is_refused(project: Project) -> None:
    project.declare("", SETTINGS.replace("[serve]", "[serve]\nbody_secs = 0.2"))
    with project.serve() as server:
        assert _raw(server, POST + b"Content-Length: 100\r\n\r\n{").startswith(b"HTTP/1.1 408")
        assert server.get("/healthz").status == 200


@pytest.mark.parametrize("line", [b"X-A: " + b"a" * 40_000 + b"\r\n", b"X-A: b\r\n" * 8_000])
def test_a_header_bomb_is_refused(server: Server, line: bytes) -> None:
    whole = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + line + b"\r\n"
    assert _raw(server, whole).startswith(b"HTTP/1.1 431")
    assert server.get("/healthz").status == 200


def test_headers_without_an_end_are_refused(server: Server) -> None:
    answer = _raw(server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * 1_000_000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431")  # a connection that is cut may lose the answer
    assert server.get("/healthz").status == 200


def test_a_large_body_is_not_taken_for_headers(server: Server) -> None:
    connection = HTTPConnection(*server.address, timeout=30)
    for _ in range(3):
        body = json.dumps({"agent": "sim/echo", "prompt": "x" * 90_000})
        connection.request("POST", "/api/ask", body, {"content-type": "application/json"})
        response = connection.getresponse()
        assert (response.status, json.loads(response.read())["workload"]) == (202, "ask")
    connection.close()


def test_what_is_not_http_is_refused_in_the_form_of_all_errors(server: Server) -> None:
    head, _, body = _raw(server, b"NOT HTTP AT ALL\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400")
    assert json.loads(body)["error"]["code"] == "bad_request"


@pytest.mark.parametrize(
    "agent", ["../../bin/sh", "/bin/sh", "http://evil.example", "openai/gpt-5", "sim/other", "x y"]
)
def test_an_agent_that_was_not_declared_is_refused(server: Server, agent: str) -> None:
    answer = server.post("/api/ask", {"agent": agent, "prompt": "hello"})
    assert (answer.status, answer.error["code"]) == (400, "bad_argument")
    suite = server.post("/api/suites/start", {"suites": ["smoke"], "agents": [agent]})
    assert suite.status == 400
    assert server.post("/api/councils", {"question": "?", "agents": [agent, "sim/echo"]}).status == 400


@pytest.mark.parametrize("name", ["../muster.toml", "/etc/passwd", "library/smoke.yaml", "smoke.yaml", "./smoke"])
def test_a_path_is_not_a_name_of_the_library(server: Server, name: str) -> None:
    assert server.post("/api/suites/start", {"suites": [name], "agents": ["sim/echo"]}).status == 400
    judged = {"suites": ["smoke"], "agents": ["sim/echo"], "judge": f"council:{name}", "evaluator": "all"}
    assert server.post("/api/suites/start", judged).status == 400
    assert server.post("/api/chains", {"chain": name}).status == 400
    assert server.post("/api/councils", {"question": "?", "policy": name}).status == 400


def test_references_to_runs_read_no_files(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_text('{"muster": 1, "run": "x"}\n')
    for path in (f"/api/compare?a={file}&b={file}", f"/api/reviews?run={file}"):
        answer = server.get(path)
        assert answer.status == 404
        assert "file" not in answer.error["message"].replace("a run or a file", "")


@pytest.mark.parametrize(
    "field", [{"cwd": "/"}, {"command": ["sh"]}, {"tools": ["Bash"]}, {"permission_mode": "bypassPermissions"}]
)
def test_rights_and_places_of_tasks_do_not_come_from_requests(server: Server, field: dict[str, object]) -> None:
    answer = server.post("/api/tasks", {"prompt": "hello", "agent": "sim/echo", **field})
    assert (answer.status, answer.error["code"]) == (400, "bad_request")


def test_bodies_must_be_json_and_say_so(server: Server) -> None:
    body = json.dumps(ASK).encode()
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        answer = server.request("POST", "/api/ask", raw=body, headers={"content-type": kind})
        assert (answer.status, answer.error["code"]) == (415, "unsupported_media_type")


def test_errors_hold_no_secret_and_no_place_of_the_machine(project: Project) -> None:
    project.declare(TOKENS)
    with project.serve() as server:
        ci = server.with_token(CI)
        texts = [
            ci.get("/api/runs/nothing").body,
            ci.post("/api/ask", {"agent": CI, "prompt": "x"}).body,
            ci.get(f"/api/runs/{CI}").body,
        ]
        run = ci.ask(f"my token is {CI}")
        ci.until(run, "completed")
        texts.append(ci.get(f"/api/runs/{run}").body)
        texts.append(ci.get(f"/api/runs/{run}/call?key=ask").body)
        assert all(str(project.folder).encode() not in text for text in texts)
        assert CI.encode() not in texts[3] + texts[4]
        assert CI.encode() not in project.stored()


@pytest.mark.parametrize("place", ["id", "idempotency-key"])
def test_a_secret_is_no_id_and_no_key(project: Project, place: str) -> None:
    project.declare(TOKENS)
    with project.serve() as server:
        ci = server.with_token(CI)
        body, headers = (ASK | {"id": CI}, {}) if place == "id" else (ASK, {"idempotency-key": f"x-{CI}"})
        answer = ci.request("POST", "/api/ask", body, headers=headers)
        assert (answer.status, answer.error["code"]) == (400, "bad_argument")
        assert CI.encode() not in answer.body
        assert ci.get("/api/runs").json["runs"] == []
        assert ci.get("/nothing", **{"x-request-id": CI}).headers["x-request-id"] != CI
        assert all(CI.encode() not in ci.get(path).body for path in (f"/{CI}", f"/api/runs/{CI}"))
        assert CI.encode() not in project.stored()


def test_errors_name_files_as_the_operator_does(project: Project) -> None:
    project.declare('[agents.fn]\nkind = "python"\nfunction = "nowhere:answer"\n')
    (project.folder / "library" / "greet.yaml").write_text(CHAIN)
    with project.serve() as server:
        answers = {
            "the project is not in a git repository": server.post("/api/verify", {"files": "changed"}),
            "library/greet/chain.yaml and library/greet.yaml": server.get("/api/library"),
            "muster.toml:": server.post("/api/ask", ASK | {"agent": "fn"}),
        }
        for words, answer in answers.items():
            assert answer.status == 400
            assert words in answer.error["message"]
            assert str(project.folder) not in answer.error["message"]


def test_nothing_of_the_process_that_drives_is_told(project: Project) -> None:
    (project.folder / "broken.py").write_text(BROKEN)
    project.declare('[workloads]\nimport = ["broken"]\n')
    submitted = run_module("broken", (), folder=project.folder, environment=project.environment, timeout=60)
    assert submitted.returncode == 0, submitted.stderr
    run = submitted.stdout.decode().strip()
    with project.serve() as server:
        told = server.until(run, "failed")
        assert told["error"] == {"code": "workload_error", "message": "the workload raised RuntimeError('broken')"}
        for path in (f"/api/runs/{run}", "/api/runs", f"/api/runs/{run}/events", f"/api/stream/{run}"):
            body = server.get(path).body
            assert b"workload_error" in body
            assert all(word not in body for word in (b"Traceback", b"traceback", b"broken.py", b"driver", b"process"))


def test_the_client_behind_a_trusted_proxy_is_counted_and_one_behind_another_is_not(project: Project) -> None:
    limited = SETTINGS.replace("starts_per_minute = 10000", "starts_per_minute = 1")
    project.declare("", limited.replace("[serve]", '[serve]\ntrusted_proxies = ["127.0.0.1"]'))
    with project.serve() as server:
        for client in ("203.0.113.1", "203.0.113.2", "198.51.100.9, 203.0.113.3"):
            assert server.post("/api/ask", ASK, x_forwarded_for=client).status == 202
        assert server.post("/api/ask", ASK, x_forwarded_for="203.0.113.3").status == 429
        spoofed = server.post("/api/ask", ASK, x_forwarded_for="192.0.2.7, 203.0.113.1")
        assert spoofed.status == 429
    project.declare("", limited)
    with project.serve() as server:
        assert server.post("/api/ask", ASK, x_forwarded_for="203.0.113.1").status == 202
        assert server.post("/api/ask", ASK, x_forwarded_for="203.0.113.2").status == 429


def _opened(server: Server, path: str) -> socket.socket:
    """Ask for something on a connection that stays open."""
    connection = socket.create_connection(server.address, timeout=30)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return connection


def _raw(server: Server, data: bytes) -> bytes:
    """Send bytes and return what comes back until the server closes, or has answered."""
    with socket.create_connection(server.address, timeout=30) as connection:
        end = time.monotonic() + 30
        with suppress(BrokenPipeError, ConnectionResetError):  # it was refused before all of it was sent
            connection.sendall(data)
        answer = b""
        while b"\r\n\r\n" not in answer and time.monotonic() < end:
            try:
                piece = connection.recv(65_536)
            except ConnectionResetError:
                break
            if not piece:
                break
            answer += piece
        return answer


@pytest.mark.parametrize("path", ["/healthz", "/api/runs", "/api/runs/nothing", "/openapi.json", "/metrics", "/", "/x"])
def test_head_is_answered_like_get_without_its_body(server: Server, path: str) -> None:
    asked, whole = server.request("HEAD", path), server.get(path)
    assert (asked.status, asked.body) == (whole.status, b"")
    kinds = ("content-type", "cache-control", "x-content-type-options", "etag")
    assert [asked.headers.get(name) for name in kinds] == [whole.headers.get(name) for name in kinds]


def test_head_of_a_stream_ends_at_once(server: Server) -> None:
    run = server.post("/api/ask", {"agent": "me", "prompt": "?"}).json["id"]
    answer = server.request("HEAD", f"/api/stream/{run}")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    server.post(f"/api/runs/{run}/cancel")


def test_head_where_nothing_can_be_read_is_refused_with_the_methods_that_there_are(server: Server) -> None:
    assert server.request("HEAD", "/api/ask").headers["allow"] == "POST"
    assert server.request("DELETE", "/api/runs").headers["allow"] == "GET, HEAD"


def test_no_answer_of_the_api_is_stored_or_taken_for_another_kind(shared: Server) -> None:
    root = shared.with_token(ADMIN)
    answers = [
        root.get("/api/runs"),
        root.get("/healthz"),
        root.get("/nothing"),
        root.post("/api/ask", {"agent": "unknown", "prompt": "x"}),
        root.post("/api/ask", ASK),
        shared.get("/api/runs"),
        root.request("GET", "/api/runs", headers={"origin": "https://evil.example"}),
    ]
    assert [answer.status for answer in answers] == [200, 200, 404, 400, 202, 401, 403]
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-content-type-options"] == "nosniff"
