"""`muster chain`: run, plan, progress, resume, cancel and list, with exit codes and `--json`."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from muster.cli.main import run
from tests.git.repository import Repository

from .shell import Result, Shell, line_with

STEPS = [{"name": "a", "prompt": "hello {input.x}"}, {"name": "b", "command": ["test", "-e", "there"]}]


@dataclass
class ChainFolder:
    """The command in this process, in a folder with chains."""

    folder: Path
    _capsys: pytest.CaptureFixture[str]

    def write(self, *steps: Any, name: str = "chain.yaml", **top: Any) -> str:
        given = {"name": "c", "agent": "sim/echo", "inputs": {"x": {"default": "you"}}, **top}
        (self.folder / name).write_text(json.dumps({**given, "steps": steps}), encoding="utf-8")
        return name

    def muster(self, *arguments: str) -> Result:
        code = run([*arguments])
        seen = self._capsys.readouterr()
        return Result(code=code, out=seen.out, err=seen.err)


@pytest.fixture
def chains(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[ChainFolder]:
    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield ChainFolder(tmp_path, capsys)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_a_chain_is_run_and_its_last_output_printed(chains: ChainFolder) -> None:
    done = chains.muster("chain", "run", chains.write(STEPS[0]), "--input", "x=bees", "--tag", "t", "--name", "mine")
    assert done.code == 0
    assert done.out.splitlines()[-1] == "hello bees"
    assert "1 of 1 step completed" in done.out
    told = chains.muster("runs", "show", "mine", "--json").data()
    assert (told["workload"], told["tags"]) == ("chain", ["t"])


def test_json_is_the_view_of_the_progress(chains: ChainFolder) -> None:
    data = chains.muster("chain", "run", chains.write(STEPS[0]), "--json").data()
    assert {
        "total_steps",
        "current_step",
        "current_name",
        "partial_output",
        "started_at",
        "completed_steps",
        "status",
    } <= set(data)
    assert data["steps"] == [
        {
            "name": "a",
            "status": "completed",
            "output": "hello you",
            "values": {},
            "cost_usd": 0.0,
            "retries_used": 0,
            "skipped": None,
            "items": None,
            "error": None,
        }
    ]
    assert chains.muster("chain", "progress", data["id"], "--json").data() == data


def test_a_failed_chain_exits_1_and_is_resumed(chains: ChainFolder) -> None:
    path = chains.write(*STEPS, {"name": "c", "prompt": "end"})
    failed = chains.muster("chain", "run", path)
    assert failed.code == 1
    assert "step 'b' failed: the command exited with code 1" in failed.err
    told = chains.muster("chain", "progress", "last", "--json").data()
    assert (told["status"], told["current_step"], told["current_name"]) == ("failed", 2, "b")
    assert [step["status"] for step in told["steps"]] == ["completed", "failed", "skipped"]
    (chains.folder / "there").touch()
    resumed = chains.muster("chain", "resume", "last", "--json").data()
    assert (resumed["status"], resumed["completed_steps"]) == ("completed", 3)
    assert chains.muster("chain", "resume", "last").code == 0  # its result once more


def test_a_failed_chain_in_json_is_an_error_with_what_is_there(chains: ChainFolder) -> None:
    failed = chains.muster("chain", "run", chains.write(*STEPS), "--json")
    envelope = failed.envelope()
    assert (failed.code, envelope["ok"], envelope["error"]["code"]) == (1, False, "step_failed")
    assert envelope["data"]["steps"][0]["output"] == "hello you"


def test_several_chains_are_run_at_once_and_one_that_fails_drops_none(chains: ChainFolder) -> None:
    good = chains.write(STEPS[0], name="good.yaml", inputs={"x": {}})
    bad = chains.write(STEPS[1], name="bad.yaml", inputs={})
    done = chains.muster("chain", "run", good, bad, "--input", "x=1", "--json")
    assert done.code == 1
    envelope = done.envelope()
    assert [one["status"] for one in envelope["data"]["chains"]] == ["completed", "failed"]
    both = chains.muster("chain", "run", good, good)
    assert both.code == 0
    assert both.out.count("completed: 1 of 1 step") == 2
    assert len(chains.muster("chain", "list", "--json").data()) == 4


def test_rows_are_run_as_children_of_one_run(chains: ChainFolder) -> None:
    (chains.folder / "rows.jsonl").write_text('{"x": 1}\n\n{"x": 2}\n', encoding="utf-8")
    data = chains.muster("chain", "run", chains.write(STEPS[0]), "--inputs", "rows.jsonl", "--json").data()
    assert (data["total_steps"], data["completed_steps"]) == (2, 2)
    assert [row["status"] for row in data["rows"]] == ["completed", "completed"]
    assert len(chains.muster("chain", "list", "--json").data()) == 1


def test_rows_print_what_they_gave_also_when_another_failed(chains: ChainFolder) -> None:
    (chains.folder / "rows.jsonl").write_text('{"x": "one"}\n{"x": "two"}\n', encoding="utf-8")
    done = chains.muster("chain", "run", chains.write(STEPS[0]), "--inputs", "rows.jsonl")
    assert (done.code, "row 1:\nhello one\n" in done.out, "row 2:\nhello two\n" in done.out) == (0, True, True)
    last = {"name": "c", "prompt": "hello {input.x}"}
    failing = [STEPS[0], {"name": "b", "command": ["test", "{input.x}", "=", "one"]}, last]
    failed = chains.muster("chain", "run", chains.write(*failing), "--inputs", "rows.jsonl", "--json").envelope()
    assert [row["output"] for row in failed["data"]["rows"]] == ["hello one", None]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("chain.yaml", "--input", "y=1"), 2, "unknown input 'y'"),
        (("chain.yaml", "--input", "y"), 2, "has no value"),
        (("cases.yaml",), 2, "cases.yaml: is a suite, not a chain"),
        (
            ("wants.yaml", "--input", "y=1"),
            2,
            "unknown input 'y'; its inputs are z",
        ),
        (("chain.yaml", "--inputs", "bad.jsonl"), 2, "bad.jsonl:2: it is JSON, but no object"),
        (("chain.yaml", "--inputs", "none.jsonl"), 2, "none.jsonl: cannot be read"),
        (("chain.yaml", "chain.yaml", "--name", "n"), 2, "--name can be used with one chain only"),
        (("chain.yaml", "chain.yaml", "--inputs", "bad.jsonl"), 2, "--inputs can be used with one chain only"),
        (("chain.yaml", "chain.yaml", "--input", "y=1"), 2, "none of the chains has an input 'y'"),
        (("nothing.yaml",), 5, "no such file"),
        (("broken.yaml",), 2, "broken.yaml:1: steps[0].prompt: unknown name {x}"),
        (("agent.yaml",), 3, "unknown scripted agent"),
        (("program.yaml",), 3, "program 'no-such-program-here' not found"),
    ],
)
def test_what_cannot_be_run_is_refused_and_nothing_is_stored(
    chains: ChainFolder, arguments: tuple[str, ...], code: int, words: str
) -> None:
    chains.write(STEPS[0])
    chains.write({"name": "a", "prompt": "{x}"}, name="broken.yaml")
    chains.write({"name": "a", "prompt": "x"}, name="agent.yaml", agent="sim/nobody")
    chains.write({"name": "a", "prompt": "x"}, name="wants.yaml", inputs={"z": {"required": True}})
    (chains.folder / "cases.yaml").write_text("schema_version: 1\ncases: []\n", encoding="utf-8")
    chains.write({"name": "a", "command": ["no-such-program-here"]}, name="program.yaml")
    (chains.folder / "bad.jsonl").write_text('{"x": 1}\n[1]\n', encoding="utf-8")
    done = chains.muster("chain", "run", *arguments, "--json")
    assert done.code == code, done
    assert words in done.error()["message"]
    assert chains.muster("chain", "list", "--json").data() == []


def test_a_plan_spends_nothing(chains: ChainFolder) -> None:
    path = chains.write({"name": "a", "prompt": "x", "retries": 2}, {"name": "b", "prompt": "y", "when": "false"})
    data = chains.muster("chain", "plan", path, "--json").data()
    assert [(one["name"], one["calls"], one["most_calls"]) for one in data["steps"]] == [("a", 1, 3), ("b", 0, 1)]
    assert "together" in chains.muster("chain", "plan", path).out
    assert not (chains.folder / ".muster").exists()


def test_detached_it_is_left_to_workers(chains: ChainFolder) -> None:
    queued = chains.muster("chain", "run", chains.write(STEPS[0]), "--detach", "--json").data()
    assert queued["status"] == "queued"
    other = chains.muster("chain", "run", "chain.yaml", "--detach", "--json").data()
    canceled = chains.muster("chain", "cancel", queued["id"], "--json").data()
    assert canceled["state"] == "canceled"
    assert chains.muster("worker", "--until-idle").code == 0
    told = {one: chains.muster("chain", "progress", one, "--json").data() for one in (queued["id"], other["id"])}
    assert [one["steps"][0]["status"] for one in told.values()] == ["skipped", "completed"]


def test_other_runs_are_not_chains(chains: ChainFolder) -> None:
    chains.muster("ask", "sim/echo", "hello", "--name", "question")
    for verb in ("progress", "resume", "cancel"):
        assert "not a chain" in chains.muster("chain", verb, "question").err
    assert chains.muster("chain", "progress", "nobody").code == 5


def test_validate_finds_chains_by_name_and_by_what_is_in_them(chains: ChainFolder) -> None:
    chains.write(STEPS[0])
    for name, prompt in (("other", "hello"), ("broken", "'{x}'")):
        text = f"name: c\nagent: sim/echo\nsteps:\n  - name: a\n    prompt: {prompt}\n"
        (chains.folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    assert chains.muster("validate", "chain.yaml").out == "chain.yaml: chain c, 1 step\n"
    assert chains.muster("validate", "other.yaml", "chain.yaml").code == 0
    broken = chains.muster("validate", "broken.yaml", "other.yaml")
    assert (broken.code, "broken.yaml:5: steps[0].prompt: unknown name {x}" in broken.err) == (2, True)
    data = chains.muster("validate", "broken.yaml", "--json").envelope()["data"]
    assert data["chains"][0]["flaws"][0]["line"] == 5


def test_a_new_chain_is_valid_and_runs(chains: ChainFolder) -> None:
    assert chains.muster("init", "my-notes", "--kind", "chain").code == 0
    assert chains.muster("validate", "my-notes").out == "my-notes/chain.yaml: chain my-notes, 5 steps\n"
    assert chains.muster("chain", "run", "my-notes/chain.yaml", "-i", "topic=bees").code == 0


def test_killed_in_the_middle_it_goes_on_with_what_was_done(shell: Shell) -> None:
    script = "echo x >> ran; test -e go || exec sleep 600"
    steps = [
        {"name": "first", "command": ["sh", "-c", "echo x >> once"]},
        {"name": "second", "command": ["sh", "-c", script]},
        {"name": "third", "prompt": "{steps.first.output}end"},
    ]
    shell.write("chain.yaml", json.dumps({"name": "c", "agent": "sim/echo", "steps": steps}))
    with shell.start("chain", "run", "chain.yaml", "--name", "killed") as process:
        line_with(process.stderr, "1 of 3 steps done")
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    told = shell.muster("chain", "progress", "killed", "--json").data()
    assert (told["status"], [step["status"] for step in told["steps"]]) == (
        "interrupted",
        ["completed", "pending", "pending"],
    )
    shell.write("go", "")
    done = shell.muster("chain", "resume", "killed", "--json").data()
    assert (done["id"], done["status"]) == (told["id"], "completed")
    assert (shell.folder / "once").read_text() == "x\n"
    assert (shell.folder / "ran").read_text() == "x\nx\n"


def test_a_chain_in_a_worktree_leaves_its_branch_also_when_it_is_canceled(shell: Shell) -> None:
    repository = Repository(shell.folder / "work")
    repository.write("a.txt", "one\n")
    repository.commit()
    inside = Shell(repository.folder)
    steps = [
        {"name": "edit", "command": ["sh", "-c", "echo two > a.txt"]},
        {"name": "wait", "command": ["sh", "-c", "test -e go || exec sleep 600"]},
    ]
    inside.write("chain.yaml", json.dumps({"name": "c", "isolation": "worktree", "steps": steps}))
    with inside.start("chain", "run", "chain.yaml", "--name", "mine") as process:
        line_with(process.stderr, "1 of 2 steps done")
        assert inside.muster("chain", "cancel", "mine", "--json").data()["state"] == "canceled"
        process.wait()
    told = inside.muster("chain", "progress", "mine", "--json").data()
    assert [step["status"] for step in told["steps"]] == ["completed", "skipped"]
    assert repository.git("show", f"{told['branch']}:a.txt") == "two\n"
    assert (repository.folder / "a.txt").read_text() == "one\n"
    outside = shell.muster("chain", "run", "work/chain.yaml", "--json")
    assert "is not in a git repository" in outside.error()["message"]
    assert shell.muster("chain", "list", "--json").data() == []
