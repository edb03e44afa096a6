"""Scoring an archive again."""

import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.case import Status
from muster.domain.money import Microdollars
from muster.domain.run import RunState
from muster.suites.checks.scoring import evaluators_of, score
from muster.suites.evidence.archive import scan
from muster.suites.evidence.layout import STATEMENT
from muster.suites.evidence.rescoring import Rescoring, rescore
from muster.suites.evidence.verification import sign
from muster.suites.journal import Prompt, case_key
from muster.suites.judge.command import question_for
from muster.suites.values.case import Case, CheckKind, Evaluator, OutputCheck
from muster.suites.values.rules import rules_in
from muster.suites.values.verdict import CaseResult, Judgement, Observation
from tests.suites.evidence.scene import (
    CASES,
    FAILS,
    JUDGE_KEY,
    JUDGED,
    KEY,
    LEAKS,
    PASSES,
    SUBJECT,
    contains,
    export,
    story,
)
from tests.suites.evidence.test_verifying import OTHER, contents, packed, signed_anew
from tests.suites.reports.suite_store import Said, Story, a_case, a_reply, a_result, an_answer


def changed(told: Story, case: str, **changes: object) -> Story:
    """Give the run with one result of it changed, as if it had been scored otherwise."""
    results: Sequence[CaseResult] = [
        replace(result, **changes) if result.case == case else result  # type: ignore[arg-type]
        for result in told.results
    ]
    return replace(told, results=results)


def forged(archive: Path, folder: Path, **files: Callable[[bytes], bytes]) -> Path:
    """Change files of an archive and sign it anew, as whoever has the key can."""
    held = contents(archive)
    changes = {name.replace("_", ".", 1): change(held[name.replace("_", ".", 1)]) for name, change in files.items()}
    path = folder / "forged.tar"
    path.write_bytes(signed_anew(held | changes, KEY))
    return path


def scored(case: Case, seen: Observation, *, subject: str = "recorded", epoch: int = 1) -> CaseResult:
    """Score what was seen, without a judge, by the rules of the first version, which a story has."""
    return score(
        case,
        seen,
        subject=subject,
        epoch=epoch,
        evaluators=evaluators_of(case),
        default_threshold=0.7,
        judgements={},
        rules=rules_in({}),
    )


