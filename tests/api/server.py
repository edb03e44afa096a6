"""The real server as a process on loopback, and a plain client of it."""

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from itertools import cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.forkserver import Forked

from . import contract
from .fleet import FleetStore

PATIENCE = 60.0
LOOK_SECONDS = 0.05
ADMIN, CI, EVE = "admin-secret-0123456789", "ci-secret-0123456789abc", "eve-secret-0123456789ab"

SETTINGS = """
[serve]
models = ["sim/echo", "sim/slow"]
jobs_per_client = 100
starts_per_minute = 10000

[library]
paths = ["library"]

[agents.me]
kind = "human"
"""
TOKENS = """
[[tokens]]
name = "root"
secret_env = "TOKEN_ROOT"
scopes = ["admin"]
[[tokens]]
name = "ci"
secret_env = "TOKEN_CI"
scopes = ["read", "start", "review"]
day_usd = 1.00
[[tokens]]
name = "eve"
secret_env = "TOKEN_EVE"
scopes = ["read"]
"""
SECRETS = {"TOKEN_ROOT": ADMIN, "TOKEN_CI": CI, "TOKEN_EVE": EVE}
CHAIN = """
name: greet
agent: sim/echo
inputs: { topic: { required: true } }
steps:
  - name: hello
    prompt: "Hello {input.topic}"
"""
COUNCIL = """
agents:
  - { agent: me }
  - { agent: sim/echo }
"""
PAIR = """
agents: [{ agent: sim/echo }, { agent: sim/slow }]
rounds: 1
"""
SUITE = """
schema_version: 1
skill_or_agent: greeter
cases:
  - id: greeter/hello
    input:
      messages: [{ role: user, content: "hello" }]
    expected:
      output: [{ kind: contains, value: "hello" }]
"""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """Return the error, which has the one form that there is."""
        found = self.json
        assert set(found) == {"error"}
        assert set(found["error"]) - {"fields"} == {"code", "message", "request_id"}
        assert found["error"]["request_id"] == self.headers["x-request-id"]
        error: dict[str, Any] = found["error"]
        return error


@dataclass
class Project:
    """A folder with settings and a library."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    fleet: FleetStore | None = None  # None: its store is a file, and one process serves it

    def __post_init__(self) -> None:
        if self.fleet is not None:
            self.variables |= self.fleet.variables
        library = self.folder / "library"
        (library / "greet").mkdir(parents=True, exist_ok=True)
        (library / "greet" / "chain.yaml").write_text(CHAIN)
        for name, text in (("panel", COUNCIL), ("pair", PAIR)):
            (library / name).mkdir(exist_ok=True)
            (library / name / "council.yaml").write_text(text)
        (library / "smoke.yaml").write_text(SUITE)
        self.declare("")

    def declare(self, more: str, settings: str = SETTINGS) -> None:
        (self.folder / "muster.toml").write_text(settings + more)
        if "[[tokens]]" in more:
            self.variables |= SECRETS

    @property
    def environment(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(self.folder), **self.variables}

    def stored(self) -> bytes:
        """Return all that is stored, to look for what must not be there."""
        if self.fleet is not None:
            return self.fleet.stored()
        return b"".join(file.read_bytes() for file in (self.folder / ".muster").iterdir() if file.is_file())

    def command(self, *arguments: str) -> Forked:
        return Forked("muster", arguments, folder=self.folder, environment=self.environment)

    @contextmanager
    def serve(self, *arguments: str) -> "Iterator[Server]":
        """Start the server, or those of a fleet with their workers, and end them with the block."""
        if self.fleet is None:
            with self.serve_one(*arguments) as server:
                yield server
            return
        with ExitStack() as stack:
            servers = [stack.enter_context(self.serve_one(*arguments)) for _ in range(self.fleet.servers)]
            for _ in range(self.fleet.workers):
                stack.enter_context(self._working())
            for server in servers:
                server.until_idle_beside_workers()
            yield Server(servers[0].url, servers[0].process, turns=cycle(server.url for server in servers))

    @contextmanager
    def _working(self) -> "Iterator[None]":
        with Forked(
            "muster", ("worker", "--quiet"), folder=self.folder, environment=self.environment, shows_errors=True
        ) as process:
            try:
                yield
            finally:
                process.kill()

    @contextmanager
    def serve_one(self, *arguments: str) -> "Iterator[Server]":
        """Start one server and end it with the block."""
        words = ("serve", "--port", "0", "--json", *arguments)
        with Forked("muster", words, folder=self.folder, environment=self.environment) as process:
            try:
                line = process.stdout.readline()
                assert line, process.stderr.read()
                yield Server(json.loads(line)["url"], process)
            except BaseException as error:
                if process.poll() is not None:
                    error.add_note(f"the server ended with {process.poll()}: {process.stderr.read()}")
                raise
            finally:
                if process.poll() is None:
                    process.kill()


@dataclass
class Server:
    url: str
    process: Forked
    token: str | None = None
    turns: Iterator[str] | None = None  # addresses of all servers of a fleet, again and again

    @property
    def address(self) -> tuple[str, int]:
        parts = urlsplit(self.url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def with_token(self, token: str) -> "Server":
        return Server(self.url, self.process, token, self.turns)

    def until_idle_beside_workers(self) -> None:
        """Wait until it leaves all runs to workers."""
        end = time.monotonic() + PATIENCE
        while self.get("/healthz").json["driven_here"]:
            assert time.monotonic() < end, "the server does not see the workers"
            time.sleep(LOOK_SECONDS)

    def request(
        self, method: str, path: str, body: Any = None, *, headers: Mapping[str, str] | None = None, raw: bytes = b""
    ) -> Answer:
        """Make one request on a connection of its own."""
        sent: dict[str, str] = {}
        if body is not None:
            raw, sent["content-type"] = json.dumps(body).encode(), "application/json"
        if self.token is not None:
            sent["authorization"] = f"Bearer {self.token}"
        if self.turns is not None:
            self.url = next(self.turns)
        connection = HTTPConnection(*self.address, timeout=PATIENCE)
        try:
            connection.request(method, path, raw or None, {**sent, **(headers or {})})
            response = connection.getresponse()
            names = {name.lower(): value for name, value in response.getheaders()}
            answer = Answer(response.status, names, response.read())
            contract.check(method, path, answer.status, names.get("content-type", ""), answer.body)
            return answer
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, headers=headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        spelled = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", path, body, headers=spelled)

    def ask(self, prompt: str = "hello", **more: Any) -> str:
        """Start a question and return the id of its run."""
        answer = self.post("/api/ask", {"agent": "sim/echo", "prompt": prompt, **more})
        assert answer.status == 202, answer.body
        found: str = answer.json["id"]
        return found

    def until(self, run: str, *states: str) -> dict[str, Any]:
        """Wait until a run is in one of some states."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found: dict[str, Any] = self.get(f"/api/runs/{run}").json
            if found["state"] in states:
                return found
            time.sleep(LOOK_SECONDS)
        raise AssertionError(f"run {run} is still {found['state']}")

    def until_asked(self, run: str, *, other_than: str = "") -> dict[str, Any]:
        """Wait until a run asks a person something, under another key than before."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            found: list[dict[str, Any]] = self.get(f"/api/runs/{run}/questions").json["questions"]
            if found and found[0]["key"] != other_than:
                return found[0]
            time.sleep(LOOK_SECONDS)
        raise AssertionError(f"run {run} asks nobody")

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)
