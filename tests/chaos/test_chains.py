"""Killed at every point, a chain comes to the outputs it would have had, and no reply is paid twice."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from muster.pool.chains.chain import ChainSpec
from muster.pool.chains.reading import read_chain
from muster.pool.chains.spec import stored
from tests.chaos import work
from tests.chaos.books import check_paid_once, read_books
from tests.chaos.stage import Stage

STEPS = [
    {"name": "plan", "prompt": '["one", "two", "three"]', "extract": {"all": "$"}},
    {"name": "write", "for_each": "{steps.plan.all}", "prompt": "write {item}"},
    {"parallel": [{"name": "b", "prompt": "b {previous_output}"}, {"name": "c", "prompt": "c {previous_output}"}]},
    {"name": "end", "prompt": "end {steps.b.output} {steps.c.output}"},
]
POINTS = (
    "call.before_open:1",
    "call.opened:1",
    "call.answered:1",
    "call.settled:1",
    "store.before_commit:2",
    "store.after_commit:2",
    "call.settled:2",
    "store.after_commit:4",
    "run.before_release:1",
)


def spec_of(folder: Path) -> ChainSpec:
    path = folder / "chain.yaml"
    path.write_text(json.dumps({"name": "c", "agent": work.ANTHROPIC, "steps": STEPS}), encoding="utf-8")
    return ChainSpec(chain=read_chain(path), folder=str(folder))


async def test_a_chain_that_is_killed_again_and_again_pays_no_reply_twice(stage: Stage) -> None:
    order = stage.order(0, workload="chain", name="chain", given=stored(spec_of(stage.folder)))
    kills = 0
    for point in POINTS:
        ended = await stage.drive(order, crash_at=point)
        kills += ended.killed
    assert kills > 5
    ended = await stage.drive(order)
    written = "write one\n\nwrite two\n\nwrite three"
    assert ended.run["result"]["output"] == f"end b {written} c {written}"
    books = await read_books(stage, "chain")
    calls = [entry for entry in books.entries if entry.agent]
    assert len(calls) == 7
    check_paid_once(replace(books, entries=calls), stage.sim.audit())


@pytest.mark.parametrize("seconds", [0.05, 0.15, 0.3])
async def test_a_chain_that_is_killed_at_any_time_goes_on(stage: Stage, seconds: float) -> None:
    order = stage.order(0, workload="chain", name="chain", given=stored(spec_of(stage.folder)))
    await stage.drive_for(order, seconds)
    ended = await stage.drive(order)
    assert ended.run["state"] == "completed"
    books = await read_books(stage, "chain")
    calls = [entry for entry in books.entries if entry.agent]
    check_paid_once(replace(books, entries=calls), stage.sim.audit())