def swap(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        assert old in data
        return data.replace(old, new)

    return change


def _why(found: Rescoring) -> str:
    return "\n".join(one.why for one in found.differences)


def test_an_honest_archive_comes_out_the_same(archive: Path) -> None:
    found = rescore(archive, KEY.public_key(), allow_redacted=True)
    assert found.ok
    assert (found.same, found.different, found.missing, found.figures) == (len(CASES) - 1, 0, 0, ())


def test_a_case_whose_secret_was_taken_out_is_told_apart(archive: Path) -> None:
    found = rescore(archive)
    assert not found.ok  # it cannot be shown; whoever knows why may allow it
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
    told = changed(told, PASSES.id, keys=("case/s/passes/@sim/echo/1/1", "case/s/passes/@sim/echo/1/2"))
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
    case, key = replace(JUDGED, process=("check.py",)), f"{case_key(JUDGED.id, SUBJECT, 1)}/process"
    command = Judgement(by="check.py", version="process/2", passed=True, cost=Microdollars(40), keys=(key,))
    told = story()
    results = [
        replace(
            result,
            judgements=(command, *result.judgements),
            evaluators=(Evaluator.PROCESS, Evaluator.JUDGE),
            judge_cost=Microdollars(80),
        )
        for result in told.results
        if result.case == JUDGED.id
    ]
    seen = Observation(answers=("dear friend",), cost=Microdollars(40))
    said = Said(key=key, request=question_for(case, seen), reply=a_reply('{"passed": true}'), agent="check.py")
    told = replace(
        told,
        cases=[case],
        results=results,
        calls=[*told.calls, said],
        spec={**(told.spec or {}), "evaluator": "all"},
        suites=None,
    )
    found = rescore(export(tmp_path, told).path)
    assert (found.ok, found.same) == (True, 1), found
    refused = [one if one is not said else replace(said, reply=a_reply('{"passed": false}')) for one in told.calls]
    found = rescore(export(tmp_path, replace(told, calls=refused), "forged.tar").path)
    assert "the replies of check.py do not support its judgement: passed is True, and they give False" in _why(found)


def test_recorded_answers_are_scored_again(tmp_path: Path) -> None:
    good, bad, gone = (a_case(f"s/{name}", output=(contains("yes"),)) for name in ("good", "bad", "gone"))
    missing = {"code": "not_recorded", "message": "none"}
    told = Story(
        cases=[good, bad, gone],
        results=[
            scored(good, Observation(answers=("yes",))),
            scored(bad, Observation(answers=("no",))),
            scored(gone, Observation(error=missing)),
        ],
        spec={"path": ["s.yaml"], "answers": "answers.jsonl"},
        steps={"suite/answers": {good.id: "yes", bad.id: "no"}},
    )
    found = rescore(export(tmp_path, told).path)
    assert (found.ok, found.same) == (True, 3)


def test_recorded_answers_are_scored_again_under_the_rules_that_the_run_recorded(tmp_path: Path) -> None:
    case = a_case("s/empty", output=(OutputCheck(kind=CheckKind.NOT_CONTAINS, value="secret"),))
    passed = [scored(case, Observation(answers=("",)), epoch=epoch) for epoch in (1, 2)]
    old = Story(
        cases=[case],
        results=passed,
        spec={"path": ["s.yaml"], "answers": "answers.jsonl", "epochs": 2},
        steps={"suite/answers": {case.id: ""}},
    )
    assert rescore(export(tmp_path, old).path).ok
    new = replace(old, environment={"packages": {}, "scoring_rules": 2})
    found = rescore(export(tmp_path, new, "new.tar").path)
    assert [one.now for one in found.differences] == [Status.FAILED, Status.ERROR]
    later = replace(old, environment={"packages": {}, "scoring_rules": 1000})
    found = rescore(export(tmp_path, later, "later.tar").path)
    assert (found.verification.valid, found.verification.where) == (False, "environment.json")
    assert "scoring rules of version 1000" in (found.verification.what or "")


def test_judges_of_recorded_answers_are_heard_too(tmp_path: Path) -> None:
    told, key = story(), f"{case_key(JUDGED.id, 'recorded', 1)}/judge/sim/judge/1"
    (result,) = [result for result in told.results if result.case == JUDGED.id]
    (judgement,) = result.judgements
    spent: dict[str, Any] = {"cost": Microdollars(0), "input_tokens": 0, "output_tokens": 0, "model": "", "keys": ()}
    heard = replace(result, subject="recorded", judgements=(replace(judgement, keys=(key,)),), **spent)
    told = Story(
        cases=[JUDGED],
        results=[heard],
        calls=[replace(said, key=key) for said in told.calls if said.key == JUDGE_KEY],
        spec={"path": ["s.yaml"], "answers": "answers.jsonl", "judge": "sim/judge"},
        steps={"suite/answers": {JUDGED.id: "dear friend"}},
    )
    assert rescore(export(tmp_path, told).path).ok
    found = rescore(export(tmp_path, replace(told, calls=[]), "unheard.tar").path)
    assert (found.ok, f"nothing is recorded under {key}" in _why(found)) == (False, True)


def test_time_that_was_over_stays_a_timeout(tmp_path: Path) -> None:
    case = a_case("s/slow", timeout=1.0)
    late = {"code": "out_of_time", "message": "its time was over"}
    told = Story(cases=[case], results=[scored(case, Observation(error=late, timed_out=True), subject=SUBJECT)])
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
        "calls.jsonl": [b"{}\n", b'{"key":"case/s/passes/@sim/echo/1/1","reply":{},"error":null}\n'],
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
    assert rescore(path, allow_redacted=True).ok


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        (b'"failed":1', b'"failed":0', "statistics.json/statuses/failed"),
        (b'"output_tokens":12', b'"output_tokens":13', "statistics.json/subjects/sim/echo/output_tokens"),
        (b'"cost":240', b'"cost":0', "statistics.json/subjects/sim/echo/cost"),
        (b'"repeats":[{', b'"repeats":[{},{', "statistics.json/subjects/sim/echo/repeats"),
        (b'"subjects":{', b'"subjects":{"sim/best":{},', "statistics.json/subjects/sim/best"),
    ],
)
def test_a_figure_that_does_not_follow_from_the_results_is_named(
    tmp_path: Path, archive: Path, old: bytes, new: bytes, where: str
) -> None:
    found = rescore(forged(archive, tmp_path, statistics_json=swap(old, new)), allow_redacted=True)
    assert (found.ok, found.different) == (False, 0)
    assert where in [figure.where for figure in found.figures]


