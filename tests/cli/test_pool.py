"""`muster task`, `muster pool` and `muster fan-out` as people type them."""

import json
import sys

import pytest

from tests.git.repository import Repository

from .shell import Shell, line_with

TOML = '[pool]\nslots = 2\nagent = "sim/echo"\n\n[[slots]]\nname = "coder"\nrole = "writer"\n'

ASKING = f"""
[pool]
agent = "asking"

[agents.asking]
kind = "cli"
command = ["{sys.executable}", "-m", "muster.sim.cli_agent"]
resume = ["--resume", "{{session}}"]
output = "jsonl"
answer = "$.result"
session = "$.session_id"
ends = "$.num_turns"
permission = "$.request.tool_name"
permission_input = "$.request.input"
budget_usd = 0.0
"""


@pytest.fixture
def pool(shell: Shell) -> Shell:
    (shell.folder / "muster.toml").write_text(TOML)
    return shell


def test_a_task_is_submitted_done_reviewed_and_shown(pool: Shell) -> None:
    submitted = pool.muster("task", "submit", "hello", "--review", "--tag", "x", "--json").data()
    assert (submitted["state"], submitted["tags"]) == ("pending", ["x"])
    assert "muster pool start" in pool.muster("task", "submit", "other").out
    started = pool.muster("pool", "start", "--until-idle", "--json").data()
    assert started["tasks"] | {"pending_review": 1, "completed": 1} == started["tasks"]
    shown = pool.muster("task", "result", submitted["id"])
    assert (shown.code, shown.out) == (0, "hello\n")
    assert f"muster task approve {submitted['id']}" in shown.err
    assert pool.muster("task", "reject", submitted["id"], "--feedback", "shorter").code == 0
    refused = pool.muster("task", "approve", submitted["id"])
    assert (refused.code, "is pending; only a task in pending_review" in refused.err) == (4, True)
    pool.muster("pool", "start", "--until-idle")
    assert pool.muster("task", "approve", submitted["id"]).code == 0
    pool.muster("pool", "start", "--until-idle")
    done = pool.muster("task", "result", submitted["id"], "--json").data()
    assert (done["state"], done["rejection_count"], done["slot"], done["success"]) == ("completed", 1, "coder", True)
    assert [task["state"] for task in pool.muster("task", "list", "--json").data()] == ["completed", "completed"]


def test_the_last_rejection_that_a_task_allows_says_that_it_fails(pool: Shell) -> None:
    task = pool.muster("task", "run", "hello", "--review", "--max-rejections", "1", "--json").data()["id"]
    rejected = pool.muster("task", "reject", task, "--feedback", "shorter")
    assert "is rejected as often as it allows, and fails when the pool is started" in rejected.out
    assert pool.muster("task", "list", "--json").data()[0]["rejection_count"] == 1
    pool.muster("pool", "start", "--until-idle")
    failed = pool.muster("task", "result", task, "--json")
    assert "rejected 1 time; the last feedback: shorter" in failed.envelope()["error"]["message"]
    assert failed.envelope()["data"]["rejection_count"] == 1


def test_a_task_is_done_at_once_where_nobody_drives_the_pool(pool: Shell) -> None:
    done = pool.muster("task", "run", "now", "--slot", "coder")
    assert (done.code, done.out) == (0, "now\n")
    failed = pool.muster("task", "run", "x", "--agent", "sim/fail")
    assert (failed.code, failed.out) == (1, "")
    assert "muster task retry" in failed.err
    assert pool.muster("task", "run", "x", "--agent", "sim/fail", "--json").error()["code"] == "invalid_request"


