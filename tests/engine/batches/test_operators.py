"""How long an operator's reconcile waits for a provider that does not answer, and what it does then."""

from collections.abc import AsyncIterator, Collection
from pathlib import Path

import pytest

from muster.domain.batch import BatchState
from muster.domain.errors import BatchOverdue
from tests.engine.batches.life import NAME, PATIENCE, Answer, Process, World

pytestmark = pytest.mark.sqlite_file

CREATE_LOST = Answer.CUT_BEFORE


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path, "anthropic")
    await made.begin()
    yield made
    await made.close()


async def refuse(process: Process, requests: Collection[str], most: int = 300) -> list[str | None]:
    """Let a process go on to its end while the provider answers some requests with errors; returns its steps."""
    steps: list[str | None] = []
    while process.alive and len(steps) < most:
        turns = process.gate.waiting
        refused = any(turn.what in requests for turn in turns)
        steps.append(await process.go(Answer.REFUSED if refused else Answer.OK))
    return steps


async def create(world: World, answer: Answer) -> None:
    """Have a process send the batch, and die when its create has got this answer."""
    process = await world.start()
    while (await process.go(answer)) != ("create" if answer is CREATE_LOST else "create answered"):
        pass
    for _ in range(4):  # in which the outcome is stored
        await process.go()
    await process.kill()


async def test_a_list_that_cannot_be_read_delays_resubmit_by_one_grace_and_that_is_told(world: World) -> None:
    await create(world, CREATE_LOST)
    begun = world.clock.time
    operator = await world.start_to_give_up()
    steps = await refuse(operator, ("list",))
    batch = await world.batch()
    assert (batch.state, operator.error) == (BatchState.ABANDONED, None)
    assert steps.count("list") > 2
    assert world.clock.time - begun <= PATIENCE.grace + PATIENCE.poll_first
    assert "if it was created after all, it was paid for" in batch.note
    assert "the provider's list cannot be read: too fast" in batch.note


async def test_a_list_that_can_be_read_again_says_so(world: World) -> None:
    await create(world, CREATE_LOST)
    operator = await world.start(lambda batcher: batcher.resolve(NAME))
    while "cannot be read" not in (await world.batch()).note:
        await operator.go(Answer.REFUSED)
    await world.to_end(operator)
    batch = await world.batch()
    assert (batch.state, batch.stalled) == (BatchState.SENT, True)
    assert batch.note.endswith("; the provider's list does not show it")
    assert "cannot be read" not in batch.note


async def test_a_batch_that_the_provider_has_is_not_given_up_because_it_does_not_answer(world: World) -> None:
    await create(world, Answer.OK)
    begun = world.clock.time
    operator = await world.start_to_give_up()
    await refuse(operator, ("poll",))
    batch = await world.batch()
    assert isinstance(operator.error, BatchOverdue)
    assert (batch.state, batch.stalled) == (BatchState.RUNNING, True)
    assert world.clock.time - begun <= PATIENCE.grace + PATIENCE.poll_first


async def test_a_look_that_finds_a_batch_running_clears_what_was_told_of_it(world: World) -> None:
    await create(world, Answer.OK)
    await refuse(await world.start_to_give_up(), ("poll",))
    await refuse(await world.start_to_give_up(), ())
    batch = await world.batch()
    assert (batch.state, batch.stalled, batch.note) == (BatchState.RUNNING, False, "the provider says running")


async def test_a_batch_that_another_process_reads_for_long_is_not_given_up(world: World) -> None:
    await create(world, Answer.OK)
    world.end_batches()
    reader = await world.start()
    while not any(turn.what == "results" for turn in reader.gate.waiting):
        await reader.go()
    begun = world.clock.time
    operator = await world.start_to_give_up()
    while operator.alive:
        await operator.go()
        await keep_turn(reader, world.clock.time)
    assert world.clock.time - begun >= PATIENCE.grace
    assert isinstance(operator.error, BatchOverdue)
    assert "is being read by process 2 on host" in operator.error.message
    await world.to_end(reader)
    assert (await world.batch()).state is BatchState.COLLECTED


async def keep_turn(process: Process, now: float) -> None:
    """Let a process extend its turn when that is due, and nothing else."""
    due = [turn for turn in process.gate.waiting if turn.what == "keep_turn" or 0 < turn.until <= now]
    for turn in due:
        await process.step(process.gate.waiting.index(turn))
