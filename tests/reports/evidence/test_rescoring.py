"""Scoring an archive again."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from muster.domain.case import Evaluator
from muster.domain.verdict import CaseResult, Judgement, Status
from muster.reports.evidence.rescoring import rescore
from tests.reports.suite_store import Story, a_case, a_result

from .scene import CASES, FAILS, JUDGED, KEY, PASSES, contains, export, story
from .test_verifying import OTHER, contents, packed, signed_anew


def changed(told: Story, case: str, **changes: object) -> Story:
    """Give the run with one result of it changed, as if it had been scored otherwise."""
    results: Sequence[CaseResult] = [
        replace(result, **changes) if result.case == case else result  # type: ignore[arg-type]
        for result in told.results
    ]
    return replace(told, results=results)


def test_an_honest_archive_comes_out_the_same(archive: Path) -> None:
    found = rescore(archive, KEY.public_key())
    assert found.ok
    assert (found.same, found.different) == (len(CASES) - 1, 0)


def test_a_case_whose_secret_was_taken_out_is_told_apart(archive: Path) -> None:
    found = rescore(archive)
    assert (found.blurred, [one.case for one in found.differences]) == (1, ["s/leaks"])
    assert found.differences[0].redacted
    assert (found.differences[0].was, found.differences[0].now) == (Status.PASSED, Status.FAILED)


def test_a_status_that_the_answers_do_not_bear_out_is_found(tmp_path: Path) -> None:
    told = changed(story(), FAILS.id, status=Status.PASSED, score=1.0, why="")
    found = rescore(export(tmp_path, told).path)
    assert not found.ok
    different = [one for one in found.differences if not one.redacted]
    assert [(one.case, one.was, one.now) for one in different] == [(FAILS.id, Status.PASSED, Status.FAILED)]
    assert "goodbye" in different[0].why  # what was looked for, and not found
    assert different[0].why


def test_a_score_that_the_judgements_do_not_bear_out_is_found(tmp_path: Path) -> None:
    found = rescore(export(tmp_path, changed(story(), JUDGED.id, score=0.9)).path)
    assert [(one.case, one.was_score, one.now_score) for one in found.differences if not one.redacted] == [
        (JUDGED.id, 0.9, 0.8)
    ]


def test_an_error_that_no_call_shows_is_found(tmp_path: Path) -> None:
    """A passed case whose call failed, and one whose call is gone, are not believed."""
    told = changed(story(), "s/errs", status=Status.PASSED, score=1.0, error=None)
    told = changed(told, PASSES.id, keys=("case/s/passes/sim/echo/1/1", "case/s/passes/sim/echo/1/2"))
    found = rescore(export(tmp_path, told).path)
    assert {one.case: one.now for one in found.differences if one.case != "s/leaks"} == {
        "s/errs": Status.ERROR,
        PASSES.id: Status.ERROR,
    }


def test_a_result_without_a_case_is_a_difference(tmp_path: Path) -> None:
    told = story()
    found = rescore(export(tmp_path, replace(told, results=[*told.results, a_result("s/invented")])).path)
    assert found.differences[-1].now is None
    assert not found.ok


def test_process_and_judge_are_heard_each_in_its_place(tmp_path: Path) -> None:
    command = Judgement(by="check.py", passed=True)
    case = replace(JUDGED, process=("check.py",))
    told = story()
    results = [
        replace(result, judgements=(command, *result.judgements), evaluators=(Evaluator.PROCESS, Evaluator.JUDGE))
        for result in told.results
        if result.case == JUDGED.id
    ]
    told = replace(told, cases=[case], results=results, spec={**(told.spec or {}), "evaluator": "all"})
    found = rescore(export(tmp_path, told).path)
    assert (found.ok, found.same) == (True, 1)


def test_recorded_answers_are_scored_again(tmp_path: Path) -> None:
    good, bad, gone = (a_case(f"s/{name}", output=(contains("yes"),)) for name in ("good", "bad", "gone"))
    missing = {"code": "not_recorded", "message": "none"}
    told = Story(
        cases=[good, bad, gone],
        results=[
            a_result(good.id, subject="recorded"),
            a_result(bad.id, Status.FAILED, subject="recorded"),
            a_result(gone.id, Status.ERROR, subject="recorded", error=missing),
        ],
        spec={"path": ["s.yaml"], "answers": "answers.jsonl"},
        steps={"suite/answers": {good.id: "yes", bad.id: "no"}},
    )
    found = rescore(export(tmp_path, told).path)
    assert (found.ok, found.same) == (True, 3)


def test_time_that_was_over_stays_a_timeout(tmp_path: Path) -> None:
    case = a_case("s/slow", timeout=1.0)
    late = {"code": "out_of_time", "message": "its time was over"}
    told = Story(cases=[case], results=[a_result(case.id, Status.TIMED_OUT, error=late)])
    assert rescore(export(tmp_path, told).path).ok


def test_an_archive_without_a_result_proves_nothing(tmp_path: Path) -> None:
    assert not rescore(export(tmp_path, Story(cases=[PASSES], results=[])).path).ok


def test_what_is_not_valid_is_not_scored(tmp_path: Path, archive: Path) -> None:
    data = bytearray(archive.read_bytes())
    data[5000] ^= 1
    (tmp_path / "bad.tar").write_bytes(data)
    found = rescore(tmp_path / "bad.tar")
    assert (found.ok, found.verification.valid, found.same) == (False, False, 0)
    assert not rescore(archive, OTHER.public_key()).verification.valid


def test_a_signed_archive_of_nonsense_is_refused(tmp_path: Path, archive: Path) -> None:
    """Whoever signs can put anything in; nothing of it may break the reader."""
    files = contents(archive)
    nonsense = {
        "cases.jsonl": [b"[]\n", b"{}\n", b'{"id":"x"}', b"\xff\n", b"[" * 100_000 + b"\n"],
        "verdicts.jsonl": [b"{}\n", b'{"result":{"case":"s/passes"}}\n', b'{"result":[]}\n', b"null\n"],
        "calls.jsonl": [b"{}\n", b'{"key":"case/s/passes/sim/echo/1/1","reply":{},"error":null}\n'],
        "run.json": [b"{}\n", b"", b'{"spec":{"path":[]}}\n'],
    }
    path = tmp_path / "nonsense.tar"
    for name, spellings in nonsense.items():
        for spelling in spellings:
            path.write_bytes(signed_anew(files | {name: spelling}, KEY))
            found = rescore(path)
            assert not found.ok, (name, spelling[:40])
            assert not found.verification.valid or found.different
    path.write_bytes(packed(files))
    assert rescore(path).ok
