"""Claude Code as the agent that coordinates: it starts `muster mcp`, gives a task to the pool and reads its result."""

import json
import shlex
import sys
from pathlib import Path

from muster.domain.agent import Timeouts
from muster.domain.call import ask
from muster.settings import load_settings
from tests.claude.conftest import House

SOURCE = Path(__file__).parents[2] / "src"
TOOLS = ("mcp__muster__submit_task", "mcp__muster__wait")


async def test_a_task_is_submitted_and_its_result_is_read(house: House) -> None:
    project = house.folder / "project"
    project.mkdir()
    (project / "muster.toml").write_text('[serve]\nmodels = ["sim/echo"]\n[pool]\nagent = "sim/echo"\nslots = 1\n')
    start = f"cd {shlex.quote(str(project))} && exec {shlex.quote(sys.executable)} -m muster mcp --budget 1"
    server = {"command": "sh", "args": ["-c", start], "env": {"PYTHONPATH": str(SOURCE)}}
    agent = house.agent(mcp_servers={"muster": server}, allowed_tools=TOOLS)
    reply = await agent.call(ask("please delegate"), Timeouts())
    assert [call.name for call in reply.tool_calls] == list(TOOLS)
    assert not any(call.failed for call in reply.tool_calls)
    submitted, waited = (json.loads(str(call.result)) for call in reply.tool_calls)
    assert waited["done"] is True
    assert [(run["id"], run["state"], run["output"]) for run in waited["runs"]] == [
        (submitted["id"], "completed", "Write a haiku")
    ]
    assert reply.text == "The third turn."
    assert load_settings(folder=project, environment={}).database.exists()
