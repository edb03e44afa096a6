"""Observers: told by the engine, and unable to harm what they watch."""

import logging
from pathlib import Path

import pytest

from muster.app import open_muster
from muster.domain.observation import AttemptBegan, AttemptEnded, CallBegan, CallEnded, Observation, RunBegan, RunEnded


async def test_an_observer_of_the_users_own_is_told_of_every_beginning_and_end(tmp_path: Path) -> None:
    told: list[Observation] = []
    async with open_muster(tmp_path, observers=[told.append]) as muster:
        await muster.ask("sim/echo", "hello")
    assert [type(one) for one in told] == [RunBegan, CallBegan, AttemptBegan, AttemptEnded, CallEnded, RunEnded]


async def test_one_that_raises_is_dropped_and_named_and_harms_neither_the_run_nor_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Observation] = []
    raised: list[Observation] = []

    class Broken:
        def __call__(self, observation: Observation) -> None:
            raised.append(observation)
            raise ValueError("a prompt may stand here")

    with caplog.at_level(logging.ERROR, "muster"):
        async with open_muster(tmp_path, observers=[Broken(), told.append]) as muster:
            assert (await muster.ask("sim/echo", "hello")).text == "hello"
    assert len(raised) == 1
    assert len(told) == 6
    assert "Broken raised ValueError at RunBegan" in caplog.text
    assert "prompt" not in caplog.text