def test_a_permission_is_asked_for_allowed_and_denied(pool: Shell) -> None:
    (pool.folder / "muster.toml").write_text(ASKING)
    asked = pool.muster("task", "run", "MOOD:permission", "--on-permission", "ask")
    assert asked.code == 0, asked.err
    assert 'asks for permission to use Bash: {"command": "make install"}' in asked.err
    assert "muster task allow" in asked.err
    (task,) = pool.muster("task", "list", "--json").data()
    assert task["permission"] == {"tool": "Bash", "input": {"command": "make install"}}
    refused = pool.muster("task", "approve", "last")
    assert (refused.code, "muster task allow" in refused.err) == (4, True)
    assert "continues when the pool is started" in pool.muster("task", "allow", "last").out
    pool.muster("pool", "start", "--until-idle")
    assert "Permission to use Bash was granted" in pool.muster("task", "result", "last").out
    over = pool.muster("task", "deny", "last", "--reason", "late")
    assert (over.code, "completed and has not asked for permission" in over.err) == (4, True)
    pool.muster("task", "run", "MOOD:permission again", "--on-permission", "ask")
    assert pool.muster("task", "deny", "last", "--reason", "not now").code == 0
    pool.muster("pool", "start", "--until-idle")
    assert "was denied: not now" in pool.muster("task", "result", "last").out


def test_a_failed_task_shows_command_exit_code_and_the_end_of_its_log(pool: Shell) -> None:
    (pool.folder / "muster.toml").write_text(ASKING)
    failed = pool.muster("task", "run", "MOOD:crash", "--agent", "asking")
    assert failed.code == 1
    assert "cannot reach the model" in failed.err
    assert "exit code: 3" in failed.err
    assert f"failed command: {sys.executable} -m muster.sim.cli_agent" in failed.err
    found = pool.muster("task", "result", "last", "--json").envelope()["data"]
    assert (found["exit_code"], found["stderr"]) == (3, "cannot reach the model")
    assert found["failed_command"] == f"{sys.executable} -m muster.sim.cli_agent"
    slot = pool.muster("pool", "slots", "--json").data()[0]
    assert slot.keys() >= {"session_id", "cost_usd", "worktree", "restart_count"}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("task", "result", "nothing"), 5, "task 'nothing' not found"),
        (("task", "submit", "x", "--schema", "nothing.json"), 5, "no such file"),
        (("chain", "progress", "last"), 5, "no chain yet"),
        (("verify", "resume", "last"), 5, "no verification yet"),
        (("task", "submit", " "), 2, "empty"),
        (("task", "submit", "x", "--agent", "nobody/at-all"), 3, "unknown agent"),
        (("task", "submit", "x", "--slot", "nobody"), 2, "no slot of the pool fits"),
        (("task", "submit", "x", "--effort", "high"), 3, "effort cannot be set for agent 'sim/echo'"),
        (("task", "submit", "x", "--budget", "much"), 2, "--budget must be an amount in dollars"),
        (("task", "list", "--state", "happy"), 2, "--state must be one of"),
        (("task", "claim", "nobody"), 5, "slot 'nobody' not found"),
        (("task", "change", "x"), 2, "nothing to change"),
        (("pool", "scale", "99"), 2, "max_slots"),
        (("pool", "context", "get", "nothing"), 5, "shared text 'nothing' not found"),
        (("pool", "message", "send", "nobody", "hi"), 5, "slot 'nobody' not found"),
        (("pool", "message", "read", "nobody"), 5, "slot 'nobody' not found"),
        (("fan-out", "nothing.yaml"), 5, "no such file"),
    ],
)
def test_what_cannot_be_done_is_told_plainly(pool: Shell, words: tuple[str, ...], code: int, told: str) -> None:
    result = pool.muster(*words)
    assert (result.code, told in result.err) == (code, True), result.err


def test_slots_are_scaled_drained_and_told_things(pool: Shell) -> None:
    assert len(pool.muster("pool", "scale", "4", "--json").data()) == 4
    assert len(pool.muster("pool", "scale", "-1", "--json").data()) == 3
    assert [slot["name"] for slot in pool.muster("pool", "slots", "--role", "writer", "--json").data()] == ["coder"]
    assert pool.muster("pool", "context", "set", "goal", "ship it").code == 0
    assert pool.muster("pool", "context", "get", "goal").out == "ship it\n"
    assert pool.muster("pool", "message", "send", "coder", "hi").code == 0
    assert pool.muster("pool", "message", "count", "coder").out == "1\n"
    assert "hi" in pool.muster("pool", "message", "peek", "coder").out
    assert [one["text"] for one in pool.muster("pool", "message", "read", "coder", "--json").data()] == ["hi"]
    assert pool.muster("pool", "message", "count", "coder").out == "0\n"
    assert pool.muster("pool", "context", "delete", "goal").code == 0
    assert pool.muster("pool", "context", "list", "--json").data() == {}
    drained = pool.muster("pool", "drain", "--timeout", "0", "--json").data()
    assert (drained["slots"]["stopped"], drained["draining"]) == (3, True)
    refused = pool.muster("task", "submit", "x")
    assert (refused.code, "drained" in refused.err) == (4, True)


