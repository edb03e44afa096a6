"""Specs that a program writes itself: everything that is wrong is told before a run is stored, field by field."""

from pathlib import Path
from typing import Any

import pytest

import muster
from muster.app.kinds import BUILT_IN
from muster.app.kinds.gateway import GATEWAY
from muster.domain.flaw import FieldFlaw, FlawCode
from muster.pool.tasks import read_task

INVALID, UNKNOWN, MISSING, BOUNDS = "invalid", "unknown", "missing", "out_of_bounds"
TYPO = {"nonsense": 1}
# A spec of each kind of work with flaws of every sort, and where they are.
SPECS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "ask": (
        {"agent": "", "prompt": "x", "max_tokens": 0, "temperature": "warm", "stream": 1, **TYPO},
        [("agent", BOUNDS), ("max_tokens", BOUNDS), ("temperature", INVALID), ("stream", INVALID)],
    ),
    "task": (
        {"prompt": " ", "priority": 10**9, "review": "yes", "after": "one", "isolation": "wortree", **TYPO},
        [("priority", BOUNDS), ("review", INVALID), ("after", INVALID), ("isolation", INVALID), ("prompt", BOUNDS)],
    ),
    "battle": (
        {"agent": "a", "message_limit": 99, "seed": "x", "goal": 5, "validators": [{"kind": "regexp"}, {}], **TYPO},
        [
            ("message_limit", BOUNDS),
            ("seed", INVALID),
            ("goal", INVALID),
            ("validators[0].kind", INVALID),
            ("validators[1].kind", MISSING),
        ],
    ),
    "scale": (
        {"battle": {"agent": "a", "counterpart": "b", "message_limit": 0, "x": 1}, "runs": -1, "goals": [{}], **TYPO},
        [("battle.message_limit", BOUNDS), ("battle.x", UNKNOWN), ("runs", BOUNDS), ("goals[0].goal", MISSING)],
    ),
    "deliberation": (
        {"members": [{"name": "a", "scale": "0..2"}, {"role": 1}], "rounds": 99, "quorum": 0, "effort": "much", **TYPO},
        [
            ("question", MISSING),
            ("members[0].scale", INVALID),
            ("members[1].name", MISSING),
            ("members[1].role", INVALID),
            ("rounds", BOUNDS),
            ("quorum", BOUNDS),
            ("effort", INVALID),
        ],
    ),
    "suite": (
        {"path": "x.yaml", "epochs": 0, "threshold": 2, "judge_samples": "3", "tags": [5], **TYPO},
        [("epochs", BOUNDS), ("threshold", BOUNDS), ("judge_samples", INVALID), ("tags[0]", INVALID)],
    ),
    "generate": (
        {"count": 0, "existing": "yes", **TYPO},
        [("count", BOUNDS)],
    ),
    "chain": (
        {"chain": {"name": "c", "groups": [[{"name": "a", "promt": "p"}]]}, "input": [], **TYPO},
        [("chain.groups[0][0].promt", UNKNOWN), ("input", INVALID)],
    ),
    "waves": (
        {"root": 5, "verifiers": [{"kind": "human", "wave": "1"}], **TYPO},
        [
            ("root", INVALID),
            ("files", MISSING),
            ("verifiers[0].kind", INVALID),
            ("verifiers[0].name", MISSING),
            ("verifiers[0].wave", INVALID),
        ],
    ),
    "fix": ({"files": [{"path": 1}], **TYPO}, [("root", MISSING), ("files[0].path", INVALID)]),
}


def test_the_specs_of_all_kinds_are_tried() -> None:
    without = {GATEWAY.workload}  # its spec is made here, and nobody else can give one
    assert set(SPECS) | without == {kind.workload for kind in BUILT_IN}


@pytest.mark.parametrize("workload", SPECS)
async def test_all_flaws_of_a_spec_are_told_before_a_run_is_stored(workload: str, tmp_path: Path) -> None:
    spec, expected = SPECS[workload]
    async with muster.open(tmp_path / "store") as m:
        for begin in (m.start, m.submit):
            with pytest.raises(muster.BadArgument) as caught:
                await begin(workload, spec)
            found = [(flaw.path, str(flaw.code)) for flaw in caught.value.flaws]
            assert set(found) >= {("nonsense", UNKNOWN), *expected}
            assert len(found) == len(set(found))
        assert not await m.runs.page()


@pytest.mark.parametrize("workload", SPECS)
async def test_what_is_no_object_is_no_spec(workload: str, tmp_path: Path) -> None:
    async with muster.open(tmp_path / "store") as m:
        with pytest.raises(muster.BadArgument, match="must be an object"):
            await m.start(workload, [1])


async def test_a_flaw_of_a_spec_says_what_to_do(tmp_path: Path) -> None:
    async with muster.open(tmp_path / "store") as m:
        with pytest.raises(muster.BadArgument) as caught:
            await m.start("task", {"prompt": "x", "priorty": 1, "isolation": "wortree", "max_rejections": 101})
    assert set(caught.value.flaws) == {
        FieldFlaw(path="priorty", message="is unknown", code=FlawCode.UNKNOWN, suggestion="did you mean priority?"),
        FieldFlaw(path="max_rejections", message="must be at most 100", code=FlawCode.OUT_OF_BOUNDS),
        FieldFlaw(
            path="isolation", message="must be one of none, worktree, clone", suggestion="did you mean worktree?"
        ),
    }


def test_a_task_that_was_stored_is_read_whatever_a_task_may_say_now() -> None:
    kept = {"prompt": "x", "priority": 10**9, "max_rejections": 1000, "older": True}
    assert read_task(kept).priority == 10**9
