"""What docs/MCP.md tells is true: every tool with its scope, the configurations of clients, and its program."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from muster.cli.commands import COMMANDS
from muster.mcp.resources import RESOURCES, TEMPLATES
from muster.mcp.server import TOOLS

from . import forkserver

PAGE = (Path(__file__).parent.parent / "docs" / "MCP.md").read_text(encoding="utf-8")
BLOCKS = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]


def test_every_tool_is_told_with_its_scope_and_no_other() -> None:
    told = dict(re.findall(r"^\| `(\w+)` \|.*\| (\w+) \|$", PAGE, re.MULTILINE))
    assert told == {tool.name: tool.scope for tool in TOOLS.values()}


def test_every_resource_is_told() -> None:
    for uri, _, _ in (*RESOURCES, *TEMPLATES):
        assert f"`{uri.replace('{id}', 'ID')}`" in PAGE


def test_the_configurations_of_clients_start_the_command_with_options_that_it_has() -> None:
    options = {word for one in COMMANDS["mcp"].taken() for each in one.parameters for word in each.opts}
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        (server,) = block.get("mcpServers", block.get("servers", {})).values()
        if server.get("type") == "http":
            assert server["url"] == "http://127.0.0.1:7421/mcp"
            continue
        words = " ".join([server["command"], *server["args"]])
        assert "muster mcp" in words
        assert set(re.findall(r"--\w+", words)) <= options


def test_the_program_talks_to_the_command(tmp_path: Path) -> None:
    """The client starts `muster` by its name, so there is one."""
    (tmp_path / "library").mkdir()
    program, shown = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, re.DOTALL)[0]
    (settings,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "muster.toml").write_text(settings, encoding="utf-8")
    (tmp_path / "coordinator.py").write_text(program, encoding="utf-8")
    command = forkserver.install(tmp_path / "bin")
    environment = {"PATH": f"{command.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8", "HOME": str(tmp_path)}
    words = [sys.executable, "coordinator.py"]
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, shown), done.stderr
