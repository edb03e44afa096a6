"""One task on every screen: what it has cost and where its work is are the same, however it went on."""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from muster.api.routes.tasks import list_tasks, task_result
from muster.app import Muster, open_muster
from muster.app.views.costs import costs_view
from muster.mcp.answers import document
from muster.mcp.tools.following import find
from muster.settings import load_settings
from tests.git.repository import Repository

from .shell import Shell

TOML = """
[pool]
slots = 1
agent = "paid"
budget_usd = 5.00

[agents.paid]
kind = "cli"
command = ["sh", "-c", "cat >/dev/null; echo more >>work.txt; echo '{\\"text\\": \\"ok\\", \\"cost\\": 0.02}'"]
output = "json"
answer = "$.text"
cost_usd = "$.cost"
budget_usd = 0.10
"""
COST = ("cost_usd", "spent_usd", "imputed_usd", "uncertain_usd", "budget_usd")
WORK = ("name", "state", "branch", "summary", "changed", "other_branches", "merged_into")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in a repository whose pool has an agent that costs money."""
    repository = Repository(tmp_path / "work")
    repository.write("a.txt", "first\n")
    repository.commit("the beginning")
    repository.write(".git/info/exclude", "/muster.toml\n/.muster/\n")
    repository.write("muster.toml", TOML)
    return Shell(repository.folder)


def picked(found: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return some fields; what an answer leaves out because it is empty counts as such."""
    empty: dict[str, Any] = {"imputed_usd": 0.0, "uncertain_usd": 0.0, "other_branches": []}
    return {name: found.get(name, empty.get(name)) for name in names}


async def at_servers(folder: Path) -> dict[str, Any]:
    """Return what HTTP, the page and MCP are told of the only task."""
    async with open_muster(settings=load_settings(folder=folder, environment={"PATH": "/usr/bin:/bin"})) as muster:
        return await _asked(muster)


async def _asked(muster: Muster) -> dict[str, Any]:
    run = await find(muster, "one")
    return {
        "board": (await list_tasks(muster))["tasks"][0],
        "task page": await task_result(muster, "one"),
        "mcp": await document(muster, run),
        "money": next(one for one in costs_view(await muster.costs(1))["budgets"] if one["kind"] == "pool"),
    }


def screens(shell: Shell) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the only task as every screen shows it, and the sums that it makes up."""

    def told(*command: str) -> Any:
        return json.loads(shell.muster(*command, "--json").out.splitlines()[-1])

    servers = asyncio.run(at_servers(shell.folder))
    tasks = {
        "list": told("task", "list")["data"][0],
        "result": told("task", "result", "one")["data"],
        "board": servers["board"],
        "task page": servers["task page"],
        "mcp": servers["mcp"],
    }
    watched = shell.muster("task", "watch", "--json").out.splitlines()[-1]
    tasks["watch"] = json.loads(watched)["tasks"][0]
    metrics = told("pool", "metrics")["data"]
    sums = {
        "pool": told("pool", "status")["data"],
        "slot": told("pool", "slots")["data"][0],
        "metrics": metrics | {"cost_usd": metrics["cost_usd"]["total"]},
        "money": servers["money"],
    }
    return tasks, sums


def assert_equal(shell: Shell, cost: float, uncertain: float) -> Mapping[str, Any]:
    tasks, sums = screens(shell)
    wanted = picked(tasks["result"], *COST, *WORK)
    for screen, task in tasks.items():
        assert picked(task, *COST, *WORK) == wanted, screen
    for screen, found in sums.items():
        assert picked(found, *COST[:4]) == picked(wanted, *COST[:4]), screen
    assert (wanted["cost_usd"], wanted["uncertain_usd"]) == (pytest.approx(cost), pytest.approx(uncertain))
    return wanted


def test_a_task_that_was_killed_rejected_and_merged_is_the_same_on_every_screen(shell: Shell) -> None:
    submitted = ("x", "--agent", "paid", "--name", "one", "--review", "--budget", "0.50")
    shell.crash("call.answered", "task", "run", *submitted)
    shell.muster("pool", "start", "--until-idle")
    found = assert_equal(shell, cost=0.12, uncertain=0.10)
    assert (found["name"], found["state"], found["changed"]) == ("one", "pending_review", 1)
    shell.muster("task", "reject", "one", "--feedback", "again")
    shell.muster("pool", "start", "--until-idle")
    assert_equal(shell, cost=0.14, uncertain=0.10)
    shell.muster("task", "approve", "one")
    shell.muster("pool", "start", "--until-idle")
    assert shell.muster("task", "merge", "one", "--apply").code == 0
    assert shell.muster("pool", "gc").out.count("removed") == 1
    assert assert_equal(shell, cost=0.14, uncertain=0.10)["merged_into"] == "main"
    assert "merged into main" in shell.muster("task", "result", "one").err
    texts = [shell.muster(*line).out for line in (("task", "list"), ("pool", "status"), ("pool", "metrics"))]
    texts.append(shell.muster("task", "result", "one").err)
    assert all("$0.14" in text and "$0.10" in text for text in texts), texts
    assert "nothing to merge: main has all of muster/task-" in shell.muster("task", "merge", "one").out
    assert "+more" in shell.muster("task", "diff", "one").out
