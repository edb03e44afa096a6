"""Killed anywhere, battles and scale tests come to the end they would have had; no reply is paid or told twice."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from muster.app import Muster
from muster.battles.scale_spec import ScaleSpec, stored_scale
from muster.battles.spec import BattleSpec, stored
from muster.battles.values import MESSAGE_EVENT, BattleEnding
from muster.domain.entry import EntryKind
from tests.battles.home import GOAL, NO, YES
from tests.chaos import work
from tests.chaos.books import check_paid_once, read_books
from tests.chaos.stage import Stage, declare_prices
from tests.rehearsal import ForkedRehearsal

CLERK, GUEST = (name.partition("/")[2] for name in (work.ANTHROPIC, work.OPENAI))
RULES = [
    {"model": CLERK, "text": "# The goal[\\s\\S]*4711", "answer": YES},
    {"model": CLERK, "text": "# The goal", "answer": NO},
    {"model": CLERK, "turn": 3, "answer": "It is booked: number 4711."},
    {"model": CLERK, "answer": "For how many?"},
    {"model": GUEST, "answer": "For two."},
]
BATTLE = BattleSpec(agent=work.ANTHROPIC, counterpart=work.OPENAI, goal=GOAL, judge=work.ANTHROPIC)
POINTS = (
    "call.opened:1",
    "call.answered:2",
    "store.after_commit:4",
    "call.settled:2",
    "store.before_commit:9",
    "run.before_release:1",
)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with ForkedRehearsal(latency_ms=10, script={"rules": RULES}) as running:
        found = Stage(tmp_path / "stage", running)
        declare_prices(found.folder)
        yield found


async def told(muster: Muster, run: str) -> Sequence[int]:
    """Return the numbers of the messages of a conversation in the order of its events."""
    found = (await muster.battles.find(run)).id
    events = await muster.runs.events(found)
    return [int(str(event.data["seq"])) for event in events if event.kind == MESSAGE_EVENT]


async def test_a_battle_that_is_killed_again_and_again_tells_each_message_once(stage: Stage) -> None:
    order = stage.order(0, workload="battle", name="battle", given=stored(BATTLE))
    kills = [(await stage.drive(order, crash_at=point)).killed for point in POINTS]
    assert sum(kills) > 3, kills
    ended = await stage.drive(order)
    assert ended.run["result"]["ending"] == BattleEnding.GOAL
    books = await read_books(stage, "battle")
    calls = [entry for entry in books.entries if entry.kind is EntryKind.CALL]
    assert len(calls) == 3 + 2 + 3 + 1  # replies of both sides, judges, and one that confirms
    check_paid_once(replace(books, entries=calls), stage.sim.audit())
    async with stage.open() as muster:
        assert await told(muster, "battle") == [1, 2, 3, 4, 5, 6]
        found = await muster.battles.status("battle")
        assert [(one.turn, str(one.source)) for one in found.decisions] == [
            (1, "judge"),
            (2, "judge"),
            (3, "judge"),
            (3, "confirm"),
        ]


async def test_a_scale_test_that_is_killed_plays_no_battle_twice(stage: Stage) -> None:
    spec = stored_scale(ScaleSpec(battle=BATTLE, runs=3, concurrency=3))
    order = stage.order(0, workload="scale", name="scale", given=spec)
    points = ("call.settled:5", "store.after_commit:30", "run.before_release:2")
    kills = [(await stage.drive(order, crash_at=point)).killed for point in points]
    assert sum(kills) >= 2, kills
    await stage.drive(order)
    async with stage.open() as muster:
        found = await muster.battles.scales.result("scale")
        assert (found.counts["goal"], found.ok) == (3, True)
        children = await muster._backend.store.archive.children(found.run.id)
        assert {one.id for one in children} == {one.run.id for one in found.reports}
        for one in found.reports:
            assert await told(muster, one.run.id) == [1, 2, 3, 4, 5, 6]
        uncertain = sum(one.run.calls.uncertain for one in found.reports)
        assert stage.sim.audit().calls <= 3 * 9 + uncertain
