"""Battles and scale tests over HTTP: the fields, the caps, the aliases."""

import pytest

from .server import Server

BATTLE = {"agentId": "sim/echo", "counterpart": "sim/echo", "messageLimit": 2, "userMessage": "hello"}
GOAL = {"goal": "say hello", "validators": [{"kind": "contains", "text": "hello"}]}


def test_a_battle_is_started_polled_and_ends(server: Server) -> None:
    started = server.post("/api/battles/start", {**BATTLE, "id": "battle-1"})
    assert started.status == 202
    assert set(started.json) == {"id", "jobId", "conversationId", "state"}
    assert {started.json[name] for name in ("id", "jobId", "conversationId")} == {"battle-1"}
    server.until("battle-1", "completed")
    status = server.get("/api/battles/battle-1/status").json
    names = {"state", "progress", "turn", "messageCount", "conversationId", "endedReason", "lastSeq", "lastActivityAt"}
    assert names | {"usage", "costUsd"} <= set(status)
    assert (status["state"], status["endedReason"], status["turn"]) == ("completed", "limit", 2)
    first = server.get("/api/battles/battle-1/messages?limit=1").json
    assert set(first["messages"][0]) >= {"seq", "role", "content", "tokensIn", "tokensOut", "costUsd", "createdAt"}
    rest = server.get(f"/api/battles/battle-1/messages?sinceSeq={first['nextSeq']}").json
    assert [one["seq"] for one in rest["messages"]] == list(range(2, status["lastSeq"] + 1))
    assert server.get("/api/battles/battle-1/messages?page=2&limit=1").json["messages"] == rest["messages"][:1]
    assert server.get("/api/battles/battle-1/messages?limit=501").status == 400
    assert server.get("/api/battles/battle-1/decisions").json == []
    assert server.get("/api/battles/nothing/status").status == 404


@pytest.mark.parametrize("name", ["id", "jobId", "runId"])
def test_a_known_id_is_the_same_battle(server: Server, name: str) -> None:
    body = {**BATTLE, name: f"known-{name}"}
    assert server.post("/api/battles/start", body).status == 202
    again = server.post("/api/battles/start", body)
    assert (again.status, again.json["id"]) == (200, f"known-{name}")
    assert server.post("/api/battles/start", {**body, "userMessage": "other"}).status == 409


def test_a_validator_ends_a_battle_with_its_goal(server: Server) -> None:
    run = server.post("/api/battles/start", {**BATTLE, **GOAL}).json["id"]
    server.until(run, "completed")
    assert server.get(f"/api/battles/{run}/status").json["endedReason"] == "goal"
    (decision,) = server.get(f"/api/battles/{run}/decisions").json
    names = {"turn", "stage", "verdict", "confidence", "criteriaApplied", "model", "latencyMs", "createdAt"}
    assert names <= set(decision)
    assert (decision["stage"], decision["verdict"]) == ("validator", "yes")


@pytest.mark.parametrize(
    "wrong",
    [
        {"messageLimit": 26},
        {"messageLimit": 0},
        {"agentId": "/bin/sh"},
        {"provider": "openai", "model": "gpt-5"},
        {"counterpart": "openai/gpt-5"},
        {"judge": "nobody"},
        {"validators": [{"kind": "program", "agent": "/bin/true"}]},
        {"validators": [{"kind": "regex", "pattern": "("}]},
        {"goal": "nobody judges this"},
        {"message_limit": 2},
        {"id": "../x"},
    ],
)
def test_what_a_battle_may_not_be(server: Server, wrong: dict[str, object]) -> None:
    assert server.post("/api/battles/start", {**BATTLE, **wrong}).status == 400


def test_a_battle_with_a_person_is_canceled(server: Server) -> None:
    run = server.post("/api/battles/start", {**BATTLE, "counterpart": "me"}).json["id"]
    server.until(run, "waiting")
    assert server.post(f"/api/battles/{run}/cancel").json == {"acknowledged": True}
    server.until(run, "canceled")
    assert server.post(f"/api/battles/{run}/cancel").json == {"acknowledged": True}  # for a client that asks again
    assert server.get(f"/api/battles/{run}/status").json["endedReason"] == "manual"


def test_a_scale_test_is_started_polled_and_reported(server: Server) -> None:
    body = {**BATTLE, **GOAL, "runCount": 3, "concurrency": 2, "reviser": None}
    started = server.post("/api/scale/start", {**body, "id": "scale-1"})
    assert (started.status, started.json["runId"]) == (202, "scale-1")
    server.until("scale-1", "completed")
    status = server.get("/api/scale/scale-1/status").json
    assert {"state", "progress", "completed", "total", "counts", "conversationIds"} <= set(status)
    assert (status["completed"], status["total"], status["counts"]["goal"]) == (3, 3, 3)
    report = server.get("/api/scale/scale-1/report").json
    names = {"counts", "intervals", "turns", "latencyMs", "usage", "costUsd", "conversationIds", "samples", "summary"}
    assert names | {"revisedPrompt", "rationale"} <= set(report)
    assert server.post("/api/scale/start", {**body, "runCount": 11}).status == 400
    assert server.post("/api/scale/start", {**body, "concurrency": 4}).status == 400
    for run in status["conversationIds"]:
        assert server.get(f"/api/battles/{run}/messages").status == 200


def test_a_scale_test_without_a_goal_is_played_to_its_limit(server: Server) -> None:
    run = server.post("/api/scale/start", {**BATTLE, "runCount": 2}).json["id"]
    server.until(run, "completed")
    assert server.get(f"/api/scale/{run}/status").json["counts"]["limit"] == 2


def test_the_report_of_a_scale_test_is_there_at_its_end(server: Server) -> None:
    run = server.post("/api/scale/start", {**BATTLE, "counterpart": "me", "runCount": 2}).json["runId"]
    server.until(run, "waiting")
    assert server.get(f"/api/scale/{run}/report").status == 409
    assert server.post(f"/api/scale/{run}/cancel").json == {"acknowledged": True}
    server.until(run, "canceled")
    assert server.get(f"/api/scale/{run}/report").status == 200


def test_what_is_wrong_with_an_order_is_told_by_the_names_of_requests(server: Server) -> None:
    missing = server.post("/api/scale/start", {"agentIds": []})
    assert (missing.status, missing.error["message"]) == (400, "agentIds is missing")
    assert [field["suggestion"] for field in missing.error["fields"]] == ["name an agent under test"]
    twice = {"agentId": "sim/echo", "prompts": [{"name": "a", "text": "Be brief."}], "systemPrompt": "Be long."}
    refused = server.post("/api/scale/start", twice)
    assert refused.error["message"].startswith("prompts and systemPrompt cannot be used together")
