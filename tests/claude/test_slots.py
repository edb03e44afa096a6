"""Claude Code in a slot: it finds the MCP server of the pool beside those of its settings, and needs no permission."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

import muster
from muster.agents.tool_server.http import LoopbackServer
from muster.agents.tool_server.protocol import OfferedTool, ToolServer
from muster.domain.agent import Timeouts
from muster.domain.call import Request, Tool, ask
from muster.domain.canonical import Json
from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from muster.settings import load_settings
from tests.claude.conftest import House
from tests.claude.test_messages import begun
from tests.claude.test_servers import notes

PATIENT = Timeouts()
PARAMETERS: dict[str, Json] = {"type": "object", "properties": {"to": {"type": "string"}, "text": {"type": "string"}}}


@pytest.fixture
async def sent() -> AsyncIterator[tuple[list[Mapping[str, Any]], Mapping[str, Json]]]:
    """What was sent, and the server that it goes to."""
    found: list[Mapping[str, Any]] = []

    async def send(given: Mapping[str, Any]) -> Json:
        found.append(given)
        return f"sent to {given['to']}"

    server = LoopbackServer()
    await server.start()
    tool = Tool(name="send_message", description="Send a message.", parameters=PARAMETERS)
    token = server.admit(ToolServer("muster", "1", [OfferedTool(tool=tool, handle=send)]))
    yield found, {"type": "http", "url": server.url, "headers": {"Authorization": f"Bearer {token}"}}
    await server.close()


def in_slot(house: House, server: Mapping[str, Json], prompt: str) -> Request:
    path = house.folder / "slot.json"
    path.write_text(json.dumps({"mcpServers": {"muster": dict(server)}}))
    return replace(ask(prompt), volatile={"mcp_config": str(path)})


@pytest.mark.parametrize("declares", [False, True])
async def test_a_message_is_sent_without_a_permission(
    house: House, sent: tuple[list[Mapping[str, Any]], Mapping[str, Json]], declares: bool
) -> None:
    found, server = sent
    servers = notes(house) if declares else {}
    reply = await house.agent(mcp_servers=servers).call(in_slot(house, server, "please send"), PATIENT)
    assert [(call.name, call.result) for call in reply.tool_calls] == [("mcp__muster__send_message", "sent to critic")]
    assert found == [{"to": "critic", "text": "look at it"}]
    assert (house.work / "asked.txt").exists() is declares


async def test_what_an_attempt_before_was_told_is_in_the_prompt(house: House) -> None:
    await house.agent().call(replace(ask("Hello"), volatile={"inbox": ["Message from critic:\nlook"]}), PATIENT)
    (heard,) = house.script.heard
    assert "Hello\n\nMessage from critic:\nlook" in "".join(message.text for message in heard)


async def test_two_slots_of_a_pool_talk_while_they_work(house: House) -> None:
    (house.folder / "muster.toml").write_text(
        '[pool]\nslots = 2\nagent = "coder"\n\n[[slots]]\nname = "writer"\n\n[[slots]]\nname = "critic"\n\n'
        '[agents.coder]\nkind = "claude-code"\nworking_dir = "work"\nallowed_tools = ["Bash"]\n'
    )
    settings = load_settings(folder=house.folder, environment=house.variables)
    async with muster.open(settings=settings) as m:
        waiting = await m.pool.tasks.submit(TaskSpec(prompt="please wait", slot="critic", cwd="work"))
        serving = asyncio.create_task(m.pool.driver().serve(until_idle=True))
        await begun(house)
        sent = await m.pool.tasks.submit(TaskSpec(prompt="please send", slot="writer", cwd="work"))
        async with asyncio.timeout(120):
            while await m.runs.entry(waiting.run.id, "work/000/inbox/001") is None:
                if (await m.pool.tasks.get(sent.id)).state is TaskState.COMPLETED:
                    (house.work / "go").write_text("")
                await m._backend.store.changes.wait(1.0, m._backend.store.changes.commits)
        await serving
        heard = await m.runs.entry(waiting.run.id, "work/000/inbox/001")
        assert heard is not None
        assert [(one["sender"], one["payload"]) for one in heard.value] == [("writer", "look at it")]
        assert (await m.pool.tasks.get(waiting.id)).state is TaskState.COMPLETED
        assert not await m.pool.unread("critic")
