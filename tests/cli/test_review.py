"""`muster review`: what people say about verdicts, and how far they agree."""

from pathlib import Path
from typing import Any

import pytest

from muster.domain.case import Status
from muster.suites.values.case import Evaluator
from muster.suites.values.verdict import ItemScore, Judgement
from tests.suites.reports.suite_store import Story, a_case, a_result

from .suite_home import Home

JUDGEMENT = Judgement(by="sim/judge", items=(ItemScore(id="kind", score=1.0),))
JUDGED: dict[str, Any] = {"evaluators": (Evaluator.JUDGE,), "judgements": (JUDGEMENT,)}


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    made = Home(tmp_path, capsys)
    names = ("s/hello", "s/goodbye", "s/thanks")
    one = Story(
        cases=[a_case(name) for name in names],
        results=[
            a_result("s/hello", **JUDGED),
            a_result("s/goodbye", Status.FAILED, **JUDGED),
            a_result("s/thanks", Status.ERROR),
        ],
    )
    several = Story(
        run="many1",
        cases=[a_case("s/hello")],
        results=[a_result("s/hello", subject=subject, epoch=epoch) for subject in ("x", "y") for epoch in (1, 2)],
        spec={"path": ["s"], "agents": ["x", "y"], "epochs": 2},
    )
    made.keep(one, several)
    return made


def test_a_review_is_kept_and_the_newest_of_a_person_counts(home: Home) -> None:
    assert home.muster("review", "run1", "s/hello", "wrong").code == 0
    made = home.muster("review", "run1", "s/hello", "right", "--note", "looked again", "--by", "ada", "--json").data()
    assert (
        made.items() >= {"case": "s/hello", "opinion": "right", "by": "ada", "subject": "sim/echo", "epoch": 1}.items()
    )
    home.muster("review", "run1", "s/hello", "borderline")
    listed = home.muster("review", "run1", "--json").data()
    assert [(one["by"], one["opinion"], one["status"]) for one in listed["reviews"]] == [
        (None, "borderline", "passed"),
        ("ada", "right", "passed"),
    ]
    assert listed["borderline"] == 1


def test_nobody_is_named_who_did_not_want_to_be(home: Home) -> None:
    assert home.muster("review", "run1", "s/hello", "right", "--json").data()["by"] is None


def test_reviews_are_listed_with_the_agreement(home: Home) -> None:
    for case, opinion in (("s/hello", "right"), ("s/goodbye", "wrong"), ("s/thanks", "right")):
        home.muster("review", "run1", case, opinion, "--note", "[bold]so[/bold]\x1b[31m")
    listed = home.muster("review", "run1", "--json").data()
    assert listed["judge_agreement"] == {"reviews": 2, "raw": 0.5, "kappa": 0.0}
    assert listed["without_verdict"] == 1
    shown = home.muster("review", "run1").out
    for words in ("agreement with the judge: 50.0% of 2 reviews, Cohen's kappa 0.00", "1 review left out", "[bold]so"):
        assert words in shown
    assert "\x1b" not in shown


def test_no_reviews_are_an_answer(home: Home) -> None:
    found = home.muster("review", "run1")
    assert (found.code, found.out) == (0, "")
    assert "no reviews yet" in found.err


def test_the_verdict_that_was_meant_is_said(home: Home) -> None:
    assert "the verdict was: failed, no good" in home.muster("review", "run1", "s/goodbye", "wrong").err


def test_an_unknown_case_exits_5_with_near_names(home: Home) -> None:
    found = home.muster("review", "run1", "s/helo", "right", "--json")
    assert (found.code, found.error()["suggestions"][0]) == (5, "s/hello")
    assert home.muster("review", "run1", "thanks", "right", "--json").error()["suggestions"] == ["s/thanks"]
    assert home.muster("review", "nowhere", "s/hello", "right").code == 5


def test_of_several_subjects_and_epochs_one_must_be_named(home: Home) -> None:
    found = home.muster("review", "many1", "s/hello", "right", "--json")
    assert (found.code, found.error()["suggestions"]) == (2, ["--subject x", "--subject y"])
    found = home.muster("review", "many1", "s/hello", "right", "--subject", "y", "--json")
    assert (found.code, found.error()["suggestions"]) == (2, ["--epoch 1", "--epoch 2"])
    made = home.muster("review", "many1", "s/hello", "right", "--subject", "y", "--epoch", "2", "--json").data()
    assert (made["subject"], made["epoch"]) == ("y", 2)
    assert home.muster("review", "many1", "s/hello", "right", "--subject", "z").code == 5
    assert home.muster("review", "many1", "s/hello", "right", "--subject", "y", "--epoch", "3").code == 5


@pytest.mark.parametrize(
    "arguments",
    [("s/hello",), ("s/hello", "maybe"), ("s/hello", "right", "--by", "x" * 101), ("s/hello", "right", "--epoch", "0")],
)
def test_what_is_no_review_exits_2(home: Home, arguments: tuple[str, ...]) -> None:
    assert home.muster("review", "run1", *arguments, "--json").code == 2
    assert home.muster("review", "run1", "--json").data()["reviews"] == []
