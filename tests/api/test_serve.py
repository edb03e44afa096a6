"""`muster serve`: starts, answers, stops, and goes on with what it left."""

import json
import signal
import socket
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.postgres import postgres_server

from .server import TOKENS, Answer, Project, Server


def test_it_prints_its_address_and_answers(project: Project) -> None:
    with project.serve() as server:
        assert server.url.startswith("http://127.0.0.1:")
        assert server.get("/healthz").json == {"status": "ok"}
        run = server.ask("ping")
        assert server.until(run, "completed")["result"]["text"] == "ping"


def test_health_tells_that_the_store_is_locked_and_that_it_is_free_again(project: Project) -> None:
    with project.serve() as server:
        assert server.get("/healthz").status == 200
        other = sqlite3.connect(project.folder / ".muster" / "muster.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        answer = until_status(server, 503)
        assert "for another process or a slow disk" in answer.error["message"]
        assert str(project.folder) not in answer.error["message"]
        other.execute("ROLLBACK")
        other.close()
        until_status(server, 200)


def test_a_server_whose_store_was_upgraded_refuses_starts_and_says_what_to_do(project: Project) -> None:
    with project.serve() as server:
        server.ask()
        with closing(sqlite3.connect(project.folder / ".muster" / "muster.db")) as newer:
            newer.execute("PRAGMA user_version = 999")
        refused = server.post("/api/ask", {"agent": "sim/echo", "prompt": "x"})
        assert (refused.status, refused.error["code"]) == (503, "store")
        assert "started again with the new version of muster" in refused.error["message"]
        until_status(server, 503)


@pytest.mark.postgres
@pytest.mark.parametrize("words", [("serve", "--port", "0", "--json"), ("worker", "--until-idle", "--json")])
def test_a_server_and_a_worker_wait_for_a_database_that_is_starting(project: Project, words: tuple[str, ...]) -> None:
    with postgres_server() as database:
        database.kill()
        project.variables["MUSTER_DATABASE_URL"] = database.url()
        with project.command(*words) as process:
            try:
                assert "waiting up to 60 seconds for it to start" in process.stderr.readline()
                database.start()
                assert json.loads(process.stdout.readline())
            finally:
                process.kill()


def test_every_line_is_json_and_those_of_a_run_name_the_request_that_started_it(project: Project) -> None:
    with project.serve("--log-format", "json", "--log-level", "debug") as server:
        run = server.post("/api/ask", {"agent": "sim/echo", "prompt": "x"}, x_request_id="asked-1").json["id"]
        server.until(run, "completed")
        with socket.create_connection(server.address, timeout=30) as connection:
            connection.sendall(b"NOT HTTP AT ALL\r\n\r\n")
            assert connection.recv(65_536).startswith(b"HTTP/1.1 400")
        assert server.stop() == 0
        *lines, last = server.process.stderr.read().splitlines()
    assert last == "stopping; nothing is on the wire"
    told = [json.loads(line) for line in lines]
    assert {one["request_id"] for one in told if one.get("run") == run} == {"asked-1"}
    assert {"run.began", "call.began", "attempt.ended", "run.ended"} <= {one["event"] for one in told}
    (refused,) = [one for one in told if one["event"] == "server"]
    assert (refused["level"], refused["message"]) == ("warning", "Invalid HTTP request received.")


def until_status(server: Server, status: int) -> Answer:
    """Ask for the health until it has a status; what it knows may be a second old."""
    end = time.monotonic() + 60
    while (answer := server.get("/healthz")).status != status:
        assert time.monotonic() < end, answer.body
    return answer


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_runs_go_on_when_it_is_started_again(project: Project, number: int) -> None:
    with project.serve() as server:
        waiting = server.post("/api/councils", {"question": "Why?", "policy": "panel"}).json["id"]
        server.until(waiting, "waiting")
        assert server.stop(number) == 0
    with project.serve() as server:
        assert server.until(waiting, "waiting")["workload"] == "deliberation"
        (question,) = server.get(f"/api/runs/{waiting}/questions").json["questions"]
        answered = server.post(f"/api/runs/{waiting}/answer", {"text": "Because.", "key": question["key"]})
        assert answered.status == 200
        assert server.get(f"/api/runs/{waiting}/questions").json["questions"] != [question]


def test_a_killed_server_is_replaced_by_one_that_finishes_its_runs_and_knows_their_keys(project: Project) -> None:
    body = {"agent": "sim/slow", "prompt": "hello"}
    with project.serve() as server:
        run = server.post("/api/ask", body, idempotency_key="k").json["id"]
        server.until(run, "running")
        server.process.kill()
        server.process.wait()
    with project.serve() as server:
        again = server.post("/api/ask", body, idempotency_key="k")
        assert (again.status, again.json["id"]) == (200, run)
        assert server.post("/api/ask", {**body, "prompt": "x"}, idempotency_key="k").status == 409
        server.until(run, "completed")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_an_address_that_others_reach_needs_a_token(project: Project, host: str) -> None:
    with project.command("serve", "--port", "0", "--host", host) as process:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (3, "")
        assert "no [[tokens]] are declared" in err
        assert "[[tokens]]" in err


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "TOKEN_ROOT is not set"),
        ({"TOKEN_ROOT": "short"}, "at least 16 characters"),
        ({"TOKEN_ROOT": "a" * 20, "TOKEN_CI": "a" * 20}, "same secret as another"),
    ],
)
def test_a_token_needs_a_secret_of_its_own(project: Project, variables: dict[str, str], words: str) -> None:
    project.declare(TOKENS)
    project.variables = dict(variables)
    with project.command("serve", "--port", "0") as process:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 3
        assert words in err


