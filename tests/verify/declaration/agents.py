"""Files with verification agents for tests."""

import json
from pathlib import Path
from typing import Any

from muster.verify.declaration.declaration import inspect, read_declaration
from muster.verify.declaration.verification import Verifier


def a_model(name: str = "one", **changes: Any) -> dict[str, Any]:
    """Declare a model that is good."""
    return {"name": name, "prompt": "Look for faults.", **changes}


def a_command(name: str = "tool", **changes: Any) -> dict[str, Any]:
    """Declare a checker that is good."""
    return {"name": name, "kind": "command", "command": ["ruff", "check", "{files}"], **changes}


def without(declared: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in declared.items() if key != name}


def write_agents(folder: Path, *agents: Any, name: str = "verify.yaml", **top: Any) -> Path:
    """Write agents in JSON, which is YAML, each on a line of its own, the first on line 3."""
    path = folder / name
    keys = "".join(f"{json.dumps(key)}: {json.dumps(value)}, " for key, value in top.items())
    lines = ",\n".join(json.dumps(agent) for agent in agents)
    path.write_text(f'{{\n{keys}"agents": [\n{lines}\n]}}\n', encoding="utf-8")
    return path


def write(folder: Path, text: str, name: str = "verify.yaml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def the_verifier(folder: Path, agent: dict[str, Any], **top: Any) -> Verifier:
    (found,) = read_declaration(write_agents(folder, agent, **top)).agents
    return found


def flaws(path: Path) -> list[tuple[int | None, str]]:
    found = inspect(path)
    assert (found.declaration is None) == bool(found.flaws)
    return [(flaw.line, flaw.message) for flaw in found.flaws]


def the_flaw(folder: Path, agent: Any, **top: Any) -> str:
    """Give the only flaw of one agent, without its place."""
    ((line, message),) = flaws(write_agents(folder, agent, **top))
    assert line == 3
    return message
