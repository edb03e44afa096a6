"""What the scripted CLI agent writes, line by line."""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

from muster.sim.cli_agent.player import ACTIONS
from muster.sim.cli_agent.script import STEPS

from .program import BARE, COMMAND, play, run


def test_a_call_begins_with_who_it_is_and_ends_with_its_result(tmp_path: Path) -> None:
    ran = run(tmp_path, "--model", "m", prompt="hello world")
    assert [line["type"] for line in ran.lines] == ["system", "stream_event", "stream_event", "assistant", "result"]
    first, *_, last = ran.lines
    assert (first["subtype"], first["model"], first["cwd"]) == ("init", "m", str(tmp_path))
    assert "Bash" in first["tools"]
    assert {line["session_id"] for line in ran.lines} == {first["session_id"]}
    assert (last["subtype"], last["is_error"], last["result"]) == ("success", False, "hello world")
    assert (last["num_turns"], last["total_cost_usd"]) == (1, 0.01)
    assert last["usage"] == {"input_tokens": 3, "output_tokens": 3}
    assert last["duration_ms"] >= 0
    assert ran.status == 0


def test_the_prompt_may_be_an_argument(tmp_path: Path) -> None:
    assert run(tmp_path, "--", "--hello").result["result"] == "--hello"


def test_text_is_streamed_in_words(tmp_path: Path) -> None:
    ran = run(tmp_path, prompt=" one  two\nthree ")
    texts = [line["event"]["delta"]["text"] for line in ran.of("stream_event")]
    assert texts == [" one  ", "two\n", "three "]


def test_a_long_text_is_streamed_in_not_too_many_pieces(tmp_path: Path) -> None:
    prompt = "wörd " * 20_000
    ran = run(tmp_path, prompt=prompt)
    texts = [line["event"]["delta"]["text"] for line in ran.of("stream_event")]
    assert ("".join(texts), len(texts) <= 500) == (prompt, True)


def test_tools_are_told_with_their_results(tmp_path: Path) -> None:
    tool = {"name": "Search", "input": {"for": "{prompt}"}, "result": "nothing for {prompt}", "failed": True}
    ran = play(tmp_path, {"think": "hm"}, {"tool": tool}, {"say": "no"})
    thought, used, _ = (line["message"]["content"][0] for line in ran.of("assistant"))
    assert thought == {"type": "thinking", "thinking": "hm"}
    assert used == {"type": "tool_use", "id": "toolu_01", "name": "Search", "input": {"for": "hello"}}
    [given] = ran.of("user")[0]["message"]["content"]
    assert given == {
        "type": "tool_result",
        "tool_use_id": "toolu_01",
        "content": "nothing for hello",
        "is_error": True,
    }
    assert ran.result["num_turns"] == 2


def test_what_is_put_into_a_text_is_not_looked_at_again(tmp_path: Path) -> None:
    step = {"tool": {"name": "x", "meanwhile": [{"say": "{prompt} {model} {turns}"}]}}
    assert play(tmp_path, step, prompt="{model}").result["result"] == "{model} scripted 0"


def test_real_tools_work_in_the_folder_and_nowhere_else(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path)
    (folder / "twice").write_text("aa")
    uses = [
        {"name": "Write", "input": {"file_path": "new", "content": "text"}},
        {"name": "Read", "input": {"file_path": str(folder / "new")}},
        {"name": "Write", "input": {"file_path": "../new", "content": "text"}},
        {"name": "Read", "input": {"file_path": "link/secret"}},
        {"name": "Read", "input": {"file_path": "/etc/passwd"}},
        {"name": "Read", "input": {"file_path": "missing"}},
        {"name": "Edit", "input": {"file_path": "twice", "old_string": "a", "new_string": "b"}},
        {"name": "Edit", "input": {"file_path": "new"}},
    ]
    ran = play(folder, {"tools": uses})
    given = ran.of("user")[0]["message"]["content"]
    assert [each["is_error"] for each in given] == [False, False, True, True, True, True, True, True]
    assert given[1]["content"] == "text"
    assert "outside of the working directory" in given[2]["content"]
    assert "secret" not in json.dumps(given[3]["content"]).replace("link/secret", "")
    assert not (tmp_path / "new").exists()
    assert (folder / "twice").read_text() == "aa"


def test_the_answer_can_be_set(tmp_path: Path) -> None:
    ran = play(tmp_path, {"say": "said"}, {"result": "{session}"}, {"structured": [1]}, {"turns": 9}, {"cost": 1})
    last = ran.result
    assert (last["result"], last["structured_output"]) == (last["session_id"], [1])
    assert (last["num_turns"], last["total_cost_usd"]) == (9, 1)


def test_a_failure_is_told_and_exits_with_one(tmp_path: Path) -> None:
    ran = play(tmp_path, {"error": {"text": "no more", "subtype": "error_max_turns"}})
    assert (ran.result["subtype"], ran.result["is_error"], ran.result["result"]) == ("error_max_turns", True, "no more")
    assert ran.status == 1


def test_a_budget_is_looked_at_after_the_turn(tmp_path: Path) -> None:
    steps = ({"say": "done"}, {"cost": 0.5})
    over = play(tmp_path, *steps, arguments=("--max-budget-usd", "0.4"))
    assert (over.result["subtype"], over.result["total_cost_usd"], over.status) == ("error_max_budget_usd", 0.5, 1)
    assert play(tmp_path, *steps, arguments=("--max-budget-usd", "0.5")).result["subtype"] == "success"


