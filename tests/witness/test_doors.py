"""Every door takes what it took and stores what it stored, or the difference is named in the README of the record."""

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from .doors import DOORS, command_starts, commands, jobs, requests, tools
from .test_witness import CHANGED, MOST_SHOWN, differences


def test_every_command_takes_what_it_took() -> None:
    require_equal("commands", commands())


def test_requests_are_described_and_stored_as_they_were(tmp_path: Path) -> None:
    described, started = requests(tmp_path)
    require_equal("openapi", described)
    require_equal("request-starts", started)


async def test_tools_are_described_and_stored_as_they_were(tmp_path: Path) -> None:
    listed, started = await tools(tmp_path)
    require_equal("tools", listed)
    require_equal("tool-starts", started)


async def test_jobs_are_stored_as_they_were(tmp_path: Path) -> None:
    require_equal("job-starts", await jobs(tmp_path))


@pytest.mark.timeout(600)
def test_what_commands_start_is_stored_as_it_was(tmp_path: Path) -> None:
    require_equal("command-starts", command_starts(tmp_path))


def require_equal(name: str, found: Any) -> None:
    """Fail with the first differences from a record that are not named as changed on purpose."""
    text = (DOORS / "README.md").read_text(encoding="utf-8").partition("## Changed on purpose")[2]
    allowed = [(one["record"], one["place"]) for one in CHANGED.finditer(text)]
    recorded = json.loads((DOORS / f"{name}.json").read_text(encoding="utf-8"))
    wrong = [
        f"{name} {place}\n  was {json.dumps(old)[:300]}\n  is  {json.dumps(new)[:300]}"
        for place, old, new in differences(_keyed(recorded), _keyed(json.loads(json.dumps(found))), "")
        if not any(fnmatchcase(name, one) and fnmatchcase(place, where) for one, where in allowed)
    ]
    assert not wrong, f"{len(wrong)} differences\n" + "\n".join(wrong[:MOST_SHOWN])


def _keyed(value: Any) -> Any:
    """Return a value in which parameters and tools are found by their names, and what may be null is not told apart."""
    if isinstance(value, dict) and isinstance(value.get("anyOf"), list) and {"type": "null"} in value["anyOf"]:
        other = [one for one in value["anyOf"] if one != {"type": "null"}]
        rest = {name: one for name, one in value.items() if name != "anyOf"}
        return _keyed((other[0] if len(other) == 1 else {"anyOf": other}) | rest)
    if isinstance(value, dict):
        return {name: _keyed(one) for name, one in value.items()}
    if isinstance(value, list) and value and all(isinstance(one, dict) and _name(one) for one in value):
        return {_name(one): _keyed(one) for one in value}
    return value


def _name(value: dict[str, Any]) -> str:
    names: Iterator[str] = iter([str(value["name"])] if "input_schema" in value else value.get("names", ()))
    return " ".join(names)
