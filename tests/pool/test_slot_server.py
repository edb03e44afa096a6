"""Agents at work in slots talk to each other through the MCP server of the pool, and to nobody else."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

import muster
from muster.app import Muster
from muster.app.pool.slot_server import SlotServer
from muster.app.pool.slot_tools import SlotTools
from muster.app.pool.slots import SlotDirectory
from muster.domain.errors import NotFound
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from muster.settings import load_settings
from tests.pool.waiting import until_exists

TOML = """
[pool]
slots = 2
agent = "scripted"
{pool}

[[slots]]
name = "coder"

[[slots]]
name = "critic"
role = "reviewer"

[agents.scripted]
kind = "cli"
command = ["{python}", "-m", "muster.sim.cli_agent", "--script", "script.json"]
output = "jsonl"
answer = "$.result"
ends = "$.num_turns"
error = "$.is_error"
budget_usd = 0.10
{agent}
"""
Step = Mapping[str, Any]


def mcp(tool: str, **arguments: Any) -> Step:
    return {"tool": {"name": f"mcp__muster__{tool}", "input": arguments}}


def write(name: str) -> Step:
    return {"tool": {"name": "Write", "input": {"file_path": name, "content": ""}}}


SAY = {"say": "{result}"}
TELL = {"say": "{prompt}"}
WAIT = (write("ready"), {"tool": {"name": "Read", "input": {"file_path": "go"}}})  # until the test lets it go on


class Stage:
    """A folder with a pool whose agents play a script by their prompts."""

    def __init__(self, folder: Path, *, pool: str = "", agent: str = "") -> None:
        self.folder = folder
        (folder / "muster.toml").write_text(TOML.format(python=sys.executable, pool=pool, agent=agent))
        self.environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        os.mkfifo(folder / "go")

    def play(self, **rules: Sequence[Step]) -> None:
        """Let a prompt with this word in it be answered by these steps; the first that fits counts."""
        script = [{"match": word.replace("_", " "), "steps": list(steps)} for word, steps in rules.items()]
        (self.folder / "script.json").write_text(json.dumps(script))

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Muster]:
        async with muster.open(settings=load_settings(folder=self.folder, environment=self.environment)) as m:
            yield m

    async def start(self) -> asyncio.subprocess.Process:
        """Drive the pool in a process of its own."""
        command = (sys.executable, "-m", "muster", "pool", "start", "--quiet")
        return await asyncio.create_subprocess_exec(*command, cwd=self.folder, env=self.environment)

    async def ready(self) -> None:
        """Wait until an agent waits to be let go on."""
        await until_exists(self.folder / "ready")

    async def go(self) -> None:
        """Let it go on."""
        await asyncio.to_thread((self.folder / "go").write_text, "")

    @property
    def files(self) -> list[Path]:
        return list((self.folder / ".muster" / "slots" / "mcp").glob("*"))


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def done(m: Muster, prompt: str, slot: str = "coder") -> str:
    task = await m.pool.run(TaskSpec(prompt=prompt, slot=slot))
    assert task.state is TaskState.COMPLETED, task.run.error
    assert task.reply is not None
    return task.reply.text


async def test_the_sender_is_the_slot_and_the_other_reads_it_in_its_next_prompt(stage: Stage) -> None:
    stage.play(
        tell=[mcp("send_message", to="critic", text="look at it"), SAY],
        call=[mcp("broadcast", text="all hands"), SAY],
        forge=[mcp("send_message", to="critic", text="x", sender="critic"), SAY],
        lost=[mcp("send_message", to="nobody", text="x"), SAY],
        read=[TELL],
    )
    async with stage.open() as m:
        assert await done(m, "tell them") == "sent to critic"
        assert await done(m, "call them") == "sent to critic"
        assert "sender" in await done(m, "forge it")
        assert "slot 'nobody' not found" in await done(m, "lost")
        assert [(one.sender, one.payload) for one in await m.pool.unread("critic")] == [
            ("coder", "look at it"),
            ("coder", "all hands"),
        ]
        assert "Message from coder:\nlook at it" in await done(m, "read it", "critic")


async def test_slots_and_shared_context_can_be_read_and_set(stage: Stage) -> None:
    stage.play(
        keep=[mcp("set_context", name="goal", value="ship it"), SAY],
        get=[mcp("get_context", name="goal"), SAY],
        everything=[mcp("list_context"), SAY],
        slots=[mcp("list_slots"), SAY],
    )
    async with stage.open() as m:
        assert await done(m, "keep it") == "set goal"
        assert await m.pool.context_text("goal") == "ship it"
        assert await done(m, "get it") == "ship it"
        assert json.loads(await done(m, "everything")) == {"goal": "ship it"}
        slots = json.loads(await done(m, "slots"))
        assert [(slot["name"], slot["role"], slot["state"]) for slot in slots] == [
            ("coder", "", "busy"),
            ("critic", "reviewer", "idle"),
        ]


async def test_a_message_is_read_once_while_the_agent_works(stage: Stage) -> None:
    stage.play(begin=[*WAIT, mcp("read_messages"), SAY], later=[TELL])
    async with stage.open() as m:
        running = asyncio.create_task(done(m, "begin"))
        await stage.ready()
        await m.pool.send("coder", "one")
        await m.pool.send("coder", "two", sender="critic")
        await stage.go()
        assert json.loads(await running) == [
            {"from": "the operator", "text": "one"},
            {"from": "critic", "text": "two"},
        ]
        assert not await m.pool.unread("coder")
        assert (await done(m, "later")).endswith("\n\nlater")


async def test_no_slot_can_start_tasks_unless_recursion_says_so(tmp_path: Path) -> None:
    steps: dict[str, list[Step]] = {
        "start": [mcp("submit_task", prompt="small one", slot="critic"), SAY],
        "look": [mcp("task_result", id="last"), SAY],
        "small": [{"say": "a small thing"}],
    }
    (tmp_path / "no").mkdir()
    stage = Stage(tmp_path / "no")
    stage.play(**steps)
    async with stage.open() as m:
        assert "there is no tool 'submit_task'" in await done(m, "start it")
    (tmp_path / "yes").mkdir()
    stage = Stage(tmp_path / "yes", pool="recursion = true\nmax_pending = 1\nbudget_usd = 1.00")
    stage.play(
        **steps,
        dear=[mcp("submit_task", prompt="small", budget_usd=2.0), SAY],
        many=[mcp("submit_task", prompt="small"), mcp("submit_task", prompt="small"), SAY],
    )
    async with stage.open() as m:
        started = json.loads(await done(m, "start it"))
        assert started["state"] == "pending"
        await m.pool.driver().serve(until_idle=True)
        child = await m.pool.tasks.get(started["id"])
        assert (child.state, child.slot and child.slot.name) == (TaskState.COMPLETED, "critic")
        assert "of the pool's budget of" in await done(m, "dear")
        assert "max_pending" in await done(m, "many")


async def test_what_an_agent_tells_of_its_token_is_not_stored_and_worth_nothing_afterwards(stage: Stage) -> None:
    show = f"import os; open('{stage.folder}/seen', 'w').write(str(dict(os.environ))); print(dict(os.environ))"
    stage.play(show=[{"say": "x"}])
    toml = stage.folder / "muster.toml"
    plain = [sys.executable, "-c", show]
    toml.write_text(
        toml.read_text() + f'\n[agents.shows]\nkind = "cli"\ncommand = {json.dumps(plain)}\nbudget_usd = 0\n'
    )
    async with stage.open() as m:
        task = await m.pool.run(TaskSpec(prompt="show", agent="shows"))
        assert task.reply is not None
        assert "MUSTER_MCP_TOKEN" in task.reply.text
        seen = eval((stage.folder / "seen").read_text())
    url, token, config = (seen[f"MUSTER_MCP_{name}"] for name in ("URL", "TOKEN", "CONFIG"))
    assert not Path(config).exists()
    late = HttpRequest(url, b"{}", {"authorization": f"Bearer {token}", "content-type": "application/json"})
    with pytest.raises(OSError):
        await asyncio.to_thread(urlopen, late)
    stored = b"".join(path.read_bytes() for path in (stage.folder / ".muster").rglob("*") if path.is_file())
    assert token.encode() not in stored
    assert token.partition(".")[0].encode() not in stored


async def test_slots_that_begin_at_once_share_one_server(stage: Stage) -> None:
    async with stage.open() as m:
        await m.pool.scale(2)
        server = SlotServer(m._backend, m.pool, m.pool.tasks)
        slots = [slot.profile for slot in await m.pool.slots()]
        async with AsyncExitStack() as stack:
            stack.push_async_callback(server.close)
            entering = (stack.enter_async_context(server.connect(slot, "scripted")) for slot in slots)
            told: list[Any] = [connection.attached["environment"] for connection in await asyncio.gather(*entering)]
        assert len({variables["MUSTER_MCP_URL"] for variables in told}) == 1
        assert len({variables["MUSTER_MCP_TOKEN"] for variables in told}) == 2
        assert stage.files == []


async def test_the_configuration_is_for_its_owner_alone_and_gone_after_the_task(stage: Stage) -> None:
    stage.play(begin=[*WAIT, {"say": "done"}])
    async with stage.open() as m:
        running = asyncio.create_task(done(m, "begin"))
        await stage.ready()
        (file,) = stage.files
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        server = json.loads(file.read_text())["mcpServers"]["muster"]
        other = HttpRequest(server["url"], b"{}", {"authorization": "Bearer x", "content-type": "application/json"})
        with pytest.raises(HTTPError, match="401"):
            await asyncio.to_thread(urlopen, other)
        SlotServer(m._backend, m.pool, m.pool.tasks).remove_leftovers()  # of a living driver nothing is left over
        assert stage.files == [file]
        await stage.go()
        await running
        assert stage.files == []


async def test_a_killed_driver_leaves_no_file_and_its_lost_attempt_no_message(stage: Stage) -> None:
    stage.play(Message_from=[TELL], begin=[*WAIT, mcp("read_messages"), write("heard"), {"hang": True}])
    async with stage.open() as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="begin", slot="coder"))
        await m.pool.scale(2)
    driver = await stage.start()
    await stage.ready()
    async with stage.open() as m:
        await m.pool.send("coder", "in between", sender="critic")
    await stage.go()
    await until_exists(stage.folder / "heard")
    driver.kill()
    await driver.wait()
    assert len(stage.files) == 1
    async with stage.open() as m:
        await m.pool.driver().serve(until_idle=True)
        found = await m.pool.tasks.get(task.id)
        assert found.reply is not None
        assert found.reply.text.endswith("\n\nbegin\n\nMessage from critic:\nin between")
        assert not await m.pool.unread("coder")
    assert stage.files == []


async def test_the_documentation_names_every_tool_with_its_arguments(stage: Stage) -> None:
    text = (Path(__file__).parents[2] / "docs" / "POOL.md").read_text(encoding="utf-8")
    async with stage.open() as m:
        directory = SlotDirectory(m.settings)
        tools = SlotTools(directory.at(1), m.pool, m.pool.tasks, m._backend.store.pool, directory)
        for offered in tools.offered(recursion=True):
            properties: Any = offered.tool.parameters["properties"]
            assert f"`{offered.tool.name}({', '.join(properties)})`" in text


async def test_an_unknown_slot_has_no_messages_to_read(stage: Stage) -> None:
    async with stage.open() as m:
        with pytest.raises(NotFound):
            await m.pool.read("nobody")
