"""Who polls a batch: of several processes that wait for it one, and another when that one has died."""

from pathlib import Path

import pytest

from muster.domain.batch import BatchState
from muster.domain.run import Driver
from muster.engine.batches.turns import TURN_SECONDS
from tests.engine.batches.life import Process, World

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
