"""What docs/AGENTS.md and the README tell of agents is true: what they declare can be made, what they show runs."""

import json
import os
import re
import subprocess
from math import inf
from pathlib import Path
from typing import Any

import pytest

from muster.app import open_muster
from muster.app.agent_kinds.base import profile_of
from muster.domain.agent import Timeouts
from muster.domain.call import ask
from muster.domain.errors import AgentFailed
from muster.domain.provider import ANTHROPIC, PROVIDERS, Provider
from muster.settings import load_settings
from muster.settings.file import read_agent
from muster.settings.sections import ClaudeSection, HttpSection, HumanSection, ProgramSection, PythonSection

from . import forkserver

ROOT = Path(__file__).parent.parent
AGENTS = (ROOT / "docs" / "AGENTS.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
KEYS = {"ANTHROPIC_API_KEY": "of-no-worth", "APP_KEY": "of-no-worth", "CHATTY_TOKEN": "of-no-worth", "HOME": "/h"}
KEYS |= {"GOOGLE_CLOUD_PROJECT": "ours", "GOOGLE_CLOUD_LOCATION": "global"}
COMMAND = {"command": ["x"]}


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def section_of_readme(title: str) -> str:
    return README.partition(f"## {title}\n")[2].partition("\n## ")[0]


async def test_every_agent_of_the_documentation_can_be_made_and_quoted(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text("\n".join(blocks(AGENTS, "toml")), encoding="utf-8")
    (tmp_path / "my_agents.py").write_text(blocks(AGENTS, "python")[0], encoding="utf-8")
    settings = load_settings(folder=tmp_path, environment=KEYS)
    assert {section.kind for section in settings.agents.values()} == {
        "program",
        "http",
        "python",
        "claude-code",
        "cli",
        "human",
        "vertex-claude",
    }
    async with open_muster(settings=settings) as muster:
        for name, section in settings.agents.items():
            agent = muster._backend.directory.find(name)
            assert agent.profile.name == name
            if not isinstance(section, ClaudeSection):  # which needs its extra
                quote = agent.quote(agent.profile.complete(ask("hello")))
                assert (quote.tokens > 0) is not agent.profile.person


@pytest.mark.parametrize("section", [ProgramSection, HttpSection, PythonSection, ClaudeSection, HumanSection])
def test_every_field_of_a_section_is_told(section: Any) -> None:
    spoken = {name for name in section.__struct_fields__ if re.search(rf"`{name}\b|^{name} = ", AGENTS, re.MULTILINE)}
    assert spoken == set(section.__struct_fields__)


def test_every_kind_and_every_failure_stands_in_a_table() -> None:
    kinds = {"program", "http", "python", "claude-code", "cli", "anthropic", "openai", "scripted", "human"}
    rows = [line for line in AGENTS.splitlines() if line.startswith("|")]
    failures: list[type[AgentFailed]] = [AgentFailed, *AgentFailed.__subclasses__()]
    for name in kinds | {kind.code for kind in failures}:
        assert any(f"`{name}`" in row.split("|")[1] for row in rows), name


@pytest.mark.parametrize(
    ("kind", "fields", "at_once", "seconds", "silence"),
    [
        ("program", COMMAND, 16, 300, inf),
        ("cli", COMMAND, 8, 3600, 600),
        ("claude-code", {}, 4, 3600, 600),
        ("http", {"url": "http://127.0.0.1:1"}, 100, 600, None),
        ("python", {"function": "a:b"}, 100, 600, None),
    ],
)
def test_the_limits_are_as_they_are_told(
    kind: str, fields: dict[str, Any], at_once: int, seconds: int, silence: float | None
) -> None:
    section = read_agent("a", {"kind": kind, **fields})
    profile = profile_of("a", section)
    timeouts = profile.timeouts or Timeouts()
    assert (profile.pace.concurrency, timeouts.call) == (at_once, seconds)
    assert silence in (None, timeouts.idle)
    assert f"{at_once} for " in AGENTS
    assert f"{seconds} for " in AGENTS


def test_what_is_shown_as_json_is_json() -> None:
    for block in blocks(AGENTS, "json"):
        assert json.loads(block)


def test_what_the_documents_point_at_is_there() -> None:
    for folder, text in ((ROOT / "docs", AGENTS), (ROOT, README)):
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (folder / target).exists(), target
    titles = {title.lower().replace(" ", "-") for title in re.findall(r"^#+ (.+)$", AGENTS + README, re.MULTILINE)}
    assert set(re.findall(r"\]\(#([^)]+)\)", AGENTS + README)) <= titles


def test_the_readme_on_programs_can_be_pasted_into_a_shell(tmp_path: Path) -> None:
    (script,) = blocks(section_of_readme("4. Use any program as an agent"), "sh")
    command = forkserver.install(tmp_path / "bin")
    environment = {"PATH": f"{command.parent}:{os.environ['PATH']}", "LANG": "C.UTF-8", "HOME": str(tmp_path)}
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    first, second, *sheet = done.stdout.splitlines()
    assert first == "What is a bridge of paper good for?"
    assert json.loads(second)["data"]["text"] == "HELLO"
    assert sheet[0] == "ask  shout  done"
    assert "  │ thinking about it" in done.stderr


def told(provider: Provider) -> str:
    key = f"`{provider.key_variable}`" if provider.key_variable else "none"
    usual = "`max_tokens`" if provider.api == ANTHROPIC else "by model"
    cells = (
        f"`{provider.name}`",
        f"`{provider.base_url.replace('{VERTEX_HOST}', 'HOST')}`",
        key,
        f"`{provider.limit}`" if provider.limit else usual,
        ", ".join(f"`{tier}`" for tier in provider.tiers) or "–",
        provider.batches or "–",
    )
    return f"| {' | '.join(cells)} |"


def test_what_is_told_of_providers_is_what_they_are_sent() -> None:
    part = AGENTS.partition("### Providers\n")[2].partition("\n### ")[0]
    assert re.findall(r"^\| `.*$", part, re.MULTILINE) == [told(provider) for provider in PROVIDERS.values()]
