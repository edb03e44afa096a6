"""Nothing of the matrix is a success: by what a run is made of, and of a sample by the exit code of the command."""

import json
from pathlib import Path
from typing import Any

import pytest

from muster.domain.call import Reply
from muster.domain.case import Status
from muster.suites.checks.scoring import score
from muster.suites.format.suite import open_suite
from muster.suites.judge.command import read_answer
from muster.suites.judge.rubric import Heard, retell_judge
from muster.suites.values.case import Evaluator
from muster.suites.values.verdict import Judgement, Observation
from tests.suites.probes.matrix import CONTROLS, PROBES, each
from tests.suites.probes.verdict import SAID, Probe, a_case, a_suite, answers, exits_with_0, unchecked

SAMPLE = {"files": 12, "cases": 12, "filters": 6, "replays": 8, "epochs": 4, "json": 5, "fragments": 5, "references": 4}


@pytest.mark.parametrize("every", [5, pytest.param(1, marks=pytest.mark.chaos)])
@pytest.mark.parametrize("group", PROBES)
def test_nothing_that_was_not_checked_passes(tmp_path: Path, group: str, every: int) -> None:
    assert unchecked(tmp_path, PROBES[group][::every]) == []


@pytest.mark.parametrize("group", PROBES)
def test_the_command_exits_with_0_for_no_probe_of_a_sample(tmp_path: Path, group: str) -> None:
    """Take every n-th, so that all parts of a group are there."""
    known = [probe for probe in PROBES[group] if probe.is_for_the_command]
    sample = known[:: len(known) // SAMPLE[group]]
    assert len(sample) >= SAMPLE[group]
    assert exits_with_0(tmp_path, sample) == []


def test_the_command_exits_with_0_for_what_is_sound(tmp_path: Path) -> None:
    assert exits_with_0(tmp_path, CONTROLS) == [probe.name for probe in CONTROLS]


def test_what_is_sound_passes(tmp_path: Path) -> None:
    assert unchecked(tmp_path, CONTROLS) == [probe.name for probe in CONTROLS]


# Judges and commands: what they reply about a good answer.

SCORES = [{"rubric_id": "kind", "score": 1}]
VERDICT = {"items": [{"id": "kind", "score": 1, "evidence": "", "rationale": "so"}]}
CONTRARY: tuple[dict[str, Any], ...] = (
    *({name: False} for name in ("ok", "success", "is_passed", "isValid")),
    *({name: True} for name in ("failed", "is_error", "timed_out")),
    *({"error": "boom"}, {"errors": ["x"]}, {"verdict": "fail"}, {"status": "FAILED"}, {"result": False}),
)
COMMAND_REPLIES: tuple[Any, ...] = (
    *("", " ", "yes", "true", "1", "null", "[]", "{}", "passed", '"passed"', "NaN"),
    *({"scores": value} for value in each([], None, {}, "x", 1, [None], [{}], [1])),
    *({"scores": [{"rubric_id": "kind", "score": value}]} for value in each(None, "1", True, 2, -1, 0.2, [1])),
    *({"scores": [{"rubric_id": value, "score": 1}]} for value in each("other", "", None, "Kind", 5)),
    *({"passed": value} for value in each(False, None, "true", 1, "yes", {})),
    *({"scores": SCORES, name: False} for name in ("pased", "Passed", "pass", "passsed")),
    *({"scores": SCORES} | said for said in CONTRARY),
    *({"scores": [SCORES[0] | said]} for said in CONTRARY),
    *({"passed": True} | said for said in CONTRARY[:4]),
    {"scores": [SCORES[0] | {"passed": False}]},
    {"scores": SCORES + SCORES},
    {"scores": SCORES, "passed": False},
    {"Scores": SCORES},
    {"score": 1},
    {"ok": True},
    'Sure: {"passed": true}',
    '```json\n{"passed": true}\n```',
    '{"passed": true}\n{"passed": true}',
    '{"passed": false, "passed": true}',
    '{"scores": [{"rubric_id": "kind", "score": NaN}]}',
    '{"passed": true',
)
JUDGE_REPLIES: tuple[Any, ...] = (
    *("", " ", "yes", "1", "null", "[]", "{}", "It is kind: 1.0"),
    *({"items": value} for value in each([], None, {}, "x", [None], [{}])),
    *({"items": [VERDICT["items"][0] | {"score": value}]} for value in each(None, "high", True, 2, -1, 0.2, [])),
    *({"items": [VERDICT["items"][0] | {"id": value}]} for value in each("other", "", None, 5)),
    {"items": VERDICT["items"] * 2},
    {"scores": VERDICT["items"]},
    f"Sure: {json.dumps(VERDICT)}",
    f"{json.dumps(VERDICT)}\n{json.dumps(VERDICT)}",
    json.dumps(VERDICT)[:-1],
)


def spelled(reply: Any) -> Reply:
    return Reply(text=reply if isinstance(reply, str) else json.dumps(reply))


def status(folder: Path, evaluator: Evaluator, reply: Any) -> Status:
    """Return how a case ends whose good answer is judged by this reply."""
    rubric = {"rubric": [{"id": "kind", "description": "It is kind."}]}
    config = {"evaluator": str(evaluator)} | ({"process_cmd": ["true"]} if evaluator is Evaluator.PROCESS else {})
    path = folder / "cases.yaml"
    path.write_text(a_suite(a_case(description="x", expected=rubric, evaluator_config=config)), encoding="utf-8")
    (case,) = open_suite(path).cases()
    seen = Observation(answers=(SAID,))
    if evaluator is Evaluator.PROCESS:
        said: Judgement = read_answer(case, "check", spelled(reply), "k/process")
    else:
        heard = Heard(reply=spelled(reply), error=None)
        calls = {f"k/judge/j/1{more}": heard for more in ("", "/again", "/repair", "/2")}
        said = retell_judge(case, seen, calls, judge="j", samples=1, key="k", threshold=0.7)
    given = {evaluator: said}
    found = score(case, seen, subject="", epoch=1, evaluators=(evaluator,), default_threshold=0.7, judgements=given)
    return found.status


@pytest.mark.parametrize(
    ("evaluator", "replies"), [(Evaluator.PROCESS, COMMAND_REPLIES), (Evaluator.JUDGE, JUDGE_REPLIES)]
)
def test_no_reply_that_says_nothing_passes_a_case(
    tmp_path: Path, evaluator: Evaluator, replies: tuple[Any, ...]
) -> None:
    assert [reply for reply in replies if status(tmp_path, evaluator, reply) is Status.PASSED] == []
    sound = {"scores": SCORES} if evaluator is Evaluator.PROCESS else VERDICT
    assert status(tmp_path, evaluator, sound) is Status.PASSED


# Judge and command print what stands in a file of the project.
JUDGE = '[agents.judge]\nkind = "program"\nmode = "plain"\ncommand = ["cat", "reply.txt"]\nbudget_usd = 0.0\n'
REPLIES: dict[Evaluator, tuple[Any, ...]] = {Evaluator.PROCESS: COMMAND_REPLIES, Evaluator.JUDGE: JUDGE_REPLIES}


@pytest.mark.parametrize("evaluator", REPLIES)
def test_the_command_exits_with_0_for_no_reply_that_says_nothing(tmp_path: Path, evaluator: Evaluator) -> None:
    (tmp_path / "muster.toml").write_text(JUDGE, encoding="utf-8")
    known = REPLIES[evaluator]
    sound = {"scores": SCORES} if evaluator is Evaluator.PROCESS else VERDICT
    probes = [judged(evaluator, reply, tmp_path) for reply in (*known[:: len(known) // 6], sound)]
    assert exits_with_0(tmp_path, probes) == [probes[-1].name]


def judged(evaluator: Evaluator, reply: Any, project: Path) -> Probe:
    """Make a case with a good answer, about which this is said."""
    text = spelled(reply).text
    config = {"evaluator": str(evaluator)} | (
        {"process_cmd": ["cat", "reply.txt"]} if evaluator is Evaluator.PROCESS else {}
    )
    case = a_case(
        description="x", expected={"rubric": [{"id": "kind", "description": "It is kind."}]}, evaluator_config=config
    )
    judge = {} if evaluator is Evaluator.PROCESS else {"judge": "judge"}
    return Probe(
        name=text,
        files={"cases.yaml": a_suite(case)},
        said=answers({"s/good": SAID}),
        options=judge,
        prepare=lambda _: (project / "reply.txt").write_text(text, encoding="utf-8"),
    )


def test_the_matrix_has_at_least_400_probes() -> None:
    names = [probe.name for group in PROBES.values() for probe in group]
    assert len(set(names)) == len(names)
    assert len(names) + len(COMMAND_REPLIES) + len(JUDGE_REPLIES) >= 400