def test_figures_and_verdicts_that_were_forged_together_are_found_by_the_calls(tmp_path: Path) -> None:
    """Costs stand in the calls; nobody can make an agent cheaper in the verdicts and the figures alone."""
    found = rescore(export(tmp_path, changed(story(), PASSES.id, cost=Microdollars(0))).path, allow_redacted=True)
    assert {figure.where.rsplit("/", 1)[1] for figure in found.figures} == {"cost", "cost_per_case"}
    assert "its cost is 0, and its calls give 40" in _why(found)


def test_numbers_that_nobody_gave_break_nothing(tmp_path: Path, archive: Path) -> None:
    huge = b'"cost":1' + b"0" * 400
    for name in ("calls_jsonl", "statistics_json"):
        found = rescore(forged(archive, tmp_path, **{name: lambda data: data.replace(b'"cost":40', huge)}))
        assert not found.ok
    found = rescore(forged(archive, tmp_path, statistics_json=swap(b'"cost":240', huge)))
    assert not found.ok


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'\\"score\\": 0.8', b'\\"score\\": 0.1', "items 1 score is 0.8, and they give 0.1"),
        (b"it says dear", b"it says dead", "items 1 rationale is it says dear, and they give it says dead"),
        (b'"{\\"items\\"', b'"{\\"atems\\"', "sim/judge do not support its judgement"),
        (JUDGE_KEY.encode(), JUDGE_KEY.encode() + b"0", f"nothing is recorded under {JUDGE_KEY}"),
    ],
)
def test_a_judgement_that_its_replies_do_not_bear_out_is_named(
    tmp_path: Path, archive: Path, old: bytes, new: bytes, why: str
) -> None:
    found = rescore(forged(archive, tmp_path, calls_jsonl=swap(old, new)), allow_redacted=True)
    assert not found.ok
    first = next(one for one in found.differences if not one.redacted)
    assert (first.case, why in first.why) == (JUDGED.id, True), first


def test_a_judgement_without_a_reply_must_be_a_recorded_failure(tmp_path: Path) -> None:
    error = {"code": "overloaded", "message": "too many"}
    told = story()
    calls = [replace(said, reply=None, error=error) if said.key == JUDGE_KEY else said for said in told.calls]
    found = rescore(export(tmp_path, replace(told, calls=calls)).path)
    assert [one.now for one in found.differences if not one.redacted] == [Status.UNJUDGED]
    why = "sample 1: the judge sim/judge gave no reply: too many (overloaded)"
    failed = Judgement(by="sim/judge", version="rubric/1", failures=(why,), keys=(JUDGE_KEY,))
    rest = {"status": Status.UNJUDGED, "score": None, "judgements": (failed,), "judge_cost": 0}
    honest = changed(replace(told, calls=calls), JUDGED.id, **rest)
    # An item that nobody scored has no score in the result either.
    (result,) = [one for one in honest.results if one.case == JUDGED.id]
    honest = changed(honest, JUDGED.id, items=tuple(replace(item, score=None, by="") for item in result.items))
    found = rescore(export(tmp_path, honest, "honest.tar").path, allow_redacted=True)
    assert (found.ok, found.different, found.figures) == (True, 0, ()), found.differences


def test_a_flag_in_a_verdict_excuses_nothing(tmp_path: Path, archive: Path) -> None:
    """Whoever signs can say that a text lost a secret; only a mark in the text shows it."""

    def flagged(data: bytes) -> bytes:
        lines = [json.loads(line) for line in data.splitlines()]
        for line in lines:
            line["redacted"] = line["result"]["case"] != LEAKS.id
            line["result"]["score"] = 0.5 if line["result"]["case"] == FAILS.id else line["result"]["score"]
        return b"".join(json.dumps(line).encode() + b"\n" for line in lines)

    found = rescore(forged(archive, tmp_path, verdicts_jsonl=flagged), allow_redacted=True)
    assert (found.ok, found.different, found.blurred) == (False, 1, 1)
    assert [one.case for one in found.differences if one.redacted] == [LEAKS.id]


