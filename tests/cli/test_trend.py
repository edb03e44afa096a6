"""`muster trend`: the same figures as the reports of the runs, the oldest first, with the names of baselines."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.run import RunState

from .suite_home import NAMES, Home, a_run


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    made = Home(tmp_path, capsys)
    nightly = [
        replace(a_run(f"run{night}", NAMES[: 3 * night]), name="nightly", at=1_800_000_000.0 + night * 86_400)
        for night in range(4)
    ]
    stopped = replace(a_run("early", results=[]), name="nightly", at=1_800_500_000.0, state=RunState.FAILED)
    made.keep(*nightly, stopped, a_run("other"))
    return made


def test_a_trend_has_the_figures_of_the_reports(home: Home) -> None:
    home.muster("baseline", "set", "main", "run1")
    found = home.muster("trend", "nightly", "--json").data()
    assert (found["name"], [run["id"] for run in found["runs"]]) == (
        "nightly",
        ["run0", "run1", "run2", "run3", "early"],
    )
    assert [run["baselines"] for run in found["runs"]] == [[], ["main"], [], [], []]
    assert found["runs"][-1]["subjects"] == []
    for run in found["runs"][:-1]:
        (reported,) = home.muster("report", run["id"], "--format", "json", "--json").data()["report"]["subjects"]
        (trended,) = run["subjects"]
        assert trended == {name: reported[name] for name in trended}
    rates = [run["subjects"][0]["pass_rate"] for run in found["runs"][:-1]]
    assert rates == [1.0, 0.9, 0.8, 0.7]


def test_any_of_its_runs_stands_for_a_trend_and_the_newest_are_shown(home: Home) -> None:
    shown = home.muster("trend", "run0", "--limit", "2", "--json").data()
    assert [run["id"] for run in shown["runs"]] == ["run3", "early"]
    table = home.muster("trend", "nightly").out
    assert "70.0%" in table
    assert "main" not in table


def test_what_has_no_trend_says_why(home: Home) -> None:
    assert home.muster("trend", "nothing").code == 5
    home.keep(replace(a_run("unnamed"), name=None))
    refused = home.muster("trend", "unnamed", "--json")
    assert (refused.code, "has no name" in refused.error()["message"]) == (2, True)
    home.muster("ask", "sim/echo", "hello", "--name", "asked")
    assert home.muster("trend", "asked").code == 2
