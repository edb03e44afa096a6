"""One task on every screen: what it has cost, how often it was rejected and where its work is are the same everywhere.

The screens are commands with and without `--json`, HTTP, MCP, and the page as a browser renders it.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from muster.api.routes.runs import list_runs, show_run
from muster.api.routes.tasks import list_tasks, task_result
from muster.app import Muster, open_muster
from muster.mcp.answers import document, short_run
from muster.mcp.tools.following import find
from muster.settings import load_settings
from muster.text.views import plain
from tests.api.server import Project
from tests.browser import chromium
from tests.git.repository import Repository

from .shell import Shell
from .suite_home import Home

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
subscription = true
budget_usd = 0.10
"""
COST = ("cost_usd", "spent_usd", "imputed_usd", "uncertain_usd")
TASK = (
    *COST,
    "budget_usd",
    "name",
    "state",
    "branch",
    "summary",
    "changed",
    "rejection_count",
)
WORDS = "$0.14 of $0.50 ($0.04 imputed, $0.10 uncertain)"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A shell in a repository whose pool has an agent that a subscription pays for."""
    repository = Repository(tmp_path / "work")
    repository.write("a.txt", "first\n")
    repository.commit("the beginning")
    repository.write(".git/info/exclude", "/muster.toml\n/.muster/\n/library/\n")
    repository.write("muster.toml", TOML)
    return Shell(repository.folder)


@pytest.fixture
def home(shell: Shell, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    """The same folder, for commands that only read: they need no process of their own."""
    monkeypatch.chdir(shell.folder)
    return Home(shell.folder, capsys)


def picked(found: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """Return some fields, all of which must be there."""
    return {name: found[name] for name in names}


async def at_servers(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what HTTP, the page and MCP are told of the only task, and of what it cost as a run."""
    async with open_muster(settings=load_settings(folder=folder, environment={"PATH": "/usr/bin:/bin"})) as muster:
        return await _asked(muster)


async def _asked(muster: Muster) -> tuple[dict[str, Any], dict[str, Any]]:
    run = await find(muster, "one")
    tasks = {
        "board": plain((await list_tasks(muster)).tasks[0]),
        "task page": plain(await task_result(muster, "one")),
        "mcp": await document(muster, run),
    }
    runs = {
        "page of runs": plain((await list_runs(muster)).runs[0].lineage),
        "page of the run": plain((await show_run(muster, run.id)).lineage),
        "list of mcp": short_run(run),
    }
    return tasks, runs


def assert_equal(home: Home) -> None:
    def told(*command: str) -> Any:
        return json.loads(home.muster(*command, "--json").out.splitlines()[-1])

    tasks, costs = asyncio.run(at_servers(home.folder))
    tasks["list"] = told("task", "list")["data"][0]
    tasks["watch"] = told("task", "watch")["tasks"][0]
    result = told("task", "result", "one")["data"]
    for screen, task in tasks.items():
        assert picked(task, TASK) == picked(result, TASK), screen
    spent = told("costs")["data"]
    (run,) = told("runs", "list")["data"]
    costs |= {"runs list": run["lineage"], "runs show": told("runs", "show", "one")["data"]["lineage"]}
    (costs["costs by run"],) = spent["runs"]
    for screen, cost in costs.items():
        assert picked(cost, (*COST, "budget_usd")) == picked(result, (*COST, "budget_usd")), screen
    sums = {"run": run, "pool": told("pool", "status")["data"], "slot": told("pool", "slots")["data"][0]}
    sums |= {"metrics": told("pool", "metrics")["data"], "costs": spent, "agent": spent["agents"][0]}
    sums["budget of the pool"] = next(one for one in spent["budgets"] if one["kind"] == "pool")
    for screen, found in sums.items():
        assert picked(found, COST) == picked(result, COST), screen
    known = picked(result, (*COST, "rejection_count"))
    assert list(known.values()) == [*map(pytest.approx, (0.14, 0.0, 0.04, 0.10)), 1]


def assert_told(home: Home) -> None:
    """Check what commands say to a person: amounts in columns, or one after the other."""
    for name in ("task list", "runs list", "pool slots", "costs"):
        text = home.muster(*name.split()).out
        assert [word for word in ("$0.14", "imputed", "$0.04", "uncertain", "$0.10") if word not in text] == [], text
    for command, words in (
        (("task", "result", "one"), WORDS),
        (("task", "watch"), WORDS.replace("$0.50", "$5.00")),
        (("runs", "show", "one"), WORDS),
        (("pool", "status"), WORDS.replace("$0.50", "$5.00")),
        (("pool", "metrics"), WORDS.replace(" of $0.50", "")),
    ):
        result = home.muster(*command)
        assert words in result.out + result.err, (command, result)


def assert_rendered(page: Page, url: str, task: str) -> None:
    """Check what the page shows where the task, its run, the pool and money are."""
    for place, element in (
        ("tasks", page.locator(".task-card")),
        (f"tasks/{task}", page.locator(".facts")),
        ("runs", page.locator(".run-rows .cost[role=cell]")),
        (f"runs/{task}", page.locator(".facts")),
        ("money", page.get_by_role("region", name="By run")),
    ):
        page.goto(f"{url}/#/{place}")
        expect(element).to_contain_text(WORDS)
    expect(page.get_by_role("region", name="By agent")).to_contain_text(WORDS.replace(" of $0.50", ""))
    page.goto(f"{url}/#/pool")
    expect(page.get_by_role("region", name="Slot slot-1")).to_contain_text(WORDS.replace(" of $0.50", ""))
    page.goto(f"{url}/#/tasks/{task}")
    expect(page.locator(".facts")).to_contain_text("Rejected1 ×")


@pytest.mark.page
def test_a_task_that_was_killed_rejected_and_merged_is_the_same_on_every_screen(shell: Shell, home: Home) -> None:
    submitted = ("x", "--agent", "paid", "--name", "one", "--review", "--budget", "0.50")
    shell.crash("call.answered", "task", "run", *submitted)
    shell.muster("pool", "start", "--until-idle")
    assert home.muster("task", "list", "--json").data()[0]["state"] == "pending_review"
    shell.muster("task", "reject", "one", "--feedback", "again")
    shell.muster("pool", "start", "--until-idle")
    assert_equal(home)
    shell.muster("task", "approve", "one")
    shell.muster("pool", "start", "--until-idle")
    assert shell.muster("task", "merge", "one", "--apply").code == 0
    assert "(one): removed" in shell.muster("pool", "gc").out
    assert_equal(home)
    assert_told(home)
    assert "merged into main" in shell.muster("task", "result", "one").err
    assert "nothing to merge: main has all of muster/task-" in shell.muster("task", "merge", "one").out
    assert "+more" in shell.muster("task", "diff", "one").out
    task = home.muster("task", "result", "one", "--json").data()["id"]
    project = Project(shell.folder)
    project.declare(TOML)
    with project.serve() as server, chromium() as browser:
        assert_rendered(browser.new_page(), server.url, task)