def test_a_port_in_use_is_told(project: Project) -> None:
    with project.serve() as server, project.command("serve", "--port", str(server.address[1])) as process:
        _, err = process.communicate(timeout=60)
        assert process.returncode == 2
        assert "cannot be used" in err


WAITS = """import pathlib, sys, time
sys.stdin.read()
pathlib.Path("began").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.02)
print("went")
"""
PROGRAM = """
[agents.waits]
kind = "program"
mode = "plain"
command = ["python3", "waits.py"]
budget_usd = 0
"""


def wait_for(file: Path) -> None:
    end = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < end, f"{file} is not there"
        time.sleep(0.02)


def test_while_it_stops_requests_are_refused_and_calls_on_the_wire_are_answered(project: Project) -> None:
    (project.folder / "waits.py").write_text(WAITS)
    project.declare(PROGRAM)
    with project.serve() as server:
        run = server.post("/api/ask", {"agent": "waits", "prompt": "x"}).json["id"]
        wait_for(project.folder / "began")
        server.process.send_signal(signal.SIGTERM)
        end = time.monotonic() + 60
        while (answer := server.get("/api/runs")).status == 200:
            assert time.monotonic() < end
        assert (answer.status, answer.error["code"]) == (503, "stopping")
        assert "retry-after" in answer.headers
        (project.folder / "go").touch()
        assert server.process.wait(60) == 0
    with project.serve() as server:
        ended = server.until(run, "completed")
        assert (ended["result"]["text"].strip(), ended["calls"]["uncertain"]) == ("went", 0)


def test_a_request_that_takes_too_long_is_504_and_goes_on(project: Project) -> None:
    (project.folder / "waits.py").write_text(WAITS)
    project.declare(PROGRAM + '\n[pool]\nagent = "waits"\nslots = 1\n')
    project.variables["REQUEST_TIMEOUT_MS"] = "5000"  # within which even a busy machine begins to drain
    with project.command("task", "submit", "x") as submitting:
        assert submitting.wait(60) == 0
    with project.serve() as server:
        wait_for(project.folder / "began")
        answer = server.post("/api/pool/drain", {"timeout_secs": 600})
        assert (answer.status, answer.error["code"]) == (504, "timeout")
        assert server.get("/api/pool").json["draining"] is True
        (project.folder / "go").touch()


def test_what_users_did_can_be_read_from_the_command_line(project: Project) -> None:
    with project.serve() as server:
        run = server.ask()
        server.until(run, "completed")
    with project.command("audit", "--json") as process:
        out, _ = process.communicate(timeout=60)
    (record,) = json.loads(out)["data"]
    assert (record["action"], record["subject"], record["user"]) == ("start ask", run, None)
