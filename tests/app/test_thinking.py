"""Models that think get their thinking back in the turns of a tool loop, byte for byte, however an answer came."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from json import dumps
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.app.views.calls import call_view
from muster.domain.call import message_of
from muster.domain.content import BlockKind
from muster.domain.rules import CURRENT_RULES
from muster.testing.sim import RehearsalProcess
from muster.text.views import plain

MODELS = {"anthropic": ("claude-haiku-5-5", "claude-sonnet-5-5"), "openai": ("gpt-5-mini", "gpt-5")}
LONG = 20_000  # tokens, above which answers are streamed
TURNS = 5
BRISK = muster.Patience(settle=0.05, poll_first=0.05, poll_longest=0.1)


def _call(number: int) -> dict[str, Any]:
    return {"tool_calls": [{"name": "find", "arguments": {"number": str(number)}}]}


SCRIPT = {
    "rules": [
        {"text": "^where", "answer": _call(1)},
        *({"text": f"^found {number}", "answer": _call(number + 1)} for number in range(1, TURNS - 1)),
        {"text": f"^found {TURNS - 1}", "answer": "It is here."},
        {"text": "^thanks", "answer": "Bye."},
    ]
}


def find(number: str) -> str:
    """Find a parcel; whoever is to be killed there is killed the first time."""
    deadly = Path(os.environ.get("DEADLY", os.devnull))
    if number == "3" and deadly.is_file():
        deadly.unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    return f"found {number}"


@muster.workload("thinking loop")
async def loop(ctx: muster.Context, spec: dict[str, Any]) -> str:
    request = muster.Request(
        messages=(muster.Message(role=muster.Role.USER, text="where is it?"),),
        system=spec.get("system", ""),
        max_tokens=spec.get("max_tokens", 8_000),
    )
    return (await ctx.tools("model", request, tools=[find], key="find")).text


async def run_loop(folder: str, kind: str, url: str) -> None:
    """Run the loop as a process of its own does."""
    async with muster.open(folder, agents={"model": section(kind, url)}) as m:
        await (await m.start(loop, {}, name="loop")).result()


def section(kind: str, url: str) -> dict[str, Any]:
    own = {"wire": "responses", "price": {"input": 1, "output": 2}} if kind == "openai" else {}
    return {"kind": kind, "model": MODELS[kind][0], "base_url": url, "key_env": "REHEARSAL_KEY", **own}


@pytest.fixture(scope="module")
def sim() -> Iterator[RehearsalProcess]:
    with RehearsalProcess(script=SCRIPT, thinking=True, batch_ms=10) as server:
        yield server


@pytest.fixture(params=["anthropic", "openai"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def agents(sim: RehearsalProcess, kind: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    sim.reset()
    monkeypatch.setenv("REHEARSAL_KEY", "anything")
    return {"model": section(kind, sim.anthropic if kind == "anthropic" else sim.openai)}


def came_back(sim: RehearsalProcess) -> tuple[int, int, int]:
    seen = sim.audit().thinking
    return seen.returned, seen.missing, seen.mismatched


EVERY_BLOCK = (sum(range(TURNS)), 0, 0)  # each request has one more than the one before


@pytest.mark.parametrize(
    ("spec", "dispatch"),
    [({}, "live"), ({"max_tokens": LONG}, "live"), ({}, "batch")],
    ids=["whole", "streamed", "batch"],
)
async def test_every_block_of_thinking_comes_back(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any], spec: dict[str, Any], dispatch: str
) -> None:
    async with muster.open(tmp_path, agents=agents, patience=BRISK) as m:
        run = await m.start(loop, spec, dispatch=dispatch)
        assert await run.result() == "It is here."
        first = (await m.runs.calls(run.id))[0].reply
    assert first is not None
    assert first.content is not None
    assert first.content.blocks[0].kind is BlockKind.THINKING
    assert 0 < first.usage.thinking <= first.usage.output
    assert came_back(sim) == EVERY_BLOCK


async def test_every_block_of_thinking_comes_back_after_a_kill(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = tmp_path / "deadly"
    deadly.touch()
    arguments = (str(tmp_path), kind, agents["model"]["base_url"])
    program = f"import asyncio; from {__name__} import run_loop; asyncio.run(run_loop(*{arguments!r}))"
    environment = {**os.environ, "DEADLY": str(deadly)}
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", program, env=environment)
    assert await process.wait() == -signal.SIGKILL
    async with muster.open(tmp_path, agents=agents) as m:
        assert await (await m.runs.resume("loop")).result() == "It is here."
    assert came_back(sim) == EVERY_BLOCK


async def test_a_run_that_is_resumed_sends_what_the_one_before_got(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any]
) -> None:
    async with muster.open(tmp_path / "here", agents=agents) as m:
        run = await m.start(loop, {}, name="loop")
        await run.result()
        found = [call.key for call in await m.runs.calls(run.id)]
        await m.runs.export("loop", tmp_path / "loop.jsonl")
    async with muster.open(tmp_path / "there", agents=agents) as m:
        imported = await m.runs.import_(tmp_path / "loop.jsonl")
        forked = await m.runs.fork(imported.id, found[-1])
        sim.reset()
        assert await m.runs.drive(forked).result() == "It is here."
    assert sim.audit().requests == 1
    assert came_back(sim) == (TURNS - 1, 0, 0)


@muster.workload("two turns that think")
async def turns(ctx: muster.Context, spec: dict[str, Any]) -> str:
    asked = muster.Message(role=muster.Role.USER, text="where is it?")
    tool = muster.Tool(name="find")
    first = await ctx.call("model", muster.Request(messages=(asked,), tools=(tool,), max_tokens=8_000), key="first")
    text = f"found {TURNS - 1}"
    told = muster.Message(role=muster.Role.TOOL, text=text, tool_call_id=first.tool_calls[0].id)
    again = muster.Request(
        messages=(asked, message_of(first), told), tools=(tool,), system=spec["system"], max_tokens=8_000
    )
    return (await ctx.call("model", again, key="second")).text


async def test_thinking_of_another_conversation_is_left_out_and_the_run_says_so_once(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any]
) -> None:
    async with muster.open(tmp_path, agents=agents) as m:
        run = await m.start(turns, {"system": "Be brief."})
        assert await run.result() == "It is here."
        told = [event.data for event in await m.runs.events(run.id) if event.kind == "agent.blocks_unsent"]
        assert told == [{"agent": "model", "reason": "what was said before it has changed"}]
        (note,) = m.runs.agent_notes
        assert str(note).startswith("model does not get the thinking of earlier answers back")
    assert (sim.audit().thinking.returned, sim.audit().thinking.mismatched) == (0, 0)


@pytest.mark.parametrize("rules", [CURRENT_RULES, 9])
async def test_thinking_of_another_model_is_left_out_and_that_of_the_new_one_comes_back(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any], kind: str, rules: int
) -> None:
    async with muster.open(tmp_path, agents=agents) as m:
        run = await m.start(loop, {}, name="loop")
        await run.result()
        keys = [call.key for call in await m.runs.calls(run.id)]
        fork = await m.runs.fork("loop", keys[1])
    with closing(sqlite3.connect(tmp_path / "muster.db")) as store, store:
        store.execute("UPDATE runs SET rules = ?", (rules,))
    sim.reset()
    first, agents["model"]["model"] = MODELS[kind]
    async with muster.open(tmp_path, agents=agents) as m:
        assert await m.runs.drive(fork).result() == "It is here."
        told = [event.data["reason"] for event in await m.runs.events(fork.id) if event.kind == "agent.blocks_unsent"]
    assert told == [f"it comes from {kind}/{first}"]
    new = TURNS - 1  # requests; under the rules of older runs nothing comes back, as it did not when they were started
    returned, missing, mismatched = came_back(sim)
    assert (returned, mismatched) == (sum(range(new)) if rules == CURRENT_RULES else 0, 0)
    assert returned + missing == sum(range(TURNS))


@pytest.mark.parametrize("kind", ["openai"])
async def test_reasoning_is_left_out_where_a_request_needs_the_other_form_of_the_api(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any]
) -> None:
    async with muster.open(tmp_path, agents=agents) as m:
        run = await m.start(loop, {}, name="loop")
        await run.result()
        keys = [call.key for call in await m.runs.calls(run.id)]
        fork = await m.runs.fork("loop", keys[-1])
    sim.reset()
    agents["model"]["wire"] = "chat"
    async with muster.open(tmp_path, agents=agents) as m:
        assert await m.runs.drive(fork).result() == "It is here."
        told = [event.data["reason"] for event in await m.runs.events(fork.id) if event.kind == "agent.blocks_unsent"]
    assert told == ["it comes from another form of the API (responses)"]
    assert sim.audit().requests == 1  # what was answered in the one form is known in the other
    assert came_back(sim) == (0, 0, 0)


@pytest.mark.parametrize("kind", ["anthropic"])
async def test_what_a_model_thought_is_shown_when_somebody_asks_for_it(
    tmp_path: Path, sim: RehearsalProcess, agents: dict[str, Any]
) -> None:
    agents["model"] |= {"model": "claude-sonnet-4-6", "thinking": "adaptive", "max_tokens": 8_000}
    async with muster.open(tmp_path, agents=agents) as m:
        run = await m.start(loop, {})
        await run.result()
        call = (await m.runs.calls(run.id))[0]
        details = await m.runs.call(run.id, call.key)
    assert call.reply is not None
    assert call.reply.content is not None
    shown = call_view(details, thinking=True).reply
    hidden = call_view(details).reply
    assert shown is not None
    assert hidden is not None
    assert shown.thinking == call.reply.content.thinking != ""
    assert (shown.thinking_tokens, hidden.thinking_tokens) == (call.reply.usage.thinking,) * 2
    assert call.reply.content.thinking not in dumps(plain(hidden))