def many(**rest: object) -> Story:
    """Make a run of two cases, one with an agent of its own, two prompts and two epochs."""
    cases = [
        a_case("s/one", output=(contains("yes"),)),
        a_case("s/two", agents=("sim/own",), output=(contains("yes"),)),
    ]
    units = [
        (case, f"{agent}+{prompt}", epoch)
        for case in cases
        for prompt in ("kind", "curt")
        for agent in case.agents or ("sim/a", "sim/b")
        for epoch in (1, 2)
    ]
    calls = [
        replace(
            an_answer(case, "yes", subject=subject, epoch=epoch, system=f"be {subject.partition('+')[2]}"),
            agent=subject.partition("+")[0],
        )
        for case, subject, epoch in units
    ]
    spent: dict[str, Any] = {"cost": Microdollars(40), "input_tokens": 3, "output_tokens": 2, "model": "echo-1"}
    results = [
        scored(case, Observation(answers=("yes",), keys=(said.key,), **spent), subject=subject, epoch=epoch)
        for (case, subject, epoch), said in zip(units, calls, strict=True)
    ]
    spec = {"path": ["s.yaml"], "agents": ["sim/a", "sim/b"], "prompts": ["kind.txt", "curt.txt"], "epochs": 2}
    prompts = [Prompt(name="kind", text="be kind"), Prompt(name="curt", text="be curt")]
    return replace(Story(cases=cases, results=results, calls=calls, spec=spec, prompts=prompts), **rest)  # type: ignore[arg-type]


def test_every_unit_of_a_run_has_one_verdict(tmp_path: Path) -> None:
    found = rescore(export(tmp_path, many()).path)
    assert (found.ok, found.same, found.missing, found.unmentioned) == (True, 12, 0, 0), found


def test_a_missing_verdict_is_named_and_its_calls_are_told(tmp_path: Path) -> None:
    told = many()
    gone = told.results[2]
    kept = replace(told, results=[result for result in told.results if result is not gone])
    found = rescore(export(tmp_path, kept).path)
    assert [(one.case, one.subject, one.epoch, one.was) for one in found.differences] == [
        (gone.case, gone.subject, gone.epoch, None)
    ]
    assert (found.ok, found.missing, found.unmentioned_keys) == (False, 1, gone.keys)


def test_a_run_that_was_stopped_may_have_fewer_verdicts(tmp_path: Path) -> None:
    told = many()
    found = rescore(export(tmp_path, replace(told, results=told.results[:5], state=RunState.CANCELED)).path)
    assert (found.ok, found.same, found.missing, found.unmentioned) == (True, 5, 7, 7)


@pytest.mark.parametrize("state", [RunState.COMPLETED, RunState.CANCELED])
@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "duplicate"),
        ({"subject": "sim/c+kind"}, "unexpected"),
        ({"epoch": 3}, "unexpected"),
        ({"epoch": 0}, "unexpected"),
    ],
)
def test_a_duplicate_or_stray_verdict_is_named(
    tmp_path: Path, state: RunState, change: dict[str, object], why: str
) -> None:
    told = many(state=state)
    more: CaseResult = replace(told.results[1], **change)  # type: ignore[arg-type]
    results = [*told.results[:2], more, *told.results[2:]]
    found = rescore(export(tmp_path, replace(told, results=results)).path)
    (one,) = found.differences
    assert (found.ok, found.same, one.case, one.subject, one.epoch) == (False, 12, more.case, more.subject, more.epoch)
    assert why in one.why


def test_cases_that_are_left_out_with_their_verdicts_are_noticed(tmp_path: Path, archive: Path) -> None:
    found = rescore(
        forged(
            archive,
            tmp_path,
            cases_jsonl=lambda data: b"".join(data.splitlines(keepends=True)[1:]),
            verdicts_jsonl=lambda data: b"".join(data.splitlines(keepends=True)[1:]),
        )
    )
    assert not found.ok
    assert {"suite.json/cases", "statistics.json/statuses/passed"} <= {figure.where for figure in found.figures}


def test_the_counts_that_were_signed_are_those_of_the_results(tmp_path: Path, archive: Path) -> None:
    held = contents(archive)
    rest = {name: data for name, data in held.items() if name != STATEMENT}
    members = scan(io.BytesIO(packed(rest)), {}).members
    path = tmp_path / "boast.tar"
    path.write_bytes(packed({**rest, STATEMENT: sign(members, {"results": {"passed": 7}}, KEY)}))
    found = rescore(path, allow_redacted=True)
    assert f"{STATEMENT}/results/passed" in [figure.where for figure in found.figures]


def test_a_spec_of_endless_subjects_is_refused(tmp_path: Path, archive: Path) -> None:
    agents = json.dumps([f"sim/{number}" for number in range(10_001)]).encode()
    found = rescore(forged(archive, tmp_path, run_json=swap(b'"agents":["sim/echo"]', b'"agents":' + agents)))
    assert (found.verification.valid, found.verification.where) == (False, "run.json")
