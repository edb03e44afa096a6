"""The life of a batch with several processes: every step of one may fall between any two of another."""

import asyncio
import random
import tempfile
from collections.abc import Coroutine
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.engine.batches.life import Answer, World

KINDS = ("anthropic", "openai")
MOST = 3  # processes at a time


class BatchLife(RuleBasedStateMachine):
    """Processes are started, told to go on, left standing, and killed; the provider answers, cuts and repeats."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._runner = asyncio.Runner()
        self.world: World

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)

    @initialize(kind=st.sampled_from(KINDS))
    def begin(self, kind: str) -> None:
        self.world = World(Path(self._folder.name), kind)
        self.do(self.world.begin())
        self.do(self.world.start())

    @property
    def alive(self) -> list[int]:
        return [place for place, process in enumerate(self.world.processes) if process.alive]

    @rule(
        which=st.integers(0, MOST - 1), turn=st.integers(0, 1), answer=st.sampled_from(Answer), times=st.integers(1, 6)
    )
    def go_on(self, which: int, turn: int, answer: Answer, times: int) -> None:
        if not self.alive:
            return
        process = self.world.processes[self.alive[which % len(self.alive)]]
        self.do(process.step(turn, answer) if turn else process.go(answer))
        for _ in range(times - 1):
            self.do(process.go())

    @precondition(lambda self: len(self.alive) < MOST)
    @rule(what=st.sampled_from(["fetch", "fetch", "fetch", "give up", "cancel"]))
    def start(self, what: str) -> None:
        starts = {
            "fetch": self.world.start,
            "give up": self.world.start_to_give_up,
            "cancel": self.world.start_to_cancel,
        }
        self.do(starts[what]())

    @precondition(lambda self: bool(self.alive))
    @rule(which=st.integers(0, MOST - 1))
    def kill(self, which: int) -> None:
        self.do(self.world.processes[self.alive[which % len(self.alive)]].kill())

    @rule(seconds=st.sampled_from([1.0, 31.0, 200.0]))
    def wait(self, seconds: float) -> None:
        self.world.clock.time += seconds

    @rule()
    def provider_ends_everything(self) -> None:
        self.world.end_batches()

    @invariant()
    def is_created_once_unless_it_was_given_up(self) -> None:
        if hasattr(self, "world") and not self.world.given_up:
            assert len(self.world.provider.created) <= 1

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.do(self.world.finish())
            self.do(self.world.thaw())
            self.do(self.world.check())
            self.do(self.world.close())
        self._runner.close()
        self._folder.cleanup()


HEALTH = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

TestBatchLife = BatchLife.TestCase
TestBatchLife.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None, suppress_health_check=HEALTH, database=None
)


@pytest.mark.chaos
def test_the_life_of_a_batch_at_length() -> None:
    run_state_machine_as_test(
        BatchLife,
        settings=settings(
            max_examples=80, stateful_step_count=50, deadline=None, suppress_health_check=HEALTH, database=None
        ),
    )


SAMPLE = 25  # pairs of steps
CREATED = {"anthropic": 10, "openai": 14}  # steps after which a process has handed the batch in


async def two_processes(folder: Path, kind: str, first: int, second: int, *, first_ends_first: bool) -> None:
    """Stop one process after so many steps and another after so many; then let them go on, one after the other."""
    folder.mkdir(parents=True)
    world = World(folder, kind)
    await world.begin()
    one = await world.start()
    for _ in range(first):
        await one.go()
    world.clock.time += 31.0  # the claim of one that stands still is over by now
    other = await world.start()
    for _ in range(second):
        await other.go()
    for process in (one, other) if first_ends_first else (other, one):
        await world.to_end(process)
        assert len(world.provider.created) <= 1
    await world.finish()
    await world.check()
    await world.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_step_of_one_process_may_fall_between_any_two_of_another(tmp_path: Path, kind: str) -> None:
    pairs = list(product(range(CREATED[kind] + 1), repeat=2))
    for first, second in random.Random(kind).sample(pairs, SAMPLE):  # all of them in the test below
        odd = bool((first + second) % 2)
        await two_processes(tmp_path / f"{first}-{second}", kind, first, second, first_ends_first=odd)


@pytest.mark.chaos
@pytest.mark.parametrize("first_ends_first", [True, False])
@pytest.mark.parametrize("kind", KINDS)
async def test_every_step_of_one_process_may_fall_between_any_two_of_another_up_to_the_last(
    tmp_path: Path, kind: str, first_ends_first: bool
) -> None:
    for first, second in product(range(2 * CREATED[kind]), repeat=2):
        await two_processes(tmp_path / f"{first}-{second}", kind, first, second, first_ends_first=first_ends_first)
