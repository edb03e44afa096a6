"""Starts: once for each key, within limits, the rest queued in order."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from muster.app.serving.limits import QueueCaps, StartRate
from muster.client import ServiceClient
from muster.domain.errors import LimitReached
from muster.domain.ids import RunId
from muster.domain.run import Lease, Run, RunState, StartRequest
from muster.engine.queue.turns import HeldBack
from muster.testing.clock import FakeClock

from .server import ADMIN, CI, SETTINGS, TOKENS, Answer, Project, Server

ASK = {"agent": "sim/echo", "prompt": "hello"}


def test_a_minute_has_so_many_starts_for_each_client() -> None:
    clock = FakeClock()
    rate = StartRate(clock, 2)
    rate.admit("a")
    clock.advance(10)
    rate.admit("a")
    rate.admit("b")
    with pytest.raises(LimitReached) as caught:
        rate.admit("a")
    assert caught.value.retry_after == 50
    clock.advance(49.9)
    with pytest.raises(LimitReached):
        rate.admit("a")
    clock.advance(0.1)
    rate.admit("a")
    with pytest.raises(LimitReached) as caught:
        rate.admit("a")
    assert caught.value.retry_after == 10


def run_of(client: str | None, workload: str = "ask") -> Run:
    request = None if client is None else StartRequest(client=client)
    return Run(
        id=RunId("x"),
        workload=workload,
        spec={},
        state=RunState.QUEUED,
        created_at=0.0,
        lease=Lease(epoch=0),
        request=request,
    )


SCALE = {"battle": {"agent": "a", "counterpart": "b"}, "runs": 10, "concurrency": 2}


def test_runs_of_one_client_and_battles_have_a_maximum_at_a_time() -> None:
    caps = QueueCaps(per_client=2, battles=3)
    assert caps.held([run_of("a"), run_of("a"), run_of("b"), run_of(None)], None) == HeldBack(clients=frozenset({"a"}))
    battle, scale = run_of("a", "battle"), replace(run_of("b", "scale"), spec=SCALE)
    assert caps.held([battle, scale], None).workloads == {"battle", "scale"}
    assert caps.held([scale], None).workloads == frozenset()
    assert caps.held([], scale).workloads == {"battle", "scale"}
    assert caps.fits(scale, [battle])
    assert not caps.fits(scale, [battle, battle])
    assert not caps.fits(scale, [scale])
    assert caps.fits(run_of("c", "suite"), [scale, battle])
    assert caps.fits(replace(scale, spec=SCALE | {"concurrency": 9}), [])  # more than there may be: alone


def test_forks_and_resumes_are_starts_too(project: Project) -> None:
    project.declare("", SETTINGS.replace("starts_per_minute = 10000", "starts_per_minute = 5"))
    with project.serve() as server:
        asked = server.post("/api/ask", ASK).json["id"]
        server.until(asked, "completed")
        failed = server.post("/api/ask", {**ASK, "agent": "me"}).json["id"]
        server.until(failed, "waiting")
        assert server.post(f"/api/runs/{failed}/cancel").json["state"] == "canceled"
        for path, body in ((f"/api/runs/{asked}/fork", {"from": "ask"}), (f"/api/runs/{failed}/resume", {})):
            first = server.post(path, body, idempotency_key=path)
            again = server.post(path, body, idempotency_key=path)
            assert (first.status, again.status) == (202, 200)
            assert first.json["id"] == again.json["id"] != asked
            assert server.post(path, {**body, "budget_usd": 1}, idempotency_key=path).status == 409
        forks = [server.post(f"/api/runs/{asked}/fork", {"from": "ask"}).status for _ in range(12)]
        assert (forks[0], forks[-2:]) == (202, [429, 429])
        assert [server.post(f"/api/runs/{failed}/resume").status for _ in range(2)] == [429, 429]


def test_too_many_starts_are_refused_with_the_time_to_wait_and_a_known_key_is_not(project: Project) -> None:
    project.declare("", SETTINGS.replace("starts_per_minute = 10000", "starts_per_minute = 2"))
    with project.serve() as server:
        first = server.post("/api/ask", ASK, idempotency_key="a")
        assert server.post("/api/ask", ASK).status == 202
        refused = server.post("/api/ask", ASK)
        assert (refused.status, refused.error["code"]) == (429, "limit")
        assert 1 <= int(refused.headers["retry-after"]) <= 60
        again = server.post("/api/ask", ASK, idempotency_key="a")
        assert (again.status, again.json["id"]) == (200, first.json["id"])
        assert server.post("/api/ask", {**ASK, "prompt": "x"}, idempotency_key="a").status == 409
        assert server.get("/api/runs").status == 200


@pytest.mark.one_server  # workers of a fleet drive them one after the other too, in any order
def test_more_runs_than_a_client_may_have_at_a_time_are_queued_in_order(project: Project) -> None:
    project.declare("", SETTINGS.replace("jobs_per_client = 100", "jobs_per_client = 1"))
    with project.serve() as server:
        runs = [server.post("/api/ask", {"agent": "sim/slow", "prompt": str(n)}).json["id"] for n in range(4)]
        ended = [server.until(run, "completed") for run in runs]
    spans = [(one["started_at"], one["ended_at"]) for one in ended]
    assert spans == sorted(spans)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_the_order_of_keys_in_a_body_does_not_make_it_another(server: Server) -> None:
    first = server.request("POST", "/api/ask", raw=b'{"agent":"sim/echo","prompt":"o"}', headers=keyed("order"))
    second = server.request("POST", "/api/ask", raw=b'{"prompt": "o", "agent": "sim/echo"}', headers=keyed("order"))
    assert (first.status, second.status) == (202, 200)


def keyed(key: str) -> dict[str, str]:
    return {"idempotency-key": key, "content-type": "application/json"}


def test_one_key_on_another_route_is_a_conflict(server: Server) -> None:
    assert server.post("/api/ask", ASK, idempotency_key="route").status == 202
    answer = server.post("/api/chains", {"chain": "greet", "input": {"topic": "x"}}, idempotency_key="route")
    assert (answer.status, answer.error["code"]) == (409, "conflict")


def test_the_id_that_a_client_chooses_is_the_id_of_the_run(server: Server) -> None:
    assert server.ask("x", id="My-run_1") == "My-run_1"
    again = server.post("/api/ask", {**ASK, "prompt": "x", "id": "My-run_1"})
    assert (again.status, again.json["id"]) == (200, "My-run_1")
    assert server.post("/api/ask", {**ASK, "prompt": "y", "id": "My-run_1"}).status == 409
    assert server.post("/api/ask", {**ASK, "id": "../x"}).status == 400
    assert server.post("/api/ask", {**ASK, "id": "last"}).status == 400


def test_a_start_that_is_refused_leaves_its_key_free(server: Server) -> None:
    assert server.post("/api/ask", {"agent": "nobody", "prompt": "x"}, idempotency_key="free").status == 400
    assert server.post("/api/ask", ASK, idempotency_key="free").status == 202


@pytest.mark.parametrize("key", ["", "x" * 201, "a\tb"])
def test_a_key_that_cannot_be_one_is_refused(server: Server, key: str) -> None:
    assert server.post("/api/ask", ASK, idempotency_key=key).status == 400


def together(make: Callable[[int], Answer], number: int = 50) -> list[Answer]:
    with ThreadPoolExecutor(number) as clients:
        return list(clients.map(make, range(number)))


def test_fifty_clients_with_one_key_start_one_run(server: Server) -> None:
    answers = together(lambda n: server.post("/api/ask", ASK, idempotency_key="fifty"))
    assert Counter(answer.status for answer in answers) == {202: 1, 200: 49}
    assert len({answer.json["id"] for answer in answers}) == 1


def test_fifty_clients_with_keys_of_ten_start_ten_runs(server: Server) -> None:
    answers = together(lambda n: server.post("/api/ask", {**ASK, "prompt": str(n % 10)}, idempotency_key=f"k{n % 10}"))
    assert Counter(answer.status for answer in answers) == {202: 10, 200: 40}
    assert len({answer.json["id"] for answer in answers}) == 10


def test_fifty_clients_get_no_more_than_the_limit(project: Project) -> None:
    project.declare(TOKENS, SETTINGS.replace("starts_per_minute = 10000", "starts_per_minute = 5"))
    with project.serve() as server:
        ci = server.with_token(CI)
        answers = together(lambda n: ci.post("/api/ask", ASK, idempotency_key=f"k{n}"))
        assert Counter(answer.status for answer in answers) == {202: 5, 429: 45}
        assert all("retry-after" in answer.headers for answer in answers if answer.status == 429)
        assert len(ci.get("/api/runs").json["runs"]) == 5


BATTLE = {"agentId": "sim/echo", "messageLimit": 1}


def test_a_known_id_is_the_same_request_under_any_key(server: Server) -> None:
    body = {**ASK, "id": "twice"}
    first = server.post("/api/ask", body, idempotency_key="twice-a")
    again = [server.post("/api/ask", body, idempotency_key="twice-b"), server.post("/api/ask", body)]
    assert [first.status, *(one.status for one in again)] == [202, 200, 200]
    assert {one.json["id"] for one in (first, *again)} == {"twice"}
    other = {**body, "prompt": "another"}
    assert server.post("/api/ask", other, idempotency_key="twice-c").status == 409
    assert server.post("/api/ask", {**ASK, "id": "third"}, idempotency_key="twice-a").status == 409


@pytest.mark.parametrize(
    ("path", "first", "second"),
    [
        ("battles/start", {**BATTLE, "id": "same-1"}, {**BATTLE, "jobId": "same-1"}),
        ("battles/start", {**BATTLE, "id": "same-2"}, {**BATTLE, "runId": "same-2", "goal": None}),
        ("ask", {**ASK, "budget_usd": 1}, {**ASK, "budget_usd": 1.0}),
        ("ask", {**ASK, "name": None, "run_tags": []}, ASK),
        ("ask", {**ASK, "dispatch": "live"}, ASK),
        ("battles/start", {"agentId": "sim/echo", "goal": "", "messageLimit": 25}, {"agentId": "sim/echo"}),
    ],
)
def test_a_request_that_is_spelled_otherwise_is_the_same(
    server: Server, path: str, first: dict[str, Any], second: dict[str, Any]
) -> None:
    key = f"spelled-{path}-{sorted(first.items(), key=str)}"[:200]
    one = server.post(f"/api/{path}", first, idempotency_key=key)
    two = server.post(f"/api/{path}", second, idempotency_key=key)
    assert (one.status, two.status, two.json["id"]) == (202, 200, one.json["id"])


def test_names_of_one_id_must_not_differ(server: Server) -> None:
    answer = server.post("/api/battles/start", {**BATTLE, "id": "a", "jobId": "b"})
    assert (answer.status, answer.error["code"]) == (400, "bad_request")
    assert answer.error["fields"] == [
        {"path": "jobId", "code": "conflict", "message": "must be the same as id", "suggestion": None}
    ]


def test_clients_that_choose_one_id_under_many_keys_start_one_run(server: Server) -> None:
    answers = together(lambda n: server.post("/api/ask", {**ASK, "id": "many"}, idempotency_key=f"m{n}"), 20)
    assert Counter(answer.status for answer in answers) == {202: 1, 200: 19}


def test_an_id_of_another_user_is_a_conflict(shared: Server) -> None:
    body = {**ASK, "id": "mine"}
    assert shared.with_token(CI).post("/api/ask", body).status == 202
    assert shared.with_token(ADMIN).post("/api/ask", body).status == 409


async def test_the_client_that_starts_with_an_id_twice_has_one_run(server: Server) -> None:
    async with ServiceClient(server.url) as client:
        first = await client.start("ask", {**ASK, "id": "by-client"})
        again = await client.start("ask", {**ASK, "id": "by-client"})
    assert first.id == again.id == "by-client"
