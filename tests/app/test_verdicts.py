"""The verdict of a run in a list is the one of its report, and of the exit code of its command."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.app import open_muster
from muster.app.views.runs import listed_run_view
from muster.app.views.verdicts import RunVerdict, Tone, verdict_of
from muster.domain.ids import RunId
from muster.domain.run import Lease, Run, RunState
from muster.settings import load_settings
from muster.text.views import plain
from tests.witness.kinds import COMPLETED, open_kinds

WORDS = {
    "judged": "2 of 3 passed",
    "looked": "no findings",
    "deliberated": "not decided",
    "fought": "goal reached",
    "scaled": "2 of 2 reached the goal",
}


async def test_the_verdict_of_every_kind_of_work_is_that_of_its_report(tmp_path: Path) -> None:
    home = open_kinds(tmp_path, "kinds")
    settings = load_settings(folder=home.folder, environment=home.environment)
    said = {}
    async with open_muster(settings=settings) as muster:
        for name, (code, _) in COMPLETED.items():
            run = await muster.runs.find(name)
            view = plain(listed_run_view(run, await muster.runs.batches_of(run.id)))
            if view["verdict"] is not None:
                said[name] = view["verdict"]["words"]
                assert view["verdict"]["ok"] == (code == 0) == (await muster.report_of(run)).ok, name
    assert {name: said[name] for name in WORDS} == WORDS


def run_of(workload: str, spec: Any, result: Any, state: RunState = RunState.COMPLETED) -> Run:
    return Run(
        id=RunId("r1"), workload=workload, spec=spec, state=state, created_at=0.0, lease=Lease(epoch=0), result=result
    )


def counts(**numbers: int) -> Mapping[str, Any]:
    return {"ok": set(numbers) <= {"passed", "skipped"} and "passed" in numbers, "counts": numbers}


JUDGED = {"goal": "a table", "judge": "gpt"}
ENDED = [{"ending": "goal"}, {"ending": "limit"}, {"ending": "limit"}, {"ending": "limit"}]
SAID: list[tuple[str, Any, Any, tuple[bool, Tone, str]]] = [
    ("suite", {}, counts(passed=12, failed=238), (False, Tone.BAD, "12 of 250 passed")),
    ("suite", {}, counts(passed=2, skipped=1), (True, Tone.GOOD, "2 of 2 passed")),
    ("suite", {}, counts(skipped=3), (False, Tone.BAD, "no case was run")),
    ("waves", {}, {"passed": False, "findings": 1}, (False, Tone.BAD, "1 finding")),
    ("waves", {}, {"passed": True, "findings": 2}, (True, Tone.GOOD, "2 findings")),
    ("waves", {}, {"passed": False, "findings": 0}, (False, Tone.BAD, "not all was verified")),
    ("battle", JUDGED, {"ending": "limit"}, (False, Tone.BAD, "goal not reached")),
    ("battle", {}, {"ending": "limit"}, (True, Tone.PLAIN, "limit reached")),
    ("battle", JUDGED, {"ending": "error"}, (False, Tone.BAD, "error")),
    ("scale", {"battle": JUDGED}, {"battles": ENDED}, (True, Tone.PLAIN, "1 of 4 reached the goal")),
    (
        "scale",
        {"battle": JUDGED, "min_goal_rate": 0.5},
        {"battles": ENDED},
        (False, Tone.BAD, "1 of 4 reached the goal"),
    ),
    (
        "scale",
        {"battle": JUDGED, "min_goal_rate": 0.0},
        {"battles": [{"ending": ""}]},
        (False, Tone.BAD, "no battle was played"),
    ),
    ("fix", {}, {"changed": ["a.py"], "left": {"b.py": "changed"}}, (False, Tone.BAD, "1 file changed, 1 left")),
]


@pytest.mark.parametrize(("workload", "spec", "result", "expected"), SAID)
def test_a_run_that_completed_is_green_only_if_it_came_to_something_good(
    workload: str, spec: Any, result: Any, expected: tuple[bool, Tone, str]
) -> None:
    found = verdict_of(run_of(workload, spec, result))
    assert isinstance(found, RunVerdict)
    assert (found.ok, found.tone, found.words) == expected


def test_there_is_no_verdict_before_the_end_and_none_of_what_cannot_be_read() -> None:
    suite = run_of("suite", {}, counts(passed=1))
    assert verdict_of(replace(suite, state=RunState.FAILED)) is None
    assert verdict_of(replace(suite, result={"rows": []})) is None
    assert verdict_of(replace(suite, workload="mine")) is None
    assert verdict_of(run_of("battle", JUDGED, {"ending": "of a later version"})) is None