def test_a_fan_out_prints_results_in_the_order_of_its_prompts(pool: Shell) -> None:
    (pool.folder / "many.yaml").write_text('prompts: ["one", "two"]\n')
    found = pool.muster("fan-out", "many.yaml", "--json").data()
    assert [task["output"] for task in found["results"]] == ["one", "two"]
    told = pool.muster("fan-out", "many.yaml").out
    assert 0 < told.index("1 of 2, task ") < told.index("\none\n") < told.index("2 of 2, task ") < told.index("\ntwo\n")
    (pool.folder / "most.yaml").write_text(f"prompts: {[str(number) for number in range(51)]}\n")
    refused = pool.muster("fan-out", "most.yaml")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    metrics = pool.muster("pool", "metrics", "--json").data()
    assert (metrics["tasks"], metrics["states"]["completed"]) == (4, 4)
    assert pool.muster("pool", "metrics", "--until", "1h", "--json").data()["tasks"] == 0
    assert "--until must be a duration or a date" in pool.muster("pool", "metrics", "--until", "soon").err


def test_the_log_of_a_task_and_the_pool_are_printed_while_they_last(pool: Shell) -> None:
    pool.muster("task", "run", "hello", "--review")
    log = pool.muster("task", "logs", "last")
    assert log.code == 0
    assert "\nhello\n" in log.out
    assert log.out.endswith("waiting for a person\n")
    lines = [json.loads(line) for line in pool.muster("task", "logs", "last", "--json").out.splitlines()]
    assert {"type": "output", "key": "work/000", "text": "hello"}.items() <= lines[3].items()
    assert [line["type"] for line in lines] == ["event", "event", "event", "output", "event"]
    watched = pool.muster("task", "watch")
    assert watched.code == 0
    assert "is pending_review in coder" in watched.out
    assert "1 pending_review" in watched.out
    (snapshot,) = (json.loads(line) for line in pool.muster("task", "watch", "--json").out.splitlines())
    assert snapshot["pool"]["tasks"]["pending_review"] == 1
    assert pool.muster("task", "logs", "nothing").code == 5


def test_files_that_two_tasks_changed_are_told_with_their_results(shell: Shell) -> None:
    repository = Repository(shell.folder)
    command = '["sh", "-c", "cat > work.txt; echo done"]'
    repository.write("muster.toml", f'[agents.writer]\nkind = "cli"\nbudget_usd = 0.0\ncommand = {command}\n')
    repository.commit()
    first, second = (
        shell.muster("task", "run", word, "--agent", "writer", "--json").data()["id"] for word in ("one", "two")
    )
    told = shell.muster("task", "result", second)
    assert (told.code, told.out) == (0, "done\n")
    assert f"work.txt is also changed by {first}; in the same lines: {first}" in told.err
    assert "is also changed by" in shell.muster("task", "diff", first).err
    (shared,) = shell.muster("task", "result", second, "--json").data()["overlaps"]
    assert (shared["path"], shared["examined"]) == ("work.txt", True)
    assert (shared["tasks"], shared["conflicts"]) == ([second, first], [[second, first]])
    assert shell.muster("task", "diff", second, "--json").data()["overlaps"] == [shared]
    assert f"work.txt is changed by {second}, {first}; in the same lines: " in shell.muster("pool", "overlaps").out
    assert shell.muster("pool", "overlaps", "--json").data()["overlaps"][0]["path"] == "work.txt"


