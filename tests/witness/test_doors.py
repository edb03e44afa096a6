"""Every door takes what it took and stores what it stored, or the difference is named in the README of the record."""

import json
import sqlite3
from contextlib import closing
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from tests.mcp.coordinated import coordinated
from tests.witness.door_starts import TOOLS

from .comparison import MISSING, compared, named_differences
from .doors import DOORS, Record, command_starts, commands, jobs, requests, tools

README = DOORS / "README.md"
MAX_SHOWN = 60
MIN_HELD = {"tool-starts": 0.92}  # of the recorded leaves, where it is not 95 %: a digest in each start is another
WHAT_TO_DO = f"restore what a door took, or name the place, with a reason, in {README.name} and in CHANGELOG.md"


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


async def test_a_call_of_a_tool_is_known_again_that_an_older_program_started(tmp_path: Path) -> None:
    recorded = json.loads((DOORS / "tool-starts.json").read_text(encoding="utf-8"))
    async with coordinated(tmp_path, more="", drives=False) as (desk, _):
        for name, (tool, given) in TOOLS.items():
            first = await desk.call(tool, **given, request_key=name)
            started = first.get("id") or first["ids"][-1]
            with closing(sqlite3.connect(tmp_path / ".muster/muster.db")) as store, store:
                store.execute(
                    "UPDATE runs SET request_digest = ? WHERE id = ?", (recorded[name]["request_digest"], started)
                )
            again = await desk.call(tool, **given, request_key=name)
            assert (again.get("id") or again["ids"][-1]) == started, name


async def test_jobs_are_stored_as_they_were(tmp_path: Path) -> None:
    require_equal("job-starts", await jobs(tmp_path))


@pytest.mark.timeout(600)
def test_what_commands_start_is_stored_as_it_was(tmp_path: Path) -> None:
    require_equal("command-starts", command_starts(tmp_path))


def require_equal(name: str, found: Any) -> None:
    """Fail with the first differences from a record that its README does not name, or with names of none."""
    record, found = json.loads((DOORS / f"{name}.json").read_text(encoding="utf-8")), json.loads(json.dumps(found))
    leaves, named = compared(record, found), named_differences(README.read_text(encoding="utf-8"), name)
    changed = [leaf for leaf in leaves if not leaf.is_equal]
    wrong = [
        f"{name} {leaf.place}\n  was {json.dumps(leaf.old)[:300]}\n  is  {json.dumps(leaf.new)[:300]}"
        for leaf in changed
        if not any(pattern.match(leaf.place) for pattern in named.values())
    ]
    assert not wrong, f"{len(wrong)} differences; {WHAT_TO_DO}\n" + "\n".join(wrong[:MAX_SHOWN])
    unused = [place for place, pattern in named.items() if not any(pattern.match(leaf.place) for leaf in changed)]
    assert unused == [], f"nothing is another there now: take these lines out of {README}"
    recorded = [leaf.place for leaf in leaves if leaf.old != MISSING]
    held = [place for place in recorded if not any(pattern.match(place) for pattern in named.values())]
    assert len(held) / len(recorded) >= MIN_HELD.get(name, 0.95), f"{len(held)} of {len(recorded)} leaves are compared"
    print(f"{name}: {len(held)} of {len(recorded)} leaves are compared, {len(held) / len(recorded):.1%}")


@pytest.mark.parametrize(
    ("place", "new"),
    [
        ("SuiteBody properties only_failed", MISSING),  # a field that is no longer taken over a network
        ("BattleBody properties messageLimit maximum", 9),
        ("TaskState enum", ["pending"]),
        ("Run properties calls properties done type", "string"),  # in an answer
        ("TaskBody properties path", {"type": "string"}),  # a field that nobody has named
    ],
)
def test_a_difference_at_a_door_is_noticed(place: str, new: Any) -> None:
    record = json.loads((DOORS / "openapi.json").read_text(encoding="utf-8"))
    changed = json.loads(json.dumps(record))
    *above, last = place.split()
    part = reduce(lambda value, name: value[name], above, changed["components"]["schemas"])
    if new == MISSING:
        del part[last]
    else:
        part[last] = new
    named = named_differences(README.read_text(encoding="utf-8"), "openapi")
    found = [leaf.place for leaf in compared(record, changed) if not leaf.is_equal]
    assert [one for one in found if not any(pattern.match(one) for pattern in named.values())]


def test_a_named_difference_is_one_place_and_what_is_below_it() -> None:
    readme = "## Changed on purpose\n- `tools` `.ask*.title`: why\n- `tools` `.run.*.max`: why"
    title, most = named_differences(readme, "tools").values()
    assert title.match(".ask-whole.title.of")
    assert not title.match(".ask.properties.title")
    assert most.match(".run.--budget.max")
    assert not most.match(".run.--budget.maximum")


def test_parts_are_compared_by_what_they_say_not_by_their_names() -> None:
    old: Record = {
        "all": {"$ref": "#/$defs/Run"},
        "$defs": {"Run": {"required": ["id", "at"], "properties": {"id": {}}}},
    }
    new: Record = {
        "all": {"anyOf": [{"$ref": "#/$defs/RunView"}, {"type": "null"}]},
        "$defs": {"RunView": old["$defs"]["Run"]},
    }
    assert all(leaf.is_equal for leaf in compared(old, new))
    new["$defs"] = {"RunView": {"required": ["at"], "properties": {"id": {}, "more": {}}}}
    assert {leaf.place for leaf in compared(old, new) if not leaf.is_equal} == {
        ".Run.required.id",
        ".Run.properties.more",
    }
