"""One mapping of the error tree to statuses, and bodies of one form."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from muster.api.errors import status_of
from muster.domain import errors
from muster.domain.errors import MusterError

from .server import Server

# Where a class has no row, the nearest class above it in the tree counts.
STATUSES = {
    errors.MusterError: 500,
    errors.TryLater: 502,
    errors.OutOfTime: 504,
    errors.CallFailed: 502,
    errors.TimedOut: 504,
    errors.StopRun: 500,
    errors.AuthRefused: 502,
    errors.BudgetExhausted: 409,
    errors.RunTimedOut: 504,
    errors.Interrupted: 503,
    errors.StoreFailed: 503,
    errors.FixSpec: 400,
    errors.RunFailed: 409,
    errors.Conflict: 409,
    errors.KeyTaken: 409,
    errors.NotFound: 404,
    errors.AccessDenied: 403,
    errors.LimitReached: 429,
}


def tree(root: type[MusterError]) -> Iterator[type[MusterError]]:
    yield root
    for kind in root.__subclasses__():
        if kind.__module__ == errors.__name__:
            yield from tree(kind)


KINDS: list[type[MusterError]] = sorted(set(tree(MusterError)), key=lambda one: one.__name__)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_every_error_has_its_status(kind: type[MusterError]) -> None:
    expected = next(STATUSES[above] for above in kind.__mro__ if above in STATUSES)
    assert status_of(kind.__new__(kind)) == expected


def test_a_request_that_is_not_valid_is_400_with_its_place(server: Server) -> None:
    answer = server.post("/api/ask", {"agent": "sim/echo", "prompt": 3, "extra": True})
    assert answer.status == 400
    assert "body prompt: must be a string" in answer.error["message"]
    assert "body extra: is unknown" in answer.error["message"]
    assert answer.error["fields"] == [
        {"path": "prompt", "code": "invalid", "message": "must be a string", "suggestion": None},
        {
            "path": "extra",
            "code": "unknown",
            "message": "is unknown",
            "suggestion": answer.error["fields"][1]["suggestion"],
        },
    ]
    assert answer.error["fields"][1]["suggestion"].startswith("known: ")
    assert server.request("POST", "/api/ask", raw=b"{", headers={"content-type": "application/json"}).status == 400
    assert server.get("/api/runs?limit=0").status == 400
    assert server.get("/api/runs?limit=100000").status == 400
    assert server.get("/api/runs?state=nowhere").status == 400


def test_every_flaw_of_an_order_has_its_field_by_its_name_in_requests(server: Server) -> None:
    body = {"agentId": "sim/echo", "messageLimit": 99, "goals": [{"goal": "a", "userMessage": 3}], "runCont": 3}
    fields = server.post("/api/scale/start", body).error["fields"]
    assert [(one["path"], one["code"]) for one in fields] == [
        ("messageLimit", "out_of_bounds"),
        ("goals[0].userMessage", "invalid"),
        ("runCont", "unknown"),
    ]
    assert fields[2]["suggestion"] == "did you mean runCount?"


def test_what_is_found_further_in_has_the_names_of_requests_too(server: Server) -> None:
    body = {"agentId": "sim/echo", "minGoalRate": 0.5, "runCount": 9}
    error = server.post("/api/scale/start", body).error
    assert {"path": "minGoalRate", "code": "invalid"}.items() <= error["fields"][0].items()
    assert "not a valid spec of a scale test: minGoalRate needs a judge" in error["message"]
    error = server.post("/api/scale/start", {"agentId": "sim/echo", "runCount": 99}).error
    assert [(one["path"], one["message"]) for one in error["fields"]] == [("runCount", "must be at most 10")]
    both = {"agentId": "sim/echo", "goal": "a", "judge": "sim/echo", "goals": [{"goal": "b"}]}
    error = server.post("/api/scale/start", both).error
    assert [(one["path"], one["code"]) for one in error["fields"]] == [("goals", "conflict"), ("goal", "conflict")]


@pytest.mark.parametrize(
    ("path", "body", "fields"),
    [
        (
            "/api/chains",
            {"chain": "greet", "input": {"tpic": "bees", "color": "red"}},
            [("input.tpic", "unknown"), ("input.color", "unknown")],
        ),
        ("/api/ask", {"agent": "sim/echo", "prompt": " "}, [("prompt", "out_of_bounds")]),
        (
            "/api/verify",
            {"agents": ["nobody", "none"], "waves": [77]},
            [("agents[0]", "unknown"), ("agents[1]", "unknown"), ("waves[0]", "unknown")],
        ),
        ("/api/verify", {"files": "staged", "ref": "main"}, [("ref", "invalid")]),
        ("/api/ask", {"agent": "sim/ehco", "prompt": "x"}, [("agent", "unknown")]),
        (
            "/api/suites/start",
            {"suites": ["smoke"], "agents": ["no", "sim/echo"], "judge": "none"},
            [("agents[0]", "unknown"), ("judge", "unknown")],
        ),
        ("/api/suites/start", {"suites": ["no", "none"]}, [("suites[0]", "unknown"), ("suites[1]", "unknown")]),
        ("/api/suites/start", {"suites": ["smoke"], "judge": "council:none"}, [("judge", "unknown")]),
        ("/api/chains", {"chain": "none"}, [("chain", "unknown")]),
        ("/api/councils", {"question": "x", "policy": "none"}, [("policy", "unknown")]),
        ("/api/councils", {"question": "x", "agents": ["sim/echo", "none"]}, [("agents[1]", "unknown")]),
        (
            "/api/battles/start",
            {"agentId": "none", "counterpart": "no", "messageLimit": 99, "plateau": 1},
            [
                ("messageLimit", "out_of_bounds"),
                ("plateau", "unknown"),
                ("agentId", "unknown"),
                ("counterpart", "unknown"),
            ],
        ),
        (
            "/api/battles/start",
            {"agentId": "none", "plateauTurns": 3},
            [("agentId", "unknown"), ("plateauTurns", "invalid")],
        ),
        (
            "/api/scale/start",
            {"agentId": "sim/echo", "goal": "a", "goals": [{"goal": "b"}], "plateauTurns": 3},
            [("goals", "conflict"), ("goal", "conflict"), ("judge", "missing"), ("plateauTurns", "invalid")],
        ),
        (
            "/api/councils",
            {"question": " ", "agents": [{"agent": "no", "scale": "0..2"}, "none"], "policy": "none", "rounds": 99},
            [
                ("question", "out_of_bounds"),
                ("rounds", "out_of_bounds"),
                ("agents[0].scale", "invalid"),
                ("agents[0].agent", "unknown"),
                ("agents[1]", "unknown"),
                ("policy", "unknown"),
            ],
        ),
        (
            "/api/councils",
            {"question": "x", "agents": ["no", "no"], "rounds": 2, "min_rounds": 3},
            [("agents[0]", "unknown"), ("agents[1]", "unknown"), ("agents[0].agent", "invalid")],
        ),
        (
            "/api/battles/start",
            {"agentId": "none", "validators": [{"kind": "program", "agent": "no"}]},
            [("agentId", "unknown"), ("validators[0].agent", "unknown")],
        ),
        (
            "/api/battles/start",
            {"agentId": "sim/echo", "validators": [{"kind": "regexp"}, {"patern": "x"}, {"kind": "regex", "text": 1}]},
            [
                ("validators[0].kind", "invalid"),
                ("validators[1].patern", "unknown"),
                ("validators[1].kind", "missing"),
                ("validators[2].text", "invalid"),
            ],
        ),
        (
            "/api/battles/start",
            {
                "agentId": "sim/echo",
                "validators": [{"kind": "regex"}, {"kind": "contains", "text": "a", "pattern": "b"}],
            },
            [("validators[0].pattern", "invalid"), ("validators[1].pattern", "invalid")],
        ),
    ],
)
def test_every_field_that_names_what_there_is_not_is_told(
    server: Server, path: str, body: dict[str, Any], fields: list[tuple[str, str]]
) -> None:
    error = server.post(path, body).error
    assert {(one["path"], one["code"]) for one in error["fields"]} >= set(fields), error
    assert "muster.toml" not in str(error)
    assert "$." not in error["message"]


def test_what_is_wrong_with_a_body_is_told_without_what_was_sent(server: Server) -> None:
    answer = server.post("/api/ask", {"agent": "sim/echo", "prompt": ["hunter2"]})
    assert b"hunter2" not in answer.body


def test_unknown_paths_and_methods(server: Server) -> None:
    missing = server.get("/api/nothing")
    assert (missing.status, missing.error["code"]) == (404, "not_found")
    wrong = server.post("/api/agents")
    assert (wrong.status, wrong.error["code"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "GET, HEAD"
    assert server.request("PUT", "/api/chains").headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/api/runs/none", ["run_id"]),
        ("/api/batches/none", ["batch_id"]),
        ("/api/tasks/none", ["task_id"]),
        ("/api/pool/context/none", ["name"]),
        ("/api/suites/trend?run=none", ["run"]),
        ("/api/compare?a=none&b=other", ["a"]),
        ("/api/compare?a=none&b=none", None),  # nobody knows which of the two is meant
    ],
)
def test_what_is_not_there_is_told_by_the_field_that_names_it(
    server: Server, path: str, fields: list[str] | None
) -> None:
    answer = server.get(path)
    assert (answer.status, answer.error["code"]) == (404, "not_found")
    told = answer.error.get("fields")
    assert fields == (told and [one["path"] for one in told])
    assert all(one["code"] == "unknown" and "none" in one["message"] for one in told or ())


def test_a_request_id_is_the_clients_own_if_it_is_a_proper_one(server: Server) -> None:
    assert server.get("/healthz", **{"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert server.get("/healthz", **{"x-request-id": "a b\tc"}).headers["x-request-id"] != "a b\tc"
    assert len(server.get("/healthz").headers["x-request-id"]) == 32
    assert server.get("/api/nothing", **{"x-request-id": "mine"}).error["request_id"] == "mine"


def test_states_that_do_not_allow_it_are_409(server: Server) -> None:
    run = server.ask()
    server.until(run, "completed")
    answer = server.post(f"/api/runs/{run}/cancel")
    assert (answer.status, answer.error["code"]) == (409, "conflict")
    assert server.post(f"/api/runs/{run}/answer", {"text": "x"}).status == 409


BODIES = [
    b'{"agent": "sim/echo", "prompt": "a", "prompt": "b"}',
    b'{"agent": "sim/echo", "prompt": "a", "extra": [{"x": 1, "x": 1}]}',
    b'{"agent": "sim/echo", "prompt": "a", "budget_usd": NaN}',
]


@pytest.mark.parametrize("raw", BODIES)
def test_a_body_that_can_be_read_in_two_ways_is_refused(server: Server, raw: bytes) -> None:
    answer = server.request("POST", "/api/ask", raw=raw, headers={"content-type": "application/json"})
    assert (answer.status, answer.error["code"]) == (400, "bad_request")
    assert "twice" in answer.error["message"] or "NaN" in answer.error["message"]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b'{"agent": "sim/echo", "prompt": "a", "seed": 1000000000000000000000}', "seed"),
        (b'{"agent": "sim/echo", "prompt": "a", "schema": {"enum": ["b", {"c": 1e999}]}}', "schema.enum[1].c"),
    ],
)
def test_a_number_that_cannot_be_stored_is_told_by_its_field(server: Server, raw: bytes, field: str) -> None:
    answer = server.request("POST", "/api/ask", raw=raw, headers={"content-type": "application/json"})
    assert (answer.status, answer.error["code"]) == (400, "bad_request")
    assert [(one["path"], one["code"]) for one in answer.error["fields"]] == [(field, "out_of_bounds")]
    assert answer.error["message"].startswith(f"body {field}: must be ")


def test_every_route_with_a_body_refuses_a_key_that_stands_twice(server: Server) -> None:
    asked = 0
    for path, operations in server.get("/openapi.json").json["paths"].items():
        for method in (name for name, one in operations.items() if "requestBody" in one):
            asked += 1
            place, kind = re.sub(r"\{\w+\}", "x", path), {"content-type": "application/json"}
            answer = server.request(method.upper(), place, raw=b'{"text": "a", "text": "a"}', headers=kind)
            assert (answer.status, "twice" in answer.error["message"]) == (400, True), path
    assert asked > 20


def test_a_slash_at_the_end_is_another_path_and_no_redirect(server: Server) -> None:
    answer = server.get("/api/runs/")
    assert (answer.status, answer.error["code"]) == (404, "not_found")


def test_of_many_things_that_are_wrong_a_few_are_told(server: Server) -> None:
    answer = server.post("/api/ask", {"agent": "sim/echo", "prompt": "x", **{f"k{number}": 1 for number in range(7)}})
    assert answer.status == 400
    assert "body k4: is unknown" in answer.error["message"]
    assert answer.error["message"].endswith("; and 2 more")


def test_an_object_with_too_many_keys_is_refused_before_each_of_them_is_looked_at(server: Server) -> None:
    answer = server.post("/api/ask", {f"k{number}": 1 for number in range(1_001)})
    assert (answer.status, answer.error["message"]) == (400, "body: an object may have 1,000 keys")