def test_a_task_that_ended_is_not_canceled_and_a_canceled_one_stays_so(pool: Shell) -> None:
    done = pool.muster("task", "run", "hello", "--json").data()["id"]
    refused = pool.muster("task", "cancel", done, "--json")
    assert (refused.code, refused.error()["code"]) == (4, "conflict")
    assert refused.error()["message"] == f"task {done} completed; there is nothing to cancel"
    waiting = pool.muster("task", "submit", "later", "--json").data()["id"]
    for _ in range(2):
        assert pool.muster("task", "cancel", waiting, "--json").data()["state"] == "canceled"


def test_a_pool_is_driven_once_and_a_canceled_task_is_not_a_failure(pool: Shell) -> None:
    sleeper = '\n[agents.sleeper]\nkind = "program"\nmode = "plain"\ncommand = ["sleep", "600"]\n'
    pool.write("muster.toml", TOML + sleeper)
    submitted = pool.muster("task", "submit", "slowly", "--agent", "sleeper", "--json").data()
    with pool.start("pool", "start", "--json") as driver:
        line_with(driver.stderr, "running the pool of")
        second = pool.muster("pool", "start")
        assert second.code == 4
        assert "the pool is run by" in second.err
        assert "driving" not in second.err.replace("the pool is driven", "")
        assert pool.muster("task", "cancel", submitted["id"]).code == 0
        assert pool.muster("pool", "drain", "--timeout", "20").code == 0
        out, _ = driver.communicate(timeout=60)
        ended = json.loads(out)
    assert (driver.returncode, ended["ok"]) == (0, True)
    assert [task["state"] for task in ended["data"]["ended"]] == ["canceled"]


def test_a_task_with_too_little_left_is_rejected_with_a_higher_budget(pool: Shell) -> None:
    answer = '{"result": "done", "cost": 0.03}'
    dear = f'[agents.dear]\nkind = "cli"\ncommand = ["echo", {json.dumps(answer)}]\noutput = "json"\n'
    dear += 'answer = "$.result"\ncost_usd = "$.cost"\nbudget_usd = 0.05\n'
    (pool.folder / "muster.toml").write_text(TOML + dear)
    task = pool.muster("task", "submit", "x", "--agent", "dear", "--review", "--budget", "0.05", "--json").data()["id"]
    pool.muster("pool", "start", "--until-idle")
    refused = pool.muster("task", "reject", task, "--feedback", "again")
    assert (refused.code, "set a new total with --budget, at least $0.08" in refused.err) == (1, True)
    assert pool.muster("task", "result", task, "--json").data()["state"] == "pending_review"
    wrong = pool.muster("task", "reject", task, "--feedback", "again", "--budget", "much")
    assert (wrong.code, "--budget must be an amount in dollars" in wrong.err) == (2, True)
    pool.muster("task", "reject", task, "--feedback", "again", "--budget", "0.20")
    pool.muster("pool", "start", "--until-idle")
    waiting = pool.muster("task", "result", task, "--json").data()
    assert (waiting["state"], waiting["rejection_count"], waiting["cost_usd"]) == ("pending_review", 1, 0.06)


def test_a_pool_that_leaves_a_task_without_money_says_so_and_fails(pool: Shell) -> None:
    dear = '[agents.dear]\nkind = "cli"\ncommand = ["echo", "done"]\nbudget_usd = 0.05\n'
    (pool.folder / "muster.toml").write_text(TOML + dear)
    task = pool.muster("task", "submit", "x", "--agent", "dear", "--budget", "0.05", "--json").data()["id"]
    left = pool.muster("pool", "start", "--until-idle", "--budget", "0.01", "--json")
    assert (left.code, left.error()["code"]) == (1, "budget_exhausted")
    assert task in left.error()["message"]
    assert left.error()["suggestions"] == ["muster pool start --budget USD"]
    shown = pool.muster("task", "result", task, "--json").envelope()["data"]
    assert (shown["state"], shown["remedy"]) == ("pending", "muster pool start --budget USD")
    assert pool.muster("pool", "start", "--until-idle", "--budget", "1").code == 0
