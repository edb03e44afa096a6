"""`muster compare`: the verdict decides the exit code; A and B are baselines, runs or files."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.case import Status
from muster.domain.money import Microdollars
from muster.domain.run import RunState
from tests.suites.reports.suite_store import Story, a_case, a_result

from .suite_home import NAMES, Home, a_run

GOOD, BAD = a_run("good1"), a_run("bad1", NAMES[:12])


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.chdir(tmp_path)
    made = Home(tmp_path, capsys)
    made.keep(GOOD, BAD)
    return made


@pytest.mark.parametrize(
    ("a", "b", "code", "verdict"),
    [
        ("good1", "good1", 0, "SAME"),
        ("bad1", "good1", 0, "BETTER"),
        ("good1", "bad1", 1, "WORSE"),
        ("good1-name", "bad", 1, "WORSE"),  # a name, and the beginning of an id
    ],
)
def test_the_verdict_stands_first_and_decides_the_exit_code(
    home: Home, a: str, b: str, code: int, verdict: str
) -> None:
    found = home.muster("compare", a, b)
    assert (found.code, found.out.split()[0]) == (code, verdict)


def noisy(name: str, cases: int, changed: Sequence[int] = (), status: Status = Status.FAILED) -> Story:
    """Make a run in which the last of ten cases fails; what is changed fails too, or ends in another way."""
    names = [f"s/{number:03}" for number in range(cases)]
    statuses = [
        status if number in changed else Status.FAILED if number % 10 == 9 else Status.PASSED for number in range(cases)
    ]
    results = [
        replace(a_result(case, one), cost=Microdollars(2_000)) for case, one in zip(names, statuses, strict=True)
    ]
    return a_run(name, cases=[a_case(case) for case in names], results=results)


def test_an_inconclusive_comparison_passes_if_it_would_have_noticed_a_drop(home: Home) -> None:
    home.keep(noisy("a1", 100), noisy("b1", 100, [1, 2, 3]))
    found = home.muster("compare", "a1", "b1")
    assert (found.code, found.out.startswith("INCONCLUSIVE (gate: passed)")) == (0, True)
    assert "with 100 cases a drop of 20 points would be noticed in 9" in found.out
    data = home.muster("compare", "a1", "b1", "--json").data()
    assert (data["verdict"], data["gate"], data["ok"]) == ("inconclusive", "passed", True)
    assert data["subjects"][0]["noticing"]["power"] > 0.9
    assert home.muster("compare", "a1", "b1", "--notice", "0.05").code == 6
    assert home.muster("compare", "a1", "b1", "--inconclusive", "fail").code == 1
    assert home.muster("compare", "a1", "b1", "--margin", "0.01").code == 1  # is not proven


def test_a_comparison_that_is_blind_exits_6_and_says_what_would_help(home: Home) -> None:
    home.keep(noisy("a1", 10), noisy("b1", 10, [1]))
    found = home.muster("compare", "a1", "b1", "--json")
    error = found.envelope()["error"]
    assert (found.code, error["code"], found.envelope()["data"]["gate"]) == (6, "blind", "blind")
    assert "with 10 cases a drop of 20 points would be noticed in" in error["message"]
    assert re.search(r"add about \d+ cases \(about \$0\.\d\d in both runs\)", error["message"])
    markdown = home.muster("compare", "a1", "b1", "--format", "markdown")
    assert (markdown.code, markdown.out.startswith("### 🟡 Inconclusive (gate: blind)\n")) == (6, True)
    assert home.muster("compare", "a1", "b1", "--inconclusive", "ok").code == 0
    assert home.muster("compare", "a1", "b1", "--inconclusive", "fail").code == 1


@pytest.mark.parametrize("status", [Status.ERROR, Status.UNJUDGED])
def test_a_result_that_is_missing_on_one_side_never_passes_as_inconclusive(home: Home, status: Status) -> None:
    home.keep(noisy("a1", 100), noisy("b1", 100, [9, 19], status), noisy("c1", 100, [1, 2, 3, 4]))
    found = home.muster("compare", "c1", "b1")
    assert (found.code, found.out.split()[0]) == (1, "INCONCLUSIVE")
    assert "no result in A or in B: 2 cases" in found.out


def test_a_run_that_has_not_ended_never_passes_as_inconclusive(home: Home) -> None:
    home.keep(replace(noisy("a1", 100), state=RunState.INTERRUPTED), noisy("b1", 100, [1, 2, 3]))
    found = home.muster("compare", "a1", "b1")
    assert (found.code, found.out.startswith("INCONCLUSIVE (gate: failed)")) == (1, True)


def test_an_inconclusive_result_can_be_accepted_and_nothing_compared_cannot(home: Home) -> None:
    few = replace(GOOD, run="few1", cases=GOOD.cases[:3], results=GOOD.results[:3])
    broken = replace(few, run="broken1", results=[replace(one, status=Status.ERROR) for one in few.results])
    home.keep(few, replace(few, run="few2"), broken)
    accepted = home.muster("compare", "few1", "few2", "--inconclusive", "ok", "--json")
    assert (accepted.code, accepted.data()["verdict"]) == (0, "inconclusive")
    assert home.muster("compare", "few1", "few2").code == 6
    worse = home.muster("compare", "few1", "broken1", "--inconclusive", "ok")
    assert (worse.code, worse.out.split()[0]) == (1, "WORSE")
    nothing = home.muster("compare", "broken1", "few1", "--inconclusive", "ok")
    assert (nothing.code, nothing.out.startswith("INCONCLUSIVE")) == (1, True)


def test_a_margin_is_asked_for_and_told_with_its_limits(home: Home) -> None:
    found = home.muster("compare", "good1", "good1", "--margin", "0.1")
    assert (found.code, found.out.startswith("NOT WORSE")) == (0, True)
    assert "points at least" in found.out
    unsure = home.muster("compare", "good1", "good1", "--margin", "0.05", "--json")
    assert unsure.code == 1
    assert "more cases would probably decide" in unsure.envelope()["error"]["message"]
    assert home.muster("compare", "good1", "good1", "--margin", "0.05", "--inconclusive", "ok").code == 0
    markdown = home.muster("compare", "good1", "bad1", "--margin", "0.05", "--format", "markdown")
    assert (markdown.code, "margin 5 points" in markdown.out) == (1, True)


def test_the_table_shows_what_changed_with_both_statuses_and_scores(home: Home) -> None:
    found = home.muster("compare", "good1", "bad1")
    for words in ("pass rate", "100.0%", "60.0%", "12 regressed", "s/11", "passed", "failed", "1.000 → 0.000"):
        assert words in found.out
    assert "\x1b" not in found.out


def test_json_is_one_envelope_with_everything(home: Home) -> None:
    worse = home.muster("compare", "good1", "bad1", "--json").envelope()
    assert (worse["ok"], worse["error"]["code"], worse["data"]["verdict"]) == (False, "worse", "worse")
    assert len(worse["data"]["subjects"][0]["regressions"]) == 12
    better = home.muster("compare", "bad1", "good1", "--json")
    assert (better.code, better.data()["ok"]) == (0, True)


def test_markdown_is_for_a_pull_request(home: Home) -> None:
    found = home.muster("compare", "good1", "bad1", "--format", "markdown")
    assert (found.code, found.out.startswith("### 🔴 Worse\n")) == (1, True)
    data = json.loads(home.muster("compare", "good1", "bad1", "--format", "markdown", "--json").out)["data"]
    assert data["markdown"] == found.out


def test_a_file_of_another_machine_is_compared_without_being_imported(home: Home) -> None:
    file = home.export(a_run("elsewhere1", NAMES[:12]), "cassette.jsonl")
    assert home.muster("compare", "good1", str(file)).code == 1
    assert home.muster("compare", str(file), "good1").code == 0
    assert home.muster("runs", "show", "elsewhere1").code == 5


def test_a_baseline_comes_before_a_run_and_a_run_before_a_file_and_that_is_said(home: Home) -> None:
    home.muster("baseline", "set", "bad1", "good1")
    found = home.muster("compare", "bad1", "good1")
    assert (found.code, found.out.split()[0]) == (0, "SAME")
    assert "'bad1' is a baseline and a run; the baseline is used" in found.err
    home.export(a_run("elsewhere1"), "bad1-name")
    found = home.muster("compare", "good1", "bad1-name")
    assert (found.code, found.out.split()[0]) == (1, "WORSE")
    assert "is a run and a file; the run is used" in found.err


def test_one_subject_is_compared_with_another_of_the_same_run(home: Home) -> None:
    results = [
        a_result(
            case, Status.FAILED if subject == "ollama/q:7b" and case in NAMES[:12] else Status.PASSED, subject=subject
        )
        for case in NAMES
        for subject in ("sim/a", "ollama/q:7b")
    ]
    home.keep(a_run("both1", results=results, spec={"path": ["s"], "agents": ["sim/a", "ollama/q:7b"]}))
    found = home.muster("compare", "both1:sim/a", "both1:ollama/q:7b")
    assert (found.code, found.out.split()[0]) == (1, "WORSE")
    assert "sim/a in A is compared with ollama/q:7b in B" in found.out
    assert home.muster("compare", "both1", "both1", "--subject", "sim/a").code == 0
    assert home.muster("compare", "both1:sim/a", "both1", "--subject", "sim/b").code == 2
    assert home.muster("compare", "both1:sim/x", "both1:sim/a").code == 5


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("nowhere", "good1"), 5),
        (("good1", "nowhere:sim/echo"), 5),
        (("good1", ""), 5),
        (("good1",), 2),
        (("good1", "bad1", "--alpha", "2"), 2),
        (("good1", "bad1", "--threshold", "-1"), 2),
        (("good1", "bad1", "--margin", "0"), 2),
        (("good1", "bad1", "--notice", "0"), 2),
        (("good1", "bad1", "--inconclusive", "maybe"), 2),
        (("good1", "bad1", "--format", "pdf"), 2),
        (("good1", "bad1", "--subject", "nobody"), 5),
    ],
)
def test_what_cannot_be_compared_has_its_exit_code(home: Home, arguments: tuple[str, ...], code: int) -> None:
    found = home.muster("compare", *arguments, "--json")
    assert (found.code, found.envelope()["ok"]) == (code, False)


def test_a_beginning_that_stands_for_several_runs_is_not_guessed_at(home: Home) -> None:
    home.keep(a_run("same1"), a_run("same2"))
    found = home.muster("compare", "same", "good1")
    assert (found.code, "matches 2 runs" in found.err) == (2, True)


def test_a_file_that_is_no_run_is_named(home: Home) -> None:
    (home.folder / "notes.txt").write_text("hello")
    found = home.muster("compare", "good1", "notes.txt")
    assert (found.code, "notes.txt" in found.err) == (2, True)


def test_a_run_of_something_else_cannot_be_compared(home: Home) -> None:
    home.muster("ask", "sim/echo", "hello", "--name", "asked")
    found = home.muster("compare", "asked", "good1")
    assert (found.code, "not a suite" in found.err) == (2, True)


def repeated(name: str, failing: Sequence[tuple[str, int]]) -> Story:
    """Make a run of five cases in three epochs."""
    results = [
        a_result(case, Status.FAILED if (case, epoch) in failing else Status.PASSED, epoch=epoch)
        for case in NAMES[:5]
        for epoch in (1, 2, 3)
    ]
    spec = {"path": ["s.yaml"], "agents": ["sim/echo"], "epochs": 3}
    return a_run(name, cases=[a_case(case) for case in NAMES[:5]], results=results, spec=spec)


def test_a_comparison_of_several_epochs_counts_one_unit_and_names_it(home: Home) -> None:
    home.keep(repeated("a1", [(NAMES[1], 1)]), repeated("b1", [(NAMES[0], epoch) for epoch in (1, 2, 3)]))
    shown = home.muster("compare", "a1", "b1")
    assert "of 15 cases × epochs 3 regressed and 1 improved, which may be chance (p = 1, each case counted once)" in (
        shown.out
    )
    assert "15 cases × epochs of 5 cases compared, 3 regressed, 1 improved\n" in shown.out
    markdown = home.muster("compare", "a1", "b1", "--format", "markdown").out
    assert "15 cases × epochs of 5 cases compared, 3 regressed, 1 improved." in markdown
    assert "<summary>Regressed: 3 cases × epochs</summary>" in markdown
    assert "<summary>Improved: 1 case × epoch</summary>" in markdown
    assert "of 5 cases 1 regressed" not in shown.out + markdown


def test_a_comparison_of_one_epoch_counts_cases(home: Home) -> None:
    home.keep(a_run("a1"), a_run("b1", NAMES[:1]))
    shown = home.muster("compare", "a1", "b1").out
    assert "of 30 cases 1 regressed and 0 improved, which may be chance (p = 1)" in shown
    assert "30 cases compared, 1 regressed, 0 improved\n" in shown
