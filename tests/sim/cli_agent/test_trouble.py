"""How the scripted CLI agent misbehaves, and which scripts it refuses."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from .program import BARE, COMMAND, play, run


def start(folder: Path, prompt: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [*COMMAND, prompt],
        cwd=folder,
        env=BARE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )


def end(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(120)
    assert process.stdout is not None
    process.stdout.close()


def first_lines(process: "subprocess.Popen[bytes]", count: int) -> list[dict[str, Any]]:
    assert process.stdout is not None
    return [json.loads(process.stdout.readline()) for _ in range(count)]


def test_a_crash_exits_with_its_code_after_what_was_half_written(tmp_path: Path) -> None:
    ran = play(tmp_path, {"crash": {"code": 7, "partial": '{"type":', "log": "why\n"}})
    assert (ran.status, ran.log, ran.output.splitlines()[-1]) == (7, "why\n", b'{"type":')
    assert play(tmp_path, {"crash": 5}).status == 5


def test_a_crash_can_be_a_signal_and_leaves_no_file(tmp_path: Path) -> None:
    assert play(tmp_path, {"crash": {"signal": int(signal.SIGSEGV)}}).status == -signal.SIGSEGV
    assert [path.name for path in tmp_path.iterdir()] == ["script.json"]


def test_one_that_hangs_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    process = start(tmp_path, "MOOD:hang")
    [line] = first_lines(process, 1)
    assert line["subtype"] == "init"
    process.terminate()
    assert process.wait(120) == -signal.SIGTERM
    assert process.stdout is not None
    process.stdout.close()


def test_one_that_ignores_the_request_stays(tmp_path: Path) -> None:
    process = subprocess.Popen([*COMMAND, "MOOD:ignore-term"], cwd=tmp_path, env=BARE, stdout=subprocess.PIPE)
    first_lines(process, 1)
    status = Path(f"/proc/{process.pid}/status")

    def ignored() -> int:
        return int(next(line for line in status.read_text().splitlines() if line.startswith("SigIgn")).split()[1], 16)

    while not ignored() & (1 << (signal.SIGTERM - 1)):  # said after its first line
        os.sched_yield()
    process.terminate()
    process.kill()
    assert process.wait(120) == -signal.SIGKILL
    assert process.stdout is not None
    process.stdout.close()


def test_it_stays_after_its_result_when_it_should(tmp_path: Path) -> None:
    process = start(tmp_path, "MOOD:no-exit")
    assert first_lines(process, 4)[-1]["type"] == "result"
    assert process.poll() is None
    end(process)


@pytest.mark.parametrize("escape", [False, True])
def test_children_stay_in_its_group_or_leave_it(tmp_path: Path, escape: bool) -> None:
    mark = f"{tmp_path}-{escape}"
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"steps": [{"children": {"count": 2, "escape": escape}}, {"say": "left"}]}]))
    process = subprocess.Popen(
        [*COMMAND, "--script", str(script), "hello"],
        env={**BARE, "MARK": mark},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    output, _ = process.communicate(timeout=200)  # they do not hold its output
    assert json.loads(output.splitlines()[-1])["result"] == "left"
    children = carrying(f"MARK={mark}")
    try:
        assert len(children) == 2
        assert {os.getpgid(pid) == process.pid for pid in children} == {not escape}
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)


def carrying(variable: str) -> list[int]:
    """Find the processes that have this in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if variable.encode() in environment:
            found.append(int(folder.name))
    return found


def test_noise_is_what_was_asked_for(tmp_path: Path) -> None:
    ran = play(
        tmp_path,
        {"noise": {"text": "ab", "size": 7}},
        {"noise": {"invalid": True}},
        {"noise": {"text": "here", "to": "stderr"}},
    )
    assert ran.output.split(b"\n")[1:3] == [b"abababa", b"\xff\xfe\xc3noise"]
    assert ran.log == "here\n"


def test_what_is_written_after_the_output_was_closed_is_lost(tmp_path: Path) -> None:
    ran = play(tmp_path, {"say": "heard"}, {"close_stdout": True}, {"say": "lost"})
    assert ([line["type"] for line in ran.lines], ran.status) == (["system", "stream_event", "assistant"], 0)


def test_it_goes_on_when_nobody_listens(tmp_path: Path) -> None:
    audit = tmp_path / "audit"
    process = subprocess.Popen(
        [*COMMAND, "--audit", str(audit), "MOOD:slow"], cwd=tmp_path, env=BARE, stdout=subprocess.PIPE
    )
    first_lines(process, 1)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(120) == 0
    assert '"finish"' in audit.read_text()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("{", "cannot be read"),
        ("{}", "must be a list of rules"),
        ('[{"match": "("}]', "rule 1: match is not a regular expression"),
        ('[{"match": 5, "steps": []}]', "match is not a regular expression"),
        ('[{"steps": [], "then": []}]', "and nothing else"),
        ("[5]", "rule 1: must have steps"),
        ("[{}]", "steps must be a list"),
        ('[{"steps": [{"say": "a", "think": "b"}]}]', "step 1: a step is one name with its value"),
        ('[{"steps": [{"say": "a"}, {"shout": "b"}]}]', "step 2: unknown step 'shout'; use one of say, think"),
        ('[{"steps": [{"say": 5}]}]', "say does not take 5"),
        ('[{"steps": [{"cost": true}]}]', "cost does not take True"),
        ('[{"steps": [{"tool": {}}]}]', "a tool needs a name"),
        ('[{"steps": [{"tools": ["x", 5]}]}]', "a tool needs a name"),
        ('[{"steps": [{"tool": {"name": "x", "meanwhile": [{"shout": 1}]}}]}]', "unknown step 'shout'"),
    ],
)
def test_a_script_that_cannot_be_played_is_told(tmp_path: Path, script: str, message: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(script)
    ran = run(tmp_path, "--script", str(path), prompt="hello")
    assert (ran.status, ran.output) == (2, b"")
    assert message in ran.log


def test_the_first_rule_that_fits_is_played_and_else_the_mood(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    rules = [{"match": "^b.*y", "steps": [{"say": "first"}]}, {"match": "b", "steps": [{"say": "second"}]}]
    path.write_text(json.dumps(rules))
    for prompt, answer in (("buy", "first"), ("a bag", "second"), ("echo", "echo"), ("MOOD:no such", None)):
        ran = run(tmp_path, "--script", str(path), prompt=prompt)
        assert (ran.result["result"] if ran.lines else None) == answer


def test_the_script_of_the_documentation_is_played(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "AGENTS.md").read_text(encoding="utf-8")
    path = tmp_path / "script.json"
    path.write_text(next(block for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if '"steps"' in block))
    (tmp_path / "a.py").write_text("x = 1\n")
    ran = run(tmp_path, "--script", str(path), prompt="fix it")
    assert (ran.result["result"], ran.result["total_cost_usd"]) == ("Fixed: fix it", 0.12)
    assert (tmp_path / "a.py").read_text() == "x = 2\n"
    assert run(tmp_path, "--script", str(path), prompt="hello").result["is_error"]
