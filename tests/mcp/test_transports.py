"""`muster mcp` as a process: over standard streams and over HTTP, for several users, killed and started again."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tracemalloc
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.client.streamable_http import streamable_http_client

from mcp import Client
from muster.mcp.transports import MAX_LINE, LineSplitter, LongLine
from tests import forked, forkserver
from tests.api.server import CI, EVE, TOKENS, Project, Server
from tests.mcp.coordinated import AGENTS, PATIENCE, Desk, project_in, stdio

SEEN = {"overview", "list_work", "wait", "result"}  # with the scope `read` alone
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}
GATE = """
[agents.gate]
kind = "program"
mode = "plain"
command = ["sh", "-c", "cat; echo begun > ready; cat go"]
budget_usd = 0.0
"""


@contextmanager
def served(project: Project, *options: str) -> Iterator[Server]:
    """Start `muster mcp --http` and end it with the block."""
    words = ("mcp", "--http", "--json", "--port", "0", *options)
    with forkserver.Forked("muster", words, folder=project.folder, environment=project.environment) as process:
        try:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            yield Server(json.loads(line)["url"], process)
        finally:
            if process.poll() is None:
                process.kill()


@asynccontextmanager
async def connected(server: Server, token: str | None = None) -> AsyncIterator[Desk]:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http,
        Client(streamable_http_client(server.url, http_client=http)) as client,
    ):
        yield Desk(client)


async def review_to_the_end(desk: Desk) -> None:
    """Submit a task, reject it, approve it and read its result."""
    task = await desk.call("submit_task", prompt="Write", review=True)
    assert (await desk.done(task))["state"] == "pending_review"
    await desk.call("review_task", id=task["id"], decision="reject", feedback="Again")
    assert "Again" in (await desk.done(task))["output"]
    await desk.call("review_task", id=task["id"], decision="approve")
    found = await desk.done(task)
    assert (found["state"], found["rejection_count"]) == ("completed", 1)


async def test_over_standard_streams(tmp_path: Path) -> None:
    async with stdio(project_in(tmp_path)) as (desk, process):
        assert "submit_task" in {tool.name for tool in (await desk.client.list_tools()).tools}
        await review_to_the_end(desk)
        chain = await desk.done(await desk.call("run_chain", chain="greet", input={"topic": "bees"}))
        assert chain["steps"][0]["output"] == "Hello bees"
    assert await process.wait() == 0  # the client has left


async def test_over_http(tmp_path: Path) -> None:
    with served(project_in(tmp_path), "--budget", "1") as server:
        async with connected(server) as desk:
            await review_to_the_end(desk)
            assert (await desk.call("overview"))["budget"]["limit_usd"] == 1.0
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE) == 0


async def test_a_run_of_a_server_that_is_killed_goes_on_when_it_is_started_again(tmp_path: Path) -> None:
    project = project_in(tmp_path, GATE)
    for name in ("go", "ready"):
        os.mkfifo(tmp_path / name)
    with served(project) as server:
        async with connected(server) as desk:
            run = await desk.call("ask", agent="gate", prompt="through ")
            assert await read(tmp_path / "ready") == "begun\n"  # it is at work
        server.process.kill()
    with served(project) as server:
        async with connected(server) as desk:
            assert await read(tmp_path / "ready") == "begun\n"
            (tmp_path / "go").write_text("the gate")
            assert (await desk.done(run))["output"] == "through the gate"


async def test_a_run_goes_on_with_the_next_server_when_the_client_leaves(tmp_path: Path) -> None:
    project = project_in(tmp_path, GATE)
    for name in ("go", "ready"):
        os.mkfifo(tmp_path / name)
    async with stdio(project) as (desk, process):
        run = await desk.call("ask", agent="gate", prompt="through ")
        assert await read(tmp_path / "ready") == "begun\n"
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.to_thread((tmp_path / "go").write_text, "the gate")  # calls on the wire are answered first
        assert await process.wait() == 0
    async with stdio(project) as (desk, _):
        assert (await desk.done(run))["output"] == "through the gate"


async def test_calls_are_logged_without_what_they_say(tmp_path: Path) -> None:
    async with stdio(project_in(tmp_path), "--log-format", "json", "--log-file", "log") as (desk, _):
        await desk.call("ask", agent="sim/echo", prompt="of nobody's business")
        await desk.refused("result", id="none")
    text = (tmp_path / "log").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    told = [(line["tool"], line.get("error")) for line in lines if line["event"] == "tool"]
    assert told == [("ask", None), ("result", "not_found")]
    assert "nobody's business" not in text


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ask","arguments":{"prompt":"\\ud83d"}}}', 7),
        (b'{"jsonrpc":"2.0","id":"a","params":{}}', "a"),
        (b"{'not': 'JSON'}", None),
        (b"\xff\xfe", None),
        (b"[" * 3000 + b"]" * 3000, None),
    ],
)
async def test_a_line_that_is_no_message_is_answered_and_the_next_one_too(
    tmp_path: Path, line: bytes, id_: int | str | None
) -> None:
    project = project_in(tmp_path)
    process = await forked.start("muster", "mcp", folder=tmp_path, environment=project.environment, stdin=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for message in (json.dumps(HELLO).encode(), b"", line, b'{"jsonrpc":"2.0","id":8,"method":"ping"}'):
        process.stdin.write(message + b"\n")
    async with asyncio.timeout(PATIENCE):
        answers = [json.loads(await process.stdout.readline()) for _ in range(3)]
    refused = next(one for one in answers if "error" in one)
    assert (refused["id"], refused["error"]["code"]) == (id_, -32700)
    assert {1, 8} <= {one["id"] for one in answers if "result" in one}
    process.stdin.close()
    assert await process.wait() == 0


def told(line: dict[str, Any], *, first: bool) -> bytes:
    """Return a message as clients write it: its id comes first, or last."""
    order = ("jsonrpc", "id", "method", "params") if first else ("method", "params", "jsonrpc", "id")
    return json.dumps({name: line[name] for name in order}).encode() + b"\n"


async def test_a_line_that_is_too_long_is_refused_under_its_id_and_the_next_ones_are_read(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    process = await forked.start("muster", "mcp", folder=tmp_path, environment=project.environment, stdin=PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(HELLO).encode() + b"\n")
    async with asyncio.timeout(PATIENCE):
        await process.stdout.readline()
        for id_, first in ((7, True), ("a", False)):
            arguments = {"agent": "sim/echo", "prompt": "x" * MAX_LINE}
            params = {"name": "ask", "arguments": arguments}
            line = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}
            process.stdin.write(told(line, first=first) + b'{"jsonrpc":"2.0","id":8,"method":"ping"}\n')
            refused, pong = [json.loads(await process.stdout.readline()) for _ in range(2)]
            assert (refused["id"], refused["error"]["code"]) == (id_, -32600)
            assert "a message may have 8,388,608 bytes" in refused["error"]["message"]
            assert (pong["id"], pong["result"]) == (8, {})
    process.stdin.close()
    assert await process.wait() == 0


@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=20), st.integers(1, 50))
def test_lines_are_the_same_however_they_arrive(lines: list[bytes], size: int) -> None:
    splitter, sent = LineSplitter(longest=20), b"".join(line + b"\n" for line in lines)
    chunks = [sent[place : place + size] for place in range(0, len(sent), size)]
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    assert [line if isinstance(line, bytes) else None for line in found] == [
        line if len(line) <= 20 else None for line in lines
    ]


def test_of_a_line_that_never_ends_only_its_ends_are_kept() -> None:
    splitter, chunk = LineSplitter(longest=100_000), b"x" * 65_536
    tracemalloc.start()
    try:
        for _ in range(1_000):
            assert not list(splitter.feed(chunk))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 20_000
    (line,) = splitter.feed(b"end\n")
    assert isinstance(line, LongLine)
    assert line.end.endswith(b"xend")


@pytest.mark.parametrize(
    ("beginning", "end", "id_"),
    [
        (b'{"jsonrpc": "2.0", "id": 3, "method"', b"}}}", 3),
        (b'{"id":"\\u00e9","method":', b"}}", "é"),
        (b'{"method":"x","params":', b'"}},"jsonrpc":"2.0","id":"q-1"}', "q-1"),
        (b'{"method":"x","params":', b'"}},"id":5,"jsonrpc":"2.0"}\r', 5),
        (b'{"method":"x","params":{"id":4,', b'"},"x":{"id":4}}}', None),
        (b'{"method":"x","params":{"text":"', b'\\",\\"id\\":9}"}}', None),
        (b"not JSON", b"at all", None),
    ],
)
def test_the_id_of_a_long_line_is_read_from_its_ends(beginning: bytes, end: bytes, id_: int | str | None) -> None:
    assert LongLine(beginning=beginning, end=end).id == id_


async def test_a_wait_ends_when_its_client_is_gone_and_the_run_goes_on(tmp_path: Path) -> None:
    project = project_in(tmp_path, GATE)
    for name in ("go", "ready"):
        os.mkfifo(tmp_path / name)
    with served(project, "--log-format", "json", "--log-file", "log") as server:
        async with connected(server) as desk, asyncio.timeout(PATIENCE):
            run = await desk.call("ask", agent="gate", prompt="through ")
            assert await read(tmp_path / "ready") == "begun\n"
            await first_progress(server, run["id"])
            while (told := logged(tmp_path / "log", "wait")) is None:
                await desk.call("list_work")
            assert told["error"] == "canceled"
            (tmp_path / "go").write_text("the gate")
            assert (await desk.done(run))["output"] == "through the gate"


def logged(log: Path, tool: str) -> dict[str, Any] | None:
    """Return the log line of a call of a tool, if it is there."""
    lines: list[dict[str, Any]] = [json.loads(line) for line in log.read_text().splitlines()]
    return next((line for line in lines if line.get("tool") == tool), None)


async def first_progress(server: Server, run: str) -> None:
    """Wait for a run as a client that leaves after the first notification."""
    arguments = {"ids": [run], "timeout_secs": 300}
    params = {"name": "wait", "arguments": arguments, "_meta": {"progressToken": "x"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    async with (
        httpx2.AsyncClient(timeout=PATIENCE) as http,
        http.stream("POST", server.url, json=body, headers=accept) as it,
    ):
        async for line in it.aiter_lines():
            if "notifications/progress" in line:
                return


async def test_two_clients_spend_one_budget(tmp_path: Path) -> None:
    with served(project_in(tmp_path, AGENTS), "--budget", "0.35") as server:
        async with connected(server) as one, connected(server) as other:
            asks = [desk.call("ask", agent="paid", prompt="x") for desk in (one, other) for _ in range(5)]
            ids = [run["id"] for run in await asyncio.gather(*asks)]
            runs = await one.all_done(ids)
            assert sorted(run["state"] for run in runs) == ["completed"] * 3 + ["failed"] * 7
            assert (await other.call("overview"))["budget"]["spent_usd"] == 0.3


async def read(fifo: Path) -> str:
    """Read what is written to a pipe, when it is."""
    return await asyncio.to_thread(fifo.read_text)


async def test_users_have_the_tools_of_their_scopes_and_see_their_own_runs(tmp_path: Path) -> None:
    with served(project_in(tmp_path, TOKENS)) as server:
        async with connected(server, EVE) as eve, connected(server, CI) as ci:
            assert {tool.name for tool in (await eve.client.list_tools()).tools} == SEEN
            assert "does not have the scope 'start'" in (await eve.refused("ask", agent="me", prompt="x"))["message"]
            run = await ci.done(await ci.call("ask", agent="sim/echo", prompt="hello"))
            assert run["output"] == "hello"
            assert (await eve.call("list_work"))["runs"] == []
            assert "not found" in (await eve.refused("result", id=run["id"]))["message"]
            assert "scope 'admin'" in (await ci.refused("pool"))["message"]
            assert "scope 'admin'" in (await ci.refused("list_work", kind="batch"))["message"]


def test_requests_pass_the_same_checks_as_those_of_the_http_server(tmp_path: Path) -> None:
    with served(project_in(tmp_path, TOKENS)) as server:
        bare = Server(server.url.removesuffix("/mcp"), server.process)
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        accept = {"accept": "application/json, text/event-stream"}
        assert bare.request("POST", "/mcp", body, headers=accept).status == 401
        told = bare.with_token(EVE)
        assert told.request("POST", "/mcp", body, headers=accept).status == 200
        assert told.request("POST", "/mcp", body, headers=accept | {"host": "evil.example"}).status == 403
        assert told.request("POST", "/mcp", body, headers=accept | {"origin": "http://evil.example"}).status == 403
        assert told.request("POST", "/api/runs", body, headers=accept).error["code"] == "not_found"
        assert told.request("POST", "/mcp", raw=b"x" * 20_000_000, headers=accept).status == 413


def test_another_address_needs_a_token(tmp_path: Path) -> None:
    project = project_in(tmp_path)
    ended = run_command(project, "mcp", "--http", "--host", "0.0.0.0")
    assert (ended.returncode, "no [[tokens]] are declared" in ended.stderr.decode()) == (3, True)


def test_without_the_extra_it_is_said_how_to_install_it(tmp_path: Path) -> None:
    """The project's folder comes first where modules are looked for: this one is as good as not installed."""
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").write_text("raise ModuleNotFoundError('No module named mcp', name='mcp')")
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "muster", "mcp", "--json"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=PATIENCE, check=False)
    told = json.loads(ended.stdout)
    assert (ended.returncode, told["error"]["suggestions"]) == (3, ["pip install 'muster-ai[mcp]'"])
    assert "extra `mcp`" in told["error"]["message"]


def run_command(project: Project, *words: str) -> "subprocess.CompletedProcess[bytes]":
    return forkserver.run("muster", words, folder=project.folder, environment=project.environment, timeout=PATIENCE)


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_ends_it_although_its_input_stays_open(tmp_path: Path, stop: int) -> None:
    async with stdio(project_in(tmp_path)) as (desk, process):
        await desk.call("overview")
        process.send_signal(stop)
        assert await process.wait() == 0


def test_it_ends_as_a_process_of_its_own_although_its_input_stays_open(tmp_path: Path) -> None:
    """What happens when the interpreter ends is the point, so it is the real one; and that nobody reads its output."""
    project = project_in(tmp_path)
    words = [sys.executable, "-m", "muster", "mcp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=tmp_path, env=project.environment, **pipes) as process:  # type: ignore[call-overload]
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "muster"
        process.stdout.close()
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}).encode() + b"\n")
        process.stdin.flush()
        assert (process.wait(PATIENCE), process.stderr.read()) == (0, b"")
