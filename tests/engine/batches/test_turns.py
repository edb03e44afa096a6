"""Who polls a batch: of several processes that wait for it one, another when that one has died, an operator first."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.domain.batch import BatchState
from muster.domain.run import Driver
from muster.engine.batches.turns import TURN_SECONDS, may_sleep
from tests.engine.batches.life import NAME, Process, World
from tests.engine.batches.test_resolve import BATCH

pytestmark = pytest.mark.sqlite_file

ROUNDS = 60  # in which the one whose turn it is polls several times, and extends its turn


class FarWorld(World):
    """A world whose processes are on machines of their own: nobody sees who has died."""

    def is_gone(self, driver: Driver) -> bool:
        return False


async def until(process: Process, step: str) -> None:
    """Let a process go on until it has taken a step."""
    for _ in range(1000):
        if await process.go() == step:
            return
    raise AssertionError(f"it never comes to {step}")


@pytest.mark.parametrize("kind", ["anthropic", "openai"])
@pytest.mark.parametrize("world", [World, FarWorld])
async def test_one_process_polls_and_another_takes_over_when_it_dies(
    tmp_path: Path, world: type[World], kind: str
) -> None:
    made = world(tmp_path, kind)
    await made.begin()
    try:
        first = await made.start()
        await until(first, "poll")
        second = await made.start()
        steps: dict[Process, list[str | None]] = {first: [], second: []}
        for _ in range(ROUNDS):
            for process, taken in steps.items():
                taken.append(await process.go())
        assert steps[first].count("poll") > 2
        assert "keep_turn" in steps[first]
        assert "poll" not in steps[second]

        await first.kill()
        died = made.clock.time
        await until(second, "poll")
        assert made.clock.time - died <= (TURN_SECONDS if world is FarWorld else 1.0) + 1.0
        made.end_batches()
        await made.to_end(second)
        assert (await made.batch()).state is BatchState.COLLECTED
    finally:
        await made.close()


async def test_who_fetches_by_hand_takes_the_turn_of_a_process_that_sleeps_between_polls(tmp_path: Path) -> None:
    made = World(tmp_path, "anthropic")
    await made.begin()
    try:
        worker = await made.start()
        await until(worker, "poll")
        await until(worker, "sleep")
        begun = made.clock.time
        operator = await made.start(lambda batcher: batcher.fetch(NAME, by_hand=True))
        await until(operator, "poll")
        assert made.clock.time == begun
        other = await made.start(lambda batcher: batcher.fetch(NAME, by_hand=True))
        await until(worker, "keep_turn")
        steps: dict[Process, list[str | None]] = {operator: [], worker: [], other: []}
        for _ in range(ROUNDS):
            for process, taken in steps.items():
                taken.append(await process.go())
        assert steps[operator].count("poll") > 2
        assert "poll" not in steps[worker] + steps[other]

        await operator.kill()
        await other.kill()
        await until(worker, "poll")
        await made.to_end(worker)
        assert ((await made.batch()).state, (await made.batch()).by_hand) == (BatchState.COLLECTED, False)
    finally:
        await made.close()


@pytest.mark.parametrize(
    ("changes", "gives_way"),
    [
        ({"state": BatchState.RUNNING}, True),
        ({"state": BatchState.RUNNING, "by_hand": True}, False),
        ({"state": BatchState.ENDED}, False),  # its results are being read
        ({"state": BatchState.ENDED, "stalled": True}, True),
    ],
)
def test_a_turn_is_taken_only_from_who_may_sleep(changes: dict[str, Any], gives_way: bool) -> None:
    assert may_sleep(replace(BATCH, **changes)) is gives_way
