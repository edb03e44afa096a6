"""Money that was spent: every figure is what a recount of the attempts in the store comes to."""

import json
import sqlite3
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

import muster
from muster.app.views.costs import costs_view
from muster.domain.errors import BadArgument
from muster.domain.run import User
from muster.settings import load_settings
from muster.testing.clock import FakeClock
from muster.text.views import plain

DAY = 86_400.0
BEGAN = 20_000 * DAY + 3_600.0
TOML = """
[budget]
day_usd = 2.00
[[tokens]]
name = "ci"
secret_env = "TOKEN_CI"
day_usd = 1.00
[agents.dear]
kind = "scripted"
script = "answers.yaml"
price = { input = 1000.0, output = 5000.0 }
[agents.cheap]
kind = "scripted"
script = "answers.yaml"
price = { input = 1.0, output = 5.0 }
"""


def day_of(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "muster.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "answers.yaml").write_text(json.dumps({"otherwise": "a few words of an answer"}), encoding="utf-8")
    return tmp_path


def recounted(folder: Path) -> tuple[Counter[str], Counter[str]]:
    """Add up all attempts: by day, and by agent."""
    days: Counter[str] = Counter()
    agents: Counter[str] = Counter()
    with sqlite3.connect(folder / ".muster" / "muster.db") as database:
        rows = database.execute(
            "SELECT attempts.started_at, attempts.cost, journal.agent FROM attempts JOIN journal USING (run_id, key)"
        )
        for at, cost, agent in rows:
            days[day_of(at)] += cost
            agents[agent] += cost
    return days, agents


async def test_costs_equal_a_recount_of_the_store(folder: Path) -> None:
    clock = FakeClock(BEGAN)
    settings = load_settings(folder / ".muster", folder=folder, environment={"TOKEN_CI": "ci-secret-0123456789abc"})
    async with muster.open(settings=settings, clock=clock) as m:
        await m.ask("dear", "the day before yesterday", max_tokens=20, name="first")
        clock.advance(2 * DAY)
        for number in range(3):
            await m.ask("cheap", f"today, {number}", max_tokens=20, budget_usd="0.50")
        await m.ask("dear", "today", max_tokens=20, name="dearest today")
        ci = m.acting_for(User(name="ci", day_cap=None))
        await ci.ask("cheap", "of a token", max_tokens=20)
        week, today = await m.costs(7), await m.costs(1)
        with pytest.raises(BadArgument):
            await m.costs(0)
    days, agents = recounted(folder)
    assert {one.day: one.cost.total for one in week.days if one.cost.total} == dict(days)
    assert [one.day for one in week.days] == [day_of(BEGAN + back * DAY) for back in range(-4, 3)]
    assert {one.agent: one.spent.settled for one in week.agents} == dict(agents)
    assert [one.agent for one in week.agents] == ["dear", "cheap"]
    assert week.total.settled == sum(days.values()) == sum(run.spent.settled for run in week.runs)
    assert [run.name for run in week.runs][:2] in (["first", "dearest today"], ["dearest today", "first"])
    assert today.total.settled == days[day_of(BEGAN + 2 * DAY)]
    assert [run.name for run in today.runs][:1] == ["dearest today"]
    assert {one.agent for one in today.agents} == {"dear", "cheap"}
    standing = {one["kind"]: one for one in plain(costs_view(today))["budgets"]}
    assert standing["day"]["budget_usd"] == 2.0
    assert standing["day"]["spent_usd"] == today.total.billed / 1e6
    assert (standing["user"]["name"], standing["user"]["budget_usd"]) == ("ci", 1.0)
    assert 0 < standing["user"]["spent_usd"] < standing["day"]["spent_usd"]


async def test_days_keep_what_deleted_runs_cost(folder: Path) -> None:
    settings = load_settings(folder / ".muster", folder=folder, environment={"TOKEN_CI": "ci-secret-0123456789abc"})
    async with muster.open(settings=settings, clock=FakeClock(BEGAN)) as m:
        await m.ask("dear", "hello", max_tokens=20, name="gone")
        before = await m.costs()
        await m.runs.delete(["gone"])
        after = await m.costs()
    assert before.total.settled == after.total.settled > 0
    assert (after.agents, after.runs) == ([], [])
