"""The MCP servers of Claude Code: started by it, and known to nobody else."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from muster.domain.agent import Timeouts
from muster.domain.call import ask
from muster.domain.errors import BadExit, NotStarted, Paid
from muster.sim.faults import Fault, FaultKind, Faults, ScriptedFault
from tests.claude.conftest import House
from tests.claude.test_endings import player

PATIENT = Timeouts()
TOKEN = "tok-of-no-worth-0123456789"
FILE = Path(".muster/claude/agent-coder/private/mcp.json")
HANG = Faults(script=(ScriptedFault(fault=Fault(kind=FaultKind.TIMEOUT)),))

# An MCP server with one tool, which tells the token that the server was given.
NOTES = """
import json, os, sys
tool = {"name": "tell", "inputSchema": {"type": "object", "properties": {}}}
for line in sys.stdin:
    asked = json.loads(line)
    open("asked.txt", "a").write(asked["method"] + "\\n")
    if "id" not in asked:
        continue
    given = {
        "initialize": {"capabilities": {"tools": {}}, "serverInfo": {"name": "notes", "version": "1"},
                       "protocolVersion": asked.get("params", {}).get("protocolVersion")},
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "it is " + os.environ["TOKEN"]}]},
    }.get(asked["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": given}), flush=True)
"""


def notes(house: House) -> dict[str, Any]:
    """Declare the server."""
    script = house.folder / "notes.py"
    script.write_text(NOTES)
    return {"notes": {"command": sys.executable, "args": [str(script)], "env": {"TOKEN": TOKEN}}}


def commands(house: House) -> list[bytes]:
    """The command lines of all processes of the house, as everybody can read them."""
    found = []
    for pid in house.alive():
        try:
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        except OSError:
            continue  # it ended meanwhile
    return found


async def listed(house: House) -> None:
    """Wait until Claude Code has asked the server for its tools."""
    asked = house.work / "asked.txt"
    while not asked.exists() or "tools/list" not in asked.read_text():  # noqa: ASYNC110
        await asyncio.sleep(0.02)  # the system tells nobody


async def test_a_server_is_used_and_what_it_was_told_does_not_show(house: House) -> None:
    agent = house.agent(mcp_servers=notes(house), allowed_tools=("mcp__notes__tell",))
    reply = await agent.call(ask("please tell"), PATIENT)
    assert [(call.name, call.result) for call in reply.tool_calls] == [("mcp__notes__tell", "it is [secret]")]
    assert reply.text == "The second turn."


@pytest.mark.parametrize("subscription", [False, True])
async def test_no_command_line_shows_what_a_server_is_told(house: House, subscription: bool) -> None:
    house.server.play(HANG)
    variables = house.variables | {"CLAUDE_CODE_OAUTH_TOKEN": "a-login-of-no-worth"}
    agent = house.agent(
        mcp_servers=notes(house), subscription=subscription, variables=variables, pass_env=("CLAUDE_CODE_OAUTH_TOKEN",)
    )
    call = asyncio.ensure_future(agent.call(ask("Hello"), PATIENT))
    await asyncio.wait_for(listed(house), 30)
    seen = commands(house)
    call.cancel()
    await asyncio.wait([call])
    file = house.folder / FILE
    assert [line for line in seen if b"\x00--mcp-config\x00" + bytes(file) + b"\x00" in line]
    assert not [line for line in seen if TOKEN.encode() in line]
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert house.alive() == []


async def test_a_home_with_a_space_in_its_name_is_one_path(house: House) -> None:
    folder = house.folder / "a home, {of} one's own"
    (folder / "work").mkdir(parents=True)
    other = House(
        folder=folder,
        server=house.server,
        script=house.script,
        processes=house.processes,
        registry=house.registry,
    )
    agent = other.agent(mcp_servers=notes(other), allowed_tools=("mcp__notes__tell",))
    reply = await agent.call(ask("please tell"), PATIENT)
    assert [call.result for call in reply.tool_calls] == ["it is [secret]"]


async def test_what_a_server_is_told_does_not_show_in_logs_and_errors(house: House) -> None:
    path = player(house, f'print("no luck with {TOKEN}", file=sys.stderr)\nsys.exit(7)')
    with pytest.raises(BadExit, match=r"no luck with \[secret\]") as caught:
        await house.agent(cli_path=path, mcp_servers=notes(house)).call(ask("Hello"), PATIENT)
    assert caught.value.log == "no luck with [secret]\n"


async def test_without_servers_no_file_is_named_and_an_old_one_goes(house: House) -> None:
    path = player(house, 'print("--mcp-config" in sys.argv, file=sys.stderr, flush=True)\nresult()')
    said = []
    for servers in (notes(house), {}):
        reply = await house.agent(cli_path=path, mcp_servers=servers).call(ask("Hello"), PATIENT)
        said.append((reply.trace and reply.trace.log, (house.folder / FILE).exists()))
    assert said == [("True\n", True), ("False\n", False)]


async def test_servers_that_cannot_be_written_down_are_not_started(house: House) -> None:
    (house.folder / FILE.parent).parent.mkdir(parents=True)
    (house.folder / FILE.parent).write_text("a file where the folder should be")
    with pytest.raises(NotStarted, match="its MCP configuration cannot be written") as caught:
        await house.agent(mcp_servers=notes(house)).call(ask("Hello"), PATIENT)
    assert caught.value.paid is Paid.NO
    assert TOKEN not in caught.value.message
