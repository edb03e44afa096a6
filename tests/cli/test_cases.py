"""`muster cases`: the cases of a suite run, filtered and page by page; one of them in full."""

from pathlib import Path

import pytest

from muster.domain.case import Status
from tests.suites.reports.suite_store import Story, a_case, a_result

from .suite_home import Home


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    made = Home(tmp_path, capsys)
    results = [a_result("s/hello"), a_result("s/goodbye", Status.FAILED), a_result("s/thanks", Status.FAILED)]
    made.keep(Story(cases=[a_case(name) for name in ("s/hello", "s/goodbye", "s/thanks")], results=results))
    return made


def test_cases_are_listed_by_their_ending_and_page_by_page(home: Home) -> None:
    first = home.muster("cases", "run1", "--status", "failed", "--limit", "1", "--json").data()
    assert [(one["case"], one["status"]) for one in first["cases"]] == [("s/goodbye", "failed")]
    second = home.muster("cases", "run1", "--status", "failed", "--after", first["next"], "--json").data()
    assert ([one["case"] for one in second["cases"]], second["next"]) == (["s/thanks"], None)


def test_people_get_a_table_and_are_told_how_to_go_on(home: Home) -> None:
    found = home.muster("cases", "run1", "--limit", "2")
    assert "✗ failed" in found.out
    assert "s/goodbye" in found.out
    assert "s/thanks" not in found.out
    assert "there are more: add --after 0.2." in found.err
    assert "no case fits" in home.muster("cases", "run1", "--search", "nowhere").err


def test_one_case_is_shown_in_full(home: Home) -> None:
    found = home.muster("cases", "run1", "s/goodbye", "--json").data()
    assert (found["case"], found["status"], [one["epoch"] for one in found["epochs"]]) == ("s/goodbye", "failed", [1])
    assert "s/goodbye" in home.muster("cases", "run1", "s/goodbye").out


def test_what_cannot_be_is_said(home: Home) -> None:
    assert home.muster("cases", "run1", "s/other").code == 5
    assert home.muster("cases", "run1", "--status", "fialed").code == 2
    assert home.muster("cases", "run1", "--after", "there").code == 2
