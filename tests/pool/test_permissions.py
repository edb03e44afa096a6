"""Agents that ask for permission: the task fails, or waits without a process until a person has decided."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.app import Muster
from muster.app.pool.task_queries import Task
from muster.app.views.tasks import task_view
from muster.domain.errors import BadArgument, Conflict
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from muster.text.views import plain
from tests.pool.test_pool import drive, opened, state

POOL = """
[pool]
slots = 1
agent = "coder"
on_permission = "ask"

[[slots]]
name = "builder"
"""
CODER = """
[agents.coder]
kind = "cli"
command = [{python}, "-m", "muster.sim.cli_agent", "--script", {script}, "--audit", {audit}, "--state", {state}]
resume = ["--resume", "{{session}}"]
allow = ["--allow-tool", "{{tool}}"]
output = "jsonl"
answer = "$.result"
cost_usd = "$.total_cost_usd"
session = "$.session_id"
turns = "$.num_turns"
error = "$.is_error"
ends = "$.num_turns"
permission = "$.request.tool_name"
permission_input = "$.request.input"
budget_usd = 0.10
"""
INSTALL = {"name": "Bash", "input": {"command": "make install"}, "result": "installed"}
FETCH = {"name": "WebFetch", "input": {"url": "http://localhost/"}, "result": "fetched"}
# It asks for Bash, then for WebFetch, and answers with what it was told last.
RULES = [
    {"match": "WebFetch was", "steps": [{"ask_permission": INSTALL}, {"say": "{prompt}"}, {"cost": 0.02}]},
    {"match": "Bash was granted", "steps": [{"ask_permission": INSTALL}, {"ask_permission": FETCH}, {"say": "both"}]},
    {"match": "Bash was denied", "steps": [{"say": "{prompt}"}, {"cost": 0.02}]},
    {"match": "install", "steps": [{"ask_permission": INSTALL}, {"say": "installed"}]},
]


def coder(folder: Path) -> str:
    """Return the section of the scripted agent, which keeps its sessions and an audit."""
    (folder / "script.json").write_text(json.dumps(RULES))
    named = {"python": sys.executable, **{name: str(folder / name) for name in ("audit", "state")}}
    named["script"] = str(folder / "script.json")
    return CODER.format(**{name: json.dumps(value) for name, value in named.items()})


def started(folder: Path) -> list[dict[str, Any]]:
    """Return the calls that the agent was started for, by its own audit."""
    lines = [json.loads(line) for line in (folder / "audit").read_text().splitlines()]
    return [line for line in lines if line["event"] == "start"]


async def asked(m: Muster, prompt: str = "install it", **spec: Any) -> Task:
    """Submit a task and drive it until it asks."""
    task = await m.pool.tasks.submit(TaskSpec(prompt=prompt, **spec))
    await drive(m)
    return await m.pool.tasks.get(task.id)


async def test_a_task_whose_agent_asks_fails_with_tool_and_slot(tmp_path: Path) -> None:
    async with opened(tmp_path, POOL.replace('"ask"', '"fail"') + coder(tmp_path)) as m:
        failed = await asked(m)
        assert (failed.state, failed.permission) == (TaskState.FAILED, None)
        error = failed.run.error or {}
        assert error["code"] == "permission"
        assert error["message"] == "slot builder: agent 'coder' asked for permission to use Bash"
        assert (error["tool"], error["input"]) == ("Bash", {"command": "make install"})
        with pytest.raises(Conflict, match="failed and has not asked for permission"):
            await m.pool.tasks.allow(failed.id)


@pytest.mark.parametrize(
    ("pool", "slot", "task"), [("fail", "fail", "ask"), ("fail", "ask", None), ("ask", None, None)]
)
async def test_what_the_task_says_goes_over_the_slot_and_that_over_the_pool(
    tmp_path: Path, pool: str, slot: str | None, task: str | None
) -> None:
    toml = POOL.replace('"ask"', f'"{pool}"') + (f'on_permission = "{slot}"\n' if slot else "")
    async with opened(tmp_path, toml + coder(tmp_path)) as m:
        assert (await asked(m, on_permission=task)).state is TaskState.PENDING_REVIEW
    with pytest.raises(BadArgument, match="on_permission must be fail or ask"):
        TaskSpec(prompt="x", on_permission="maybe")  # type: ignore[arg-type]


async def test_several_questions_are_granted_and_each_call_is_made_once(tmp_path: Path) -> None:
    async with opened(tmp_path, POOL + coder(tmp_path)) as m:
        waiting = await asked(m)
        assert waiting.state is TaskState.PENDING_REVIEW
        assert plain(task_view(waiting))["permission"] == {"tool": "Bash", "input": {"command": "make install"}}
        assert not waiting.run.is_driven
        assert {slot.state for slot in await m.pool.slots()} == {"idle"}
        with pytest.raises(Conflict, match="asks for permission to use Bash") as caught:
            await m.pool.tasks.approve(waiting.id)
        assert caught.value.suggestions == (f"muster task allow {waiting.id}", f"muster task deny {waiting.id}")
        await m.pool.tasks.allow(waiting.id)
        with pytest.raises(Conflict, match="is pending and has not asked for permission"):
            await m.pool.tasks.allow(waiting.id)
        await drive(m)
        second = await m.pool.tasks.get(waiting.id)
        assert second.permission is not None
        assert (second.permission.tool, second.state) == ("WebFetch", TaskState.PENDING_REVIEW)
        await m.pool.tasks.allow(waiting.id)
        await drive(m)
        done = await m.pool.tasks.get(waiting.id)
        assert (done.state, done.permission, done.rejections) == (TaskState.COMPLETED, None, 0)
        assert done.reply is not None
        assert done.reply.text.endswith("Permission to use WebFetch was granted. Continue with the task.")
        call = await m.runs.call(done.run.id, "work/000/permission/002")
        assert call.entry.request["settings"]["granted_tools"] == ["Bash", "WebFetch"]
        events = [event.data for event in await m.runs.events(done.run.id) if event.kind == "task.permission"]
        assert [event["tool"] for event in events] == ["Bash", "WebFetch"]
    calls = started(tmp_path)
    assert len(calls) == 3
    assert len({call["session"] for call in calls}) == 1


async def test_an_agent_that_is_denied_goes_on_without_and_knows_why(tmp_path: Path) -> None:
    async with opened(tmp_path, POOL + coder(tmp_path)) as m:
        waiting = await asked(m, review=True)
        await m.pool.tasks.deny(waiting.id, "use the package")
        await drive(m)
        reviewed = await m.pool.tasks.get(waiting.id)
        assert (reviewed.state, reviewed.permission) == (TaskState.PENDING_REVIEW, None)
        assert reviewed.reply is not None
        told = "Permission to use Bash was denied: use the package\nContinue with the task without it."
        assert reviewed.reply.text.endswith(told)
        with pytest.raises(Conflict, match="is pending_review and has not asked for permission"):
            await m.pool.tasks.deny(waiting.id)
        await m.pool.tasks.approve(waiting.id)
        await drive(m)
        assert await state(m, waiting) is TaskState.COMPLETED


async def test_another_tool_can_be_granted_than_the_one_that_is_asked_for(tmp_path: Path) -> None:
    async with opened(tmp_path, POOL + coder(tmp_path)) as m:
        waiting = await asked(m)
        with pytest.raises(BadArgument, match="printable characters"):
            await m.pool.tasks.allow(waiting.id, tool="a\nb")
        await m.pool.tasks.allow(waiting.id, tool="Bash(make:*)")
        await drive(m)
        done = await m.pool.tasks.get(waiting.id)
        call = await m.runs.call(done.run.id, "work/000/permission/001")
        assert call.entry.request["settings"]["granted_tools"] == ["Bash(make:*)"]


async def test_what_was_granted_holds_in_the_next_round_too(tmp_path: Path) -> None:
    rules = [
        {"match": "rejected", "steps": [{"ask_permission": INSTALL}, {"say": "second round"}]},
        {"match": "Bash was granted", "steps": [{"ask_permission": INSTALL}, {"say": "first round"}]},
        {"match": "install", "steps": [{"ask_permission": INSTALL}, {"say": "installed"}]},
    ]
    async with opened(tmp_path, POOL + coder(tmp_path)) as m:
        (tmp_path / "script.json").write_text(json.dumps(rules))
        waiting = await asked(m, review=True)
        await m.pool.tasks.allow(waiting.id)
        await drive(m)
        await m.pool.tasks.reject(waiting.id, "again")
        await drive(m)
        second = await m.pool.tasks.get(waiting.id)
        assert second.reply is not None
        assert (second.reply.text, second.rejections, second.permission) == ("second round", 1, None)


async def test_a_task_that_waits_for_a_permission_can_be_canceled_and_tried_again_from_there(tmp_path: Path) -> None:
    async with opened(tmp_path, POOL + coder(tmp_path)) as m:
        waiting = await asked(m)
        assert (await m.pool.tasks.cancel(waiting.id)).state is TaskState.CANCELED
        with pytest.raises(Conflict, match="was canceled and has not asked for permission"):
            await m.pool.tasks.allow(waiting.id)
        await m.pool.tasks.retry(waiting.id)
        await drive(m)
        again = await m.pool.tasks.get(waiting.id)
        assert again.permission is not None
        assert len(started(tmp_path)) == 1  # the question is known, and not paid for a second time
        await m.pool.tasks.deny(waiting.id)
        await drive(m)
        assert await state(m, waiting) is TaskState.COMPLETED


@pytest.mark.parametrize("left_out", ["resume = [", "session = "])
async def test_an_agent_that_cannot_be_continued_fails_and_says_so(tmp_path: Path, left_out: str) -> None:
    section = "\n".join(line for line in coder(tmp_path).splitlines() if not line.startswith((left_out, "allow = [")))
    async with opened(tmp_path, POOL + section) as m:
        failed = await asked(m)
        assert failed.state is TaskState.FAILED
        message = str((failed.run.error or {})["message"])
        assert "asked for permission to use Bash, and cannot be continued" in message
        assert "slot builder" in message


async def test_a_question_in_plain_text_stops_the_agent_and_fails_the_task(tmp_path: Path) -> None:
    asks = """
[agents.coder]
kind = "cli"
command = ["sh", "-c", "printf 'Allow Bash? [y/N] '; exec sleep 600"]
permission_patterns = ["^Allow (?P<tool>[A-Za-z]+)[?]"]
budget_usd = 0.0
"""
    async with opened(tmp_path, POOL + asks) as m:
        failed = await asked(m)
        error = failed.run.error or {}
        assert (failed.state, error["tool"]) == (TaskState.FAILED, "Bash")
        assert error["input"] == {"text": "Allow Bash? [y/N]"}
        assert "cannot be continued" in str(error["message"])
