"""`muster costs`: what was spent, in tables that say no more than there is."""

from pathlib import Path

import pytest

from .suite_home import Home

TOML = """
[budget]
day_usd = 5.00
[agents.dear]
kind = "scripted"
script = "answers.yaml"
price = { input = 1000.0, output = 5000.0 }
max_tokens = 100
"""


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "muster.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "answers.yaml").write_text('{"otherwise": "yes"}', encoding="utf-8")
    return Home(tmp_path, capsys)


def test_costs_are_shown_by_day_agent_and_run(home: Home) -> None:
    home.muster("ask", "sim/echo", "hello")
    found = home.muster("costs")
    assert (found.code, "nothing was spent since" in found.err) == (0, True)
    home.muster("ask", "dear", "hello", "--max-tokens", "10", "--name", "asked")
    costs = home.muster("costs", "--days", "2", "--json").data()
    assert [one["agent"] for one in costs["agents"] if one["spent_usd"]] == ["dear"]
    (run,) = costs["runs"]
    assert (run["name"], run["spent_usd"]) == ("asked", costs["spent_usd"])
    assert (len(costs["days"]), costs["days"][-1]["budget_usd"]) == (2, 5.0)
    shown = home.muster("costs").out
    for words in ("today, all runs", "$5.00", "dear", "asked ("):
        assert words in shown
    assert "imputed" not in shown
    assert home.muster("costs", "--days", "0").code == 2


def test_what_deleted_tasks_have_cost_is_told_wherever_the_sum_has_it(home: Home) -> None:
    kept, gone = (home.muster("task", "run", word, "--agent", "dear", "--json").data() for word in ("hello", "bye"))
    assert home.muster("runs", "delete", gone["id"]).code == 0
    costs, pool = home.muster("costs", "--json").data(), home.muster("pool", "status", "--json").data()
    slots = sum(one["cost_usd"] for one in home.muster("pool", "slots", "--json").data())
    assert costs["cost_usd"] == pool["cost_usd"] == pytest.approx(kept["cost_usd"] + gone["cost_usd"])
    listed = sum(one["cost_usd"] for one in costs["agents"]), sum(one["cost_usd"] for one in costs["runs"])
    assert (*listed, slots) == pytest.approx((kept["cost_usd"],) * 3)
    unlisted = costs["unlisted_by_agent_usd"], costs["unlisted_by_run_usd"], pool["unlisted_usd"]
    assert unlisted == pytest.approx((gone["cost_usd"],) * 3)
    shown = home.muster("costs").out
    assert "deleted runs " in shown
    assert "deleted runs, or begun before" in shown
    cost = f"${gone['cost_usd']:.4f} of it by no task of a slot: deleted ones, or of removed slots"
    assert cost in home.muster("pool", "status").out
    assert cost in home.muster("pool", "slots").err