def test_permission_can_be_given_and_refused(tmp_path: Path) -> None:
    for behavior, result in (("allow", "installed"), ("deny", "no!")):
        answer = {"response": {"response": {"behavior": behavior, "message": "no!"}}}
        done = subprocess.run(
            [*COMMAND, "MOOD:permission"],
            cwd=tmp_path,
            env=BARE,
            input=json.dumps(answer).encode() + b"\n",
            capture_output=True,
            timeout=200,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        [asked] = [line for line in lines if line["type"] == "control_request"]
        assert asked["request"] == {
            "subtype": "can_use_tool",
            "tool_name": "Bash",
            "input": {"command": "make install"},
        }
        [given] = next(line for line in lines if line["type"] == "user")["message"]["content"]
        assert (given["content"], given["is_error"]) == (result, behavior == "deny")
        assert lines[-1]["result"] == "It is installed."


def test_the_session_is_named_after_the_prompt_and_the_folder(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    names = [
        run(folder, prompt=prompt).result["session_id"]
        for folder, prompt in ((tmp_path, "a"), (tmp_path, "a"), (tmp_path, "b"), (other, "a"))
    ]
    assert names[0] == names[1]
    assert len(set(names)) == 3
    assert run(tmp_path, "--session-id", "mine", prompt="a").result["session_id"] == "mine"


def test_a_session_is_kept_and_resumed(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    first = run(tmp_path, "--state", state, "--session-id", "../x", prompt="MOOD:tools")
    assert (first.result["num_turns"], first.result["session_turns"]) == (3, 3)
    again = run(tmp_path, "--resume", "../x", prompt="more", SCRIPTED_CLI_STATE=state)
    assert (again.result["session_id"], again.result["num_turns"], again.result["session_turns"]) == ("../x", 1, 4)
    unknown = run(tmp_path, "--resume", "other", "--state", state, prompt="more")
    assert (unknown.status, unknown.output) == (1, b"")
    assert "No conversation found with session ID: other" in unknown.log
    assert run(tmp_path, "--resume", "other", prompt="more").result["session_turns"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["state"]  # whatever a session is called


def test_the_audit_tells_of_every_start_and_finish(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    prompt = "p" * 100
    run(tmp_path, "--audit", str(audit), "--session-id", "s", prompt=prompt)
    run(tmp_path, prompt="MOOD:crash", SCRIPTED_CLI_AUDIT=str(audit))
    start, finish, crashed = map(json.loads, audit.read_text().splitlines())
    assert (start["event"], finish["event"], crashed["event"]) == ("start", "finish", "start")
    assert start["pid"] == finish["pid"] != crashed["pid"]
    assert start["prompt_digest"] == finish["prompt_digest"] == hashlib.sha256(prompt.encode()).hexdigest()
    assert (start["prompt"], start["session"]) == (prompt[:80], "s")
    assert start["at"] <= finish["at"] <= crashed["at"]


def test_many_calls_write_one_audit_without_mixing_lines(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    calls = [
        subprocess.Popen(
            [*COMMAND, "--audit", str(audit), f"prompt {number}"], cwd=tmp_path, env=BARE, stdout=subprocess.DEVNULL
        )
        for number in range(10)
    ]
    assert [each.wait(30) for each in calls] == [0] * 10
    events = [json.loads(line) for line in audit.read_text().splitlines()]
    assert sorted((each["prompt"], each["event"]) for each in events) == sorted(
        (f"prompt {number}", event) for number in range(10) for event in ("start", "finish")
    )


def test_it_loads_nothing_that_makes_its_start_slow(tmp_path: Path) -> None:
    program = "import sys, muster.sim.cli_agent.__main__; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], cwd=tmp_path, env=BARE, text=True).split()
    assert "muster.sim.cli_agent.player" in loaded
    slow = {"asyncio", "dataclasses", "inspect", "pathlib", "pydantic", "shutil", "socket", "subprocess", "yaml"}
    assert slow.isdisjoint(loaded)
    assert [name for name in loaded if name.startswith("muster.") and not name.startswith("muster.sim")] == []


def test_every_step_that_is_known_can_be_played() -> None:
    assert ACTIONS.keys() == STEPS.keys()


def test_what_it_hears_is_repeated_and_can_be_said(tmp_path: Path) -> None:
    heard = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "hello"}}
    (tmp_path / "script.json").write_text(json.dumps([{"steps": [{"hear": True}, {"say": "I heard {message}."}]}]))
    command = [*COMMAND, "--script", "script.json", "begin"]
    given = (json.dumps(heard) + "\n").encode()
    out = subprocess.run(command, cwd=tmp_path, env=BARE, input=given, capture_output=True, check=True, timeout=60)
    lines = [json.loads(line) for line in out.stdout.splitlines()]
    assert [line for line in lines if line["type"] == "user"] == [
        {**heard, "isReplay": True, "session_id": lines[0]["session_id"]}
    ]
    assert lines[-1]["result"] == "I heard hello."


def test_a_tool_of_an_unknown_server_fails(tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text(json.dumps([{"steps": [{"tool": {"name": "mcp__muster__x"}}]}]))
    ran = run(tmp_path, "--script", "script.json", prompt="go")
    (block,) = ran.of("user")[0]["message"]["content"]
    assert (block["is_error"], "MUSTER_MCP_CONFIG is not set" in block["content"]) == (True, True)
