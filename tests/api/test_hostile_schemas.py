"""Schemas and patterns that would take for ever: refused or given up, while the server answers everybody else."""

import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.text.test_cpu_limit import unevaluated

from .server import Project, Server

BOMB = unevaluated(30)
TEXT = json.dumps({"a": 1, "b": 2})


@pytest.fixture(scope="module")
def crewed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    project = Project(tmp_path_factory.mktemp("crewed"))
    project.declare('[pool]\nagent = "sim/echo"\n')
    with project.serve() as started:
        yield started


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"$schema": 7}, "must be a string"),
        ({"$ref": "#/nowhere"}, "which is not in it"),
        ({"enum": ["x" * 200_000]}, "the maximum is 100,000"),
    ],
)
def test_a_task_with_a_schema_that_is_none_is_refused(crewed: Server, schema: dict[str, Any], words: str) -> None:
    answer = crewed.post("/api/tasks", {"prompt": TEXT, "schema": schema})
    assert (answer.status, answer.error["code"]) == (400, "bad_argument")
    assert words in answer.error["message"]


def test_a_task_whose_schema_would_take_for_ever_fails_and_the_server_goes_on(crewed: Server) -> None:
    task = crewed.post("/api/tasks", {"prompt": TEXT, "schema": BOMB}).json["id"]
    while (found := crewed.get(f"/api/tasks/{task}").json)["state"] in ("pending", "running"):
        assert crewed.get("/healthz").status == 200
    assert (found["state"], "takes too long" in found["error"]["message"]) == ("failed", True)
    assert "traceback" not in found["error"]


def test_a_validator_that_would_take_for_ever_decides_nothing_and_keeps_nobody_waiting(crewed: Server) -> None:
    validators = [{"kind": "json_schema", "schema": BOMB | {"title": str(number)}} for number in range(3)]
    body = {"agentId": "sim/echo", "counterpart": "sim/echo", "userMessage": TEXT, "messageLimit": 1}
    slow = [crewed.post("/api/battles/start", {**body, "validators": validators}).json["id"] for _ in range(2)]
    quick = crewed.post("/api/battles/start", body).json["id"]
    crewed.until(quick, "completed")
    for run in slow:
        crewed.until(run, "completed")
        decisions = crewed.get(f"/api/battles/{run}/decisions").json
        assert [one["verdict"] for one in decisions] == ["uncertain"] * 3
        assert all("too long" in one["reason"] for one in decisions)


@pytest.mark.one_server
def test_a_pattern_that_explodes_in_the_compiler_is_refused_and_takes_nothing_of_the_server(crewed: Server) -> None:
    validator = {"kind": "regex", "pattern": "(?x)((((a{99} ) {99} ) {99} ) {12} )"}
    before = peak_memory(crewed)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(crewed.post, "/api/battles/start", {"agentId": "sim/echo", "validators": [validator]})
        while not answer.done():
            assert crewed.get("/healthz").status == 200
    assert (answer.result().status, answer.result().error["code"]) == (400, "bad_argument")
    assert re.search("takes too (long|much memory)", answer.result().error["message"])
    assert peak_memory(crewed) - before < 50_000


def peak_memory(server: Server) -> int:
    """Return the most memory that a server had in use, in kilobytes."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1])


def test_a_pattern_of_properties_keeps_nobody_waiting(crewed: Server) -> None:
    schema = {"additionalProperties": False, "patternProperties": {"^(a|aa)+$": {}}}
    body = {"agentId": "sim/echo", "counterpart": "sim/echo", "messageLimit": 1}
    body |= {"userMessage": json.dumps({"a" * 40 + "!": 1}), "validators": [{"kind": "json_schema", "schema": schema}]}
    run = crewed.post("/api/battles/start", body).json["id"]
    crewed.until(run, "completed")
    (decision,) = crewed.get(f"/api/battles/{run}/decisions").json
    assert (decision["verdict"], "too long" in decision["reason"]) == ("uncertain", True)


def test_a_dialect_inside_of_a_schema_keeps_nobody_waiting(crewed: Server) -> None:
    inner = {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": "^(a|aa)+$"}
    body = {"agentId": "sim/echo", "counterpart": "sim/echo", "messageLimit": 1, "userMessage": f'"{"a" * 60}!"'}
    body |= {"validators": [{"kind": "json_schema", "schema": {"allOf": [inner]}}]}
    run = crewed.post("/api/battles/start", body).json["id"]
    while crewed.get(f"/api/battles/{run}/status").json["state"] in ("queued", "running"):
        assert crewed.get("/healthz").status == 200
    (decision,) = crewed.get(f"/api/battles/{run}/decisions").json
    assert (decision["verdict"], "too long" in decision["reason"]) == ("uncertain", True)


@pytest.mark.parametrize("coding", ["utf-16", "utf-32", "latin-1"])
def test_a_body_in_another_coding_is_refused(crewed: Server, coding: str) -> None:
    text = '{"prompt": "hi", "schema": {"title": "\u00e9"}}'
    answer = crewed.request("POST", "/api/tasks", raw=text.encode(coding), headers={"content-type": "application/json"})
    assert (answer.status, "is not UTF-8" in answer.error["message"]) == (400, True)


def test_half_a_character_is_refused(crewed: Server) -> None:
    body = b'{"prompt": "hi", "schema": {"title": "\xed\xa0\x80"}}'
    answer = crewed.request("POST", "/api/tasks", raw=body, headers={"content-type": "application/json"})
    assert (answer.status, "is not UTF-8" in answer.error["message"]) == (400, True)


def test_what_is_wrong_with_many_validators_is_told_in_short(crewed: Server) -> None:
    validators = [{f"k{number}": 1 for number in range(999)}] * 50
    answer = crewed.post("/api/battles/start", {"agentId": "sim/echo", "validators": validators})
    assert answer.status == 400
    assert len(answer.error["message"]) < 1_000


@pytest.mark.parametrize(
    ("route", "field"), [("tasks", "schema"), ("battles/start", "validators"), ("chains", "input")]
)
@pytest.mark.parametrize("levels", [120, 260, 900])
def test_a_body_that_is_nested_deeply_is_refused(crewed: Server, route: str, field: str, levels: int) -> None:
    deep: Any = {}
    for _ in range(levels):
        deep = {"a": deep}
    answer = crewed.post(f"/api/{route}", {field: [deep] if field == "validators" else deep})
    assert (answer.status, "nested more than 100 levels" in answer.error["message"]) == (400, True)
