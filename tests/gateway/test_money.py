"""Budgets of the gateway: what is refused, in which shape, and that no number of clients passes a cap."""

import json
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.api.server import TOKENS, Server

from .conftest import PricedRehearsal, project_with

ASKED = {"model": "claude-haiku-5-5", "max_tokens": 1000, "messages": [{"role": "user", "content": "hello there"}]}
CAPS = """
[gateway]
runs = { nightly = 0.02 }
other_usd = 0.01
"""
GATEWAY_TOKEN = "gateway-secret-0123456789"


@pytest.fixture
def rehearsal() -> Iterator[PricedRehearsal]:
    with PricedRehearsal() as process:
        yield process


def ask(server: Server, run: str = "nightly", **more: Any) -> Any:
    body = json.dumps({**ASKED, **more}).encode()
    return server.request("POST", f"/run/{run}/anthropic/v1/messages", raw=body)


def micro(server: Server, run: str) -> tuple[int, int]:
    """Return what the runs of a name cost, and what of it is uncertain."""
    runs = [one for one in server.get("/api/runs?limit=500").json["runs"] if one["name"] == run]
    cost, uncertain = (sum(one[field] for one in runs) for field in ("cost_usd", "uncertain_usd"))
    return round(1e6 * cost), round(1e6 * uncertain)


def test_two_hundred_clients_under_one_cap_never_pass_it(rehearsal: PricedRehearsal, tmp_path: Path) -> None:
    with project_with(tmp_path, rehearsal, CAPS).serve() as server, ThreadPoolExecutor(200) as clients:
        server.get("/api/runs")  # what checks answers is made here, and not by two hundred threads at once
        texts = [[{"role": "user", "content": f"{number} " * 400}] for number in range(200)]
        answers = list(clients.map(lambda text: ask(server, messages=text), texts))
        paid = rehearsal.audit()
        statuses = {answer.status for answer in answers}
        assert statuses == {200, 402}
        assert sum(answer.status == 200 for answer in answers) == paid.calls
        assert (paid.cost, 0) == micro(server, "nightly")
        assert paid.cost <= 20_000
        refused = next(answer for answer in answers if answer.status == 402)
        assert refused.headers["x-should-retry"] == "false"
        assert refused.json["error"]["type"] == "billing_error"
        assert "$0.02" in refused.json["error"]["message"]
        # The cap is that of the name: a server that is started again does not start it anew.
        again = ask(server, max_tokens=100_000)
        assert again.status == 402


def test_a_cap_outlives_the_server_and_names_that_nobody_declared_share_one(
    rehearsal: PricedRehearsal, tmp_path: Path
) -> None:
    project = project_with(tmp_path, rehearsal, CAPS)
    with project.serve() as server:
        assert ask(server, "one", max_tokens=15_000).status == 200
        assert server.stop() == 0
    long = [{"role": "user", "content": "word " * 20_000}]
    with project.serve() as server:
        assert ask(server, "two", max_tokens=20_000).status == 402  # 0.01 for all of them
        assert ask(server, "two", max_tokens=100).status == 200
        refused = ask(server, "three", max_tokens=10, messages=long)
        assert refused.status == 402
        assert "not declared" in refused.json["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("anthropic/v1/messages", {**ASKED, "model": "claude-nobody-9"}, 402, "no price is known"),
        ("openai/v1/chat/completions", {"model": "gpt-nobody", "messages": []}, 402, "max_output"),
        ("anthropic/v1/messages/batches", {"requests": []}, 404, "does not pass"),
        (
            "anthropic/v1/messages",
            {**ASKED, "tools": [{"type": "web_search_20250305", "name": "s"}]},
            400,
            "web_search",
        ),
        ("openai/v1/responses", {"model": "gpt-5-mini", "input": "x", "background": True}, 400, "background"),
        ("openai/v1/responses", {"model": "gpt-5-mini", "input": "x", "service_tier": "gold"}, 402, "gold"),
        ("openai/v1/files", {}, 404, "does not pass"),
    ],
)
def test_what_has_no_bound_is_refused_in_the_shape_of_the_provider(
    gateway: Server, path: str, body: Any, status: int, words: str
) -> None:
    answer = gateway.request("POST", f"/{path}", raw=json.dumps(body).encode())
    assert (answer.status, answer.headers["x-should-retry"]) == (status, "false")
    error = answer.json["error"]
    assert words in error["message"]
    assert error["message"].startswith("Muster: ")
    assert ("request_id" in answer.json) == path.startswith("anthropic")
    assert ("code" in error) == path.startswith("openai")


