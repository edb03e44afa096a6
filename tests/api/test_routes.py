"""The contract of every route, against a real server."""

import json
import subprocess
from typing import Any

import pytest

from .server import ADMIN, CI, SETTINGS, TOKENS, Project, Server

POOL = '[pool]\nagent = "sim/echo"\n[[slots]]\nname = "writer"\nrole = "author"\n'


def test_runs_are_paged_by_the_last_id(server: Server) -> None:
    made = [server.ask(str(n)) for n in range(5)]
    for run in made:
        server.until(run, "completed")
    found: list[str] = []
    after = ""
    while True:
        page = server.get(f"/api/runs?limit=2&workload=ask{after}").json
        found += [run["id"] for run in page["runs"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert found[:5] == made[::-1]
    assert len(found) == len(set(found))
    assert {run["state"] for run in server.get("/api/runs?state=completed").json["runs"]} == {"completed"}
    assert "result" not in server.get("/api/runs").json["runs"][0]


def test_a_run_is_shown_with_its_calls_and_events(server: Server) -> None:
    run = server.ask("look")
    shown = server.until(run, "completed")
    names = {"id", "name", "workload", "state", "ended_reason", "budget_usd", "spent_usd", "uncertain_usd", "calls"}
    assert names | {"batches", "started_at", "ended_at", "started_by"} <= set(shown)
    calls = server.get(f"/api/runs/{run}/calls").json
    assert ([call["key"] for call in calls["calls"]], calls["next"]) == (["ask"], None)
    first = server.get(f"/api/runs/{run}/calls?limit=1").json
    assert server.get(f"/api/runs/{run}/calls?limit=1&after={first['next']}").json == {"calls": [], "next": None}
    assert server.get(f"/api/runs/{run}/calls?after=nothing").status == 404
    assert server.get(f"/api/runs/{run}/call?key=ask").json["reply"]["text"] == "look"
    assert server.get(f"/api/runs/{run}/call?key=other").status == 404
    assert server.get(f"/api/runs/{run}/media/{'0' * 64}").status == 404
    events = server.get(f"/api/runs/{run}/events?limit=2").json
    assert [event["seq"] for event in events["events"]] == [1, 2]
    rest = server.get(f"/api/runs/{run}/events?after={events['next']}").json
    assert rest["events"][0]["seq"] == 3
    assert rest["events"][-1]["kind"] == "run.completed"
    assert server.get(f"/api/runs/{run}/events?after={rest['next']}").json["events"] == []


def test_a_run_that_waits_for_a_person_is_answered_canceled_and_resumed(server: Server) -> None:
    run = server.post("/api/ask", {"agent": "me", "prompt": "What?"}).json["id"]
    assert server.until(run, "waiting")["questions"][0]["prompt"] == "What?"
    (question,) = server.get(f"/api/runs/{run}/questions").json["questions"]
    body = {"text": "That.", "key": question["key"], "client_id": "once"}
    assert server.post(f"/api/runs/{run}/answer", body).json["run"] == run
    assert server.post(f"/api/runs/{run}/answer", body).status == 200
    assert server.until(run, "completed")["result"]["text"] == "That."
    other = server.post("/api/ask", {"agent": "me", "prompt": "What?"}).json["id"]
    server.until(other, "waiting")
    assert server.post(f"/api/runs/{other}/cancel").json["state"] == "canceled"
    resumed = server.post(f"/api/runs/{other}/resume", {"budget_usd": 1.5})
    assert (resumed.status, resumed.json["budget_usd"]) == (202, 1.5)
    assert server.until(resumed.json["id"], "waiting")["origin"]["run"] == other
    assert server.get(f"/api/runs/{other}").json["continued_by"] == resumed.json["id"]
    again = server.post(f"/api/runs/{other}/resume")  # as a second click does
    assert again.status in (200, 202)
    assert again.json["id"] == resumed.json["id"]


def test_a_run_is_forked_and_deleted(server: Server) -> None:
    run = server.ask("first")
    server.until(run, "completed")
    forked = server.post(f"/api/runs/{run}/fork", {"from": "ask"})
    assert forked.status == 202
    server.until(forked.json["id"], "completed")
    assert server.post(f"/api/runs/{run}/fork", {"from": "nothing"}).status == 404
    assert server.request("DELETE", f"/api/runs/{forked.json['id']}").json == {"deleted": [forked.json["id"]]}
    assert server.get(f"/api/runs/{forked.json['id']}").status == 404


def test_what_requests_may_name(server: Server) -> None:
    names = ("me", "sim/echo", "sim/slow")
    listed = [{"name": name, "human": name == "me"} for name in names]
    assert server.get("/api/agents").json == {"agents": listed, "run_budget_usd": None}
    assert server.get("/api/library").json == {
        "items": [
            {"kind": "chain", "name": "greet"},
            {"kind": "council", "name": "pair"},
            {"kind": "council", "name": "panel"},
            {"kind": "suite", "name": "smoke"},
        ]
    }


def test_a_suite_is_started_reported_reviewed_and_compared(server: Server) -> None:
    body = {"suites": ["smoke"], "agents": ["sim/echo"], "epochs": 2, "name": "nightly", "run_tags": ["ci"]}
    started = server.post("/api/suites/start", body)
    assert started.status == 202
    run = started.json["id"]
    assert server.until(run, "completed")["tags"] == ["ci"]
    report = server.get(f"/api/runs/{run}/report")
    assert report.headers["content-type"] == "application/json"
    assert report.json
    for form, kind in (("html", "text/html"), ("junit", "application/xml"), ("markdown", "text/markdown")):
        shown = server.get(f"/api/runs/{run}/report?format={form}")
        assert shown.status == 200
        assert shown.headers["content-type"].startswith(kind)
        assert shown.headers["content-security-policy"] == "sandbox"
    assert server.get(f"/api/runs/{run}/report?format=pdf").status == 400
    review = {"run": run, "case": "greeter/hello", "opinion": "right", "epoch": 1}
    assert server.post("/api/reviews", review).status == 201
    assert len(server.get(f"/api/reviews?run={run}").json["reviews"]) == 1
    other = server.post("/api/suites/start", {**body, "name": "later"}).json["id"]
    server.until(other, "completed")
    compared = server.get(f"/api/compare?a={run}&b={other}").json
    assert (compared["verdict"], compared["gate"], compared["ok"]) == ("inconclusive", "blind", False)
    assert compared["subjects"][0]["noticing"]["drop"] == 0.2
    asked = server.get(f"/api/compare?a={run}&b={other}&margin=0.9&notice=0.5&inconclusive=ok").json
    assert (asked["subjects"][0]["margin"], asked["ok"]) == (0.9, True)
    assert server.get(f"/api/compare?a={run}&b={other}&inconclusive=maybe").status == 400
    assert server.get("/api/compare?a=nothing&b=nothing").status == 404
    page = server.get(f"/api/compare/pairs?a={run}&b={other}:sim/echo&limit=1").json
    assert (page["counts"]["same"], len(page["pairs"]), page["a"]["run"]) == (sum(page["counts"].values()), 1, run)
    assert server.get(f"/api/compare/pairs?a={run}&b={other}&change=other").status == 400
    subjects = [{"subject": "sim/echo", "agent": "sim/echo", "prompt": None}]
    assert server.get(f"/api/suites/{run}/subjects").json == {"subjects": subjects}
    assert server.get("/api/baselines").json == {"baselines": []}


def test_a_chain_is_started_and_followed(server: Server) -> None:
    body = {"chain": "greet", "input": {"topic": "bees"}}
    run = server.post("/api/chains", body).json["id"]
    server.until(run, "completed")
    progress = server.get(f"/api/chains/{run}/progress").json
    assert (progress["status"], progress["completed_steps"]) == ("completed", 1)
    assert progress["steps"][0]["output"] == "Hello bees"
    assert run in [one["id"] for one in server.get("/api/chains").json["chains"]]
    assert server.post("/api/chains", {"chain": "greet"}).status == 400
    assert server.post(f"/api/chains/{run}/cancel").status == 409
    resumed = server.post(f"/api/chains/{run}/resume")  # there is nothing to start: its result is the answer
    assert (resumed.status, resumed.json["id"], resumed.json["state"]) == (200, run, "completed")


def test_a_council_is_held_told_something_and_stopped(server: Server) -> None:
    run = server.post("/api/councils", {"question": "Why?", "policy": "panel", "rounds": 2}).json["id"]
    server.until(run, "waiting")
    assert server.post(f"/api/councils/{run}/inject", {"text": "Think."}).json["payload"] == "Think."
    assert server.get(f"/api/councils/{run}/trace").json["withheld_for"] == ["me"]
    assert server.get(f"/api/runs/{run}/report?format=markdown").status == 409  # it would tell a person who wrote what
    assert server.post(f"/api/councils/{run}/stop").status == 200
    server.until(run, "completed", "failed")
    assert server.get(f"/api/runs/{run}/report?format=markdown").status == 200
    assert server.get(f"/api/runs/{run}/report?format=junit").status == 400
    assert server.get(f"/api/runs/{server.ask()}/report").status == 400
    assert run in [one["id"] for one in server.get("/api/councils").json["councils"]]
    named = {"question": "Why?", "agents": ["sim/echo", {"agent": "me", "role": "skeptic"}]}
    assert server.post("/api/councils", named).status == 202


def test_a_verification_needs_something_to_verify(server: Server) -> None:
    assert server.get("/api/verify").json == {"verifications": []}
    assert server.post("/api/verify", {"files": "changed"}).status in (400, 404, 409)
    assert server.post("/api/verify", {"files": "/etc/passwd"}).status == 400
    assert server.get("/api/verify/metrics").status == 200


def test_batches_are_listed(server: Server) -> None:
    assert server.get("/api/batches").json == {"batches": [], "next": None}
    assert server.get("/api/batches/stats").json["batches"] == 0
    assert server.get("/api/batches/nothing").status == 404
    assert server.post("/api/batches/nothing/cancel").status == 404


def test_money_of_all_users_is_told_to_admins(project: Project) -> None:
    project.declare(TOKENS)
    with project.serve() as server:
        admin, ci = server.with_token(ADMIN), server.with_token(CI)
        admin.until(ci.ask("hello"), "completed")
        assert ci.get("/api/costs").status == 403
        found = admin.get("/api/costs?days=2").json
        assert (len(found["days"]), found["until"]) == (2, found["days"][-1]["day"])
        assert [(one["kind"], one["name"], one["budget_usd"]) for one in found["budgets"]] == [
            ("day", found["until"], None),
            ("user", "root", None),
            ("user", "ci", 1.0),
            ("user", "eve", None),
        ]


def test_a_trend_is_over_ones_own_runs_of_a_name(project: Project) -> None:
    project.declare(TOKENS)
    with project.serve() as server:
        admin, ci = server.with_token(ADMIN), server.with_token(CI)
        body = {"suites": ["smoke"], "agents": ["sim/echo"], "name": "nightly"}
        runs = [one.post("/api/suites/start", body).json["id"] for one in (ci, ci, admin)]
        for run in runs:
            admin.until(run, "completed")
        own = ci.get("/api/suites/trend?run=nightly").json
        assert {run["id"] for run in own["runs"]} == set(runs[:2])
        assert [one["pass_rate"] for run in own["runs"] for one in run["subjects"]] == [1.0, 1.0]
        assert {run["id"] for run in admin.get(f"/api/suites/trend?run={runs[0]}").json["runs"]} == set(runs)
        assert ci.get(f"/api/suites/trend?run={runs[2]}").status == 404
        assert ci.get(f"/api/suites/trend?run={ci.ask('hello')}").status == 400
        before = {run: admin.get(f"/api/suites/{run}/previous").json["run"] for run in runs}
        assert [one and one["id"] for one in before.values()] == [None, *runs[:2]]
        other = admin.post("/api/suites/start", body | {"name": "weekly"}).json["id"]
        assert admin.get(f"/api/suites/{other}/previous").json == {"run": None}


def test_tasks_are_done_in_slots_and_reviewed(project: Project) -> None:
    project.declare(POOL, SETTINGS)
    with project.serve() as server:
        body = {"prompt": "Write.", "review": True, "tags": ["docs"], "role": "author"}
        submitted = server.post("/api/tasks", body, idempotency_key="t")
        assert submitted.status == 202
        task = submitted.json["id"]
        assert server.post("/api/tasks", body, idempotency_key="t").json["id"] == task
        until_task(server, task, "pending_review")
        assert server.post(f"/api/tasks/{task}/reject", {"feedback": "Longer."}).status == 200
        until_task(server, task, "pending_review", rejections=1)
        assert server.post(f"/api/tasks/{task}/allow").status == 409
        assert server.post(f"/api/tasks/{task}/deny", {"reason": "no"}).status == 409
        assert server.post(f"/api/tasks/{task}/approve").status == 200
        until_task(server, task, "completed")
        result = server.get(f"/api/tasks/{task}/result").json
        assert (result["success"], result["slot"], result["tags"]) == (True, "writer", ["docs"])
        assert server.get(f"/api/tasks/{task}/logs").json["log"]
        assert server.get(f"/api/tasks/{task}/diff").status == 400  # it worked in the folder of the project
        assert server.get("/api/tasks/nothing/diff").status == 404
        assert [one["id"] for one in server.get("/api/tasks?state=completed&tag=docs").json["tasks"]] == [task]
        assert server.post(f"/api/tasks/{task}/cancel").status == 409
        assert server.post(f"/api/tasks/{task}/retry").status == 409
        assert server.post(f"/api/tasks/{task}/change", {"priority": 3}).status == 409
        assert server.get("/api/tasks/nothing").status == 404
        the_pool(server)


def the_pool(server: Server) -> None:
    status = server.get("/api/pool").json
    assert status["draining"] is False
    assert server.get("/api/pool/slots?role=author").json["slots"][0]["name"] == "writer"
    assert server.get("/api/pool/metrics").json["tasks"] == 1
    assert len(server.post("/api/pool/scale", {"slots": "+1"}).json["slots"]) == 3
    assert server.post("/api/pool/scale", {"slots": 1000}).status == 400
    assert server.request("PUT", "/api/pool/context/tone", {"text": "Be brief."}).status == 200
    assert server.get("/api/pool/context/tone").json == {"name": "tone", "text": "Be brief."}
    assert server.get("/api/pool/context").json == {"context": {"tone": "Be brief."}}
    assert server.request("DELETE", "/api/pool/context/tone").json == {"deleted": "tone"}
    assert server.get("/api/pool/context/tone").status == 404
    assert server.post("/api/pool/slots/writer/messages", {"text": "Hi."}).status == 201
    assert len(server.get("/api/pool/slots/writer/messages").json["messages"]) == 1
    assert len(server.post("/api/pool/slots/writer/messages/read").json["messages"]) == 1
    assert "writer" in server.post("/api/pool/messages", {"text": "All."}).json["slots"]
    assert server.post("/api/tasks/claim/writer").json == {"task": None}
    assert server.post("/api/pool/drain", {"timeout_secs": 5}).json["draining"] is True


def until_task(server: Server, task: str, state: str, rejections: int = 0) -> dict[str, Any]:
    """Wait until a task is in a state, after so many rejections."""
    run = server.get(f"/api/tasks/{task}").json["run"]
    while True:
        server.until(run, "waiting", "completed", "failed")
        found: dict[str, Any] = server.get(f"/api/tasks/{task}").json
        assert found["state"] != "failed", found
        if (found["state"] == state and found["rejection_count"] == rejections) or state == "completed" == found[
            "state"
        ]:
            return found


def test_the_schema_has_no_422_and_no_limit_that_the_operator_may_raise(server: Server) -> None:
    schema = server.get("/openapi.json").json
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            assert "422" not in operation["responses"], path
    count = schema["components"]["schemas"]["ScaleBody"]["properties"]["runCount"]
    assert "maximum" not in json.dumps(count)


def test_a_council_of_the_library_may_judge(server: Server) -> None:
    body = {"suites": ["smoke"], "agents": ["sim/echo"], "evaluator": "all"}
    refused = server.post("/api/suites/start", {**body, "judge": "council:panel"})
    assert refused.status == 400
    assert "me is a person" in refused.error["message"]
    started = server.post("/api/suites/start", {**body, "judge": "council:pair"})
    assert started.status == 202
    server.until(started.json["id"], "completed")


@pytest.mark.parametrize("path", ["/api/audit", "/api/runs", "/api/tasks", "/api/chains", "/api/councils"])
def test_lists_have_a_limit(server: Server, path: str) -> None:
    assert server.get(f"{path}?limit=1").status == 200
    assert server.get(f"{path}?limit=501").status == 400


def test_a_scale_test_takes_what_its_command_takes(server: Server) -> None:
    body: dict[str, Any] = {
        **{"agentId": "sim/echo", "agentIds": ["sim/slow"], "counterpart": "sim/echo", "messageLimit": 1, "seed": 3},
        **{"prompts": [{"name": "short", "text": "Be short."}], "persona": "You hurry.", "revision": False},
        **{"name": "measured", "runTags": ["ci"], "dispatch": "batch", "fallback": "live", "cache": False},
    }
    started = server.post("/api/scale/start", body)
    assert started.status == 202, started.body
    run = server.until(started.json["runId"], "completed")
    assert (run["name"], run["tags"], run["dispatch"]) == ("measured", ["ci"], "batch")
    assert server.get(f"/api/scale/{run['id']}/status").json["total"] == 2
    refused: list[dict[str, Any]] = [
        {"fallback": "live", "dispatch": "live"},
        {"tryRevised": True},
        {"systemPrompt": "x"},
    ]
    assert [server.post("/api/scale/start", {**body, **one}).status for one in refused] == [400] * 3


def test_a_suite_run_takes_answers_and_cases_of_another(server: Server) -> None:
    body = {"suites": ["smoke"], "agents": ["sim/echo"]}
    first = server.post("/api/suites/start", body).json["id"]
    server.until(first, "completed")
    replayed = server.post("/api/suites/start", {**body, "replay": first})
    assert replayed.status == 202, replayed.body
    assert server.until(replayed.json["id"], "completed")["origin"]["run"] == first
    assert server.post("/api/suites/start", {**body, "only_failed": first}).status == 404
    for field in ("replay", "reuse", "only_failed"):
        refused = server.post("/api/suites/start", {**body, field: "../file.json"})
        flaws = [(flaw["path"], flaw["code"], flaw["suggestion"]) for flaw in refused.error["fields"]]
        assert (refused.status, flaws) == (404, [(field, "unknown", "muster runs list")])
    asked = server.post("/api/ask", {"agent": "sim/echo", "prompt": "hello"}).json["id"]
    refused = server.post("/api/suites/start", {**body, "replay": asked})
    assert (refused.status, [flaw["path"] for flaw in refused.error["fields"]]) == (400, ["replay"])
    refused = server.post("/api/suites/start", {**body, "replay": first, "reuse": first})
    assert (refused.status, [flaw["path"] for flaw in refused.error["fields"]]) == (400, ["replay", "reuse"])


def test_the_diff_of_a_task_is_what_it_changed_in_its_worktree(project: Project) -> None:
    key = "AKIA" + "Q7RJ2M5XZT4KW9PB"
    script = f"cat > /dev/null; echo new {key} > added.txt; echo {key}"
    writer = f'[agents.writer]\nkind = "cli"\nbudget_usd = 0.0\ncommand = ["sh", "-c", "{script}"]\n'
    project.declare(writer + '[pool]\nagent = "writer"\nisolation = "worktree"\n', SETTINGS)
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=project.folder, env=project.environment, check=True)
    with project.serve() as server:
        task = server.post("/api/tasks", {"prompt": "Write."}).json["id"]
        server.until(server.get(f"/api/tasks/{task}").json["run"], "completed", "failed")
        found = server.get(f"/api/tasks/{task}/diff")
        assert found.status == 200, found.body
        assert "+new [redacted:aws_key:1]" in found.json["diff"]
        assert server.get(f"/api/tasks/{task}").json["output"].strip() == "[redacted:aws_key:1]"
        assert found.json["overlaps"] == []
        run = server.get(f"/api/tasks/{task}").json["run"]
        shown = [
            server.get(f"/api/runs/{run}{more}").body
            for more in ("", "/calls", "/attempts", "/call?key=work/000", "/events")
        ]
        assert all(key not in str(body) for body in shown)
        assert "[redacted:" in str(shown[0])
        assert "[redacted:" in str(shown[3])


def test_the_results_of_a_suite_are_read_in_parts(project: Project) -> None:
    with project.serve() as server:
        run = server.post("/api/suites/start", {"suites": ["smoke"], "agents": ["sim/echo", "sim/slow"]}).json["id"]
        server.until(run, "completed")
        summary = server.get(f"/api/suites/{run}/summary").json
        assert {one["agent"]: one["prompt"] for one in summary["subjects"]} == {"sim/echo": None, "sim/slow": None}
        assert sum(summary["subjects"][0]["score_bins"]) == 1
        first = server.get(f"/api/suites/{run}/cases?limit=1").json
        second = server.get(f"/api/suites/{run}/cases?after={first['next']}").json
        assert [one["subject"] for one in (*first["cases"], *second["cases"])] == ["sim/echo", "sim/slow"]
        assert second["next"] is None
        assert server.get(f"/api/suites/{run}/cases?status=failed&status=error").json["cases"] == []
        case = server.get(f"/api/suites/{run}/case?case=greeter/hello&subject=sim/slow").json
        assert (case["status"], [one["answer"] for one in case["epochs"]]) == ("passed", ["hello"])
        assert server.get(f"/api/suites/{run}/case?case=greeter/bye").status == 404
        for asked in ("after=here", "status=gone", "limit=0"):
            assert server.get(f"/api/suites/{run}/cases?{asked}").status == 400


DEAR = """
[agents.dear]
kind = "python"
function = "tests.mcp.agents:paid"
budget_usd = 0.10
"""


def test_a_task_is_tried_again_with_a_higher_budget(project: Project) -> None:
    project.declare(POOL + DEAR, SETTINGS)
    with project.serve() as server:
        body = {"prompt": "Write.", "agent": "dear", "budget_usd": 0.05}
        task = server.post("/api/tasks", body).json["id"]
        server.until(server.get(f"/api/tasks/{task}").json["run"], "failed")
        assert server.post(f"/api/tasks/{task}/retry", {"budget_usd": 0}).status == 400
        again = server.post(f"/api/tasks/{task}/retry", {"budget_usd": 0.5})
        assert (again.status, again.json["id"]) == (202, task)
        assert until_task(server, task, "completed")["cost_usd"] == 0.1