def test_a_token_of_the_gateway_opens_nothing_else_and_no_key_is_told(
    rehearsal: PricedRehearsal, tmp_path: Path
) -> None:
    project = project_with(tmp_path, rehearsal)
    project.declare('[[tokens]]\nname="crew"\nsecret_env="TOKEN_CREW"\nscopes=["gateway"]\n' + TOKENS, "")
    project.variables["TOKEN_CREW"] = GATEWAY_TOKEN
    body = json.dumps(ASKED).encode()
    with project.serve() as server:
        without = server.request("POST", "/anthropic/v1/messages", raw=body)
        assert (without.status, without.json["error"]["type"]) == (401, "authentication_error")
        for headers in ({"x-api-key": GATEWAY_TOKEN}, {"authorization": f"Bearer {GATEWAY_TOKEN}"}):
            assert server.request("POST", "/anthropic/v1/messages", raw=body, headers=headers).status == 200
        crew = server.with_token(GATEWAY_TOKEN)
        assert {crew.get(path).status for path in ("/api/runs", "/api/costs", "/metrics")} == {403}
        assert crew.post("/api/ask", {"agent": "sim/echo", "prompt": "x"}).status == 403
        reader = server.with_token("eve-secret-0123456789ab")
        assert reader.request("POST", "/anthropic/v1/messages", raw=body).status == 403
        assert not server.with_token("ci-secret-0123456789abc").get("/api/runs").json["runs"]  # those of another user
    stored = project.stored()
    assert GATEWAY_TOKEN.encode() not in stored
    assert project.variables["ANTHROPIC_API_KEY"].encode() not in stored


@pytest.mark.parametrize("moment", range(3))
def test_a_gateway_that_is_killed_owes_no_more_than_it_wrote_down(
    rehearsal: PricedRehearsal, tmp_path: Path, moment: int
) -> None:
    project, seen = project_with(tmp_path, rehearsal, "[gateway]\nother_usd = 5.0\n"), list[bytes]()
    lock = threading.Lock()
    reached = threading.Event()

    def client(server: Server, number: int) -> None:
        for turn in range(20):
            text = f"client {number} turn {turn} " * 20
            try:
                answer = ask(server, "crew", stream=bool(turn % 2), messages=[{"role": "user", "content": text}])
            except (OSError, HTTPException):
                return
            if answer.status == 200 and (not turn % 2 or b"message_stop" in answer.body):
                with lock:
                    seen.append(text.encode())
                if len(seen) >= 10 + 15 * moment:
                    reached.set()

    with project.serve() as server, ThreadPoolExecutor(8) as clients:
        working = [clients.submit(client, server, number) for number in range(8)]
        reached.wait(60)
        os.kill(server.process.pid, signal.SIGKILL)
        for one in working:
            one.result()
    paid = rehearsal.audit()
    with project.serve() as server:
        server.until(_newest(server), "interrupted", "failed")
        cost, uncertain = micro(server, "crew")
        run = server.get(f"/api/runs/{_newest(server)}").json
    assert paid.cost <= cost
    assert cost - uncertain <= paid.cost
    assert run["calls"]["done"] >= len(seen)  # whoever saw the last event finds the exchange in the journal


def _newest(server: Server) -> str:
    found: str = server.get("/api/runs").json["runs"][0]["id"]
    return found
