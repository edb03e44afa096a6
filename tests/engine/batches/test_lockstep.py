"""Conversations in batches keep step with each other, so that every turn is one batch, whatever else goes on."""

import asyncio
from dataclasses import replace
from pathlib import Path

from muster.app import Muster
from muster.app.runs.handle import RunHandle
from muster.domain.agent import Timeouts
from muster.domain.batch import Tally
from muster.domain.run import Run, RunState
from muster.engine.batches.base import Patience
from tests.engine.batches.house import (
    NEVER_QUIET,
    PROVIDERS,
    House,
    batch,
    batches_of,
    open_house,
    questions,
    survey,
)

CONVERSATIONS = 200
TURNS = 3
PATIENCE = Patience(poll_first=0.02, poll_longest=0.1)  # quick to look, and as slow to gather as it is everywhere
FOR_EVER_MS = 3_600_000
SLOW = "slow"


async def talk(muster: Muster, agent: str, count: int = CONVERSATIONS) -> Run:
    """Hold all conversations with one agent, under the concurrency that a run has if nobody says otherwise."""
    spec = {"agent": agent, "count": count, "turns": TURNS}
    return await (await muster.start("conversations", spec, dispatch=batch(), concurrency=20)).wait()


def last_words(agent: str) -> list[str]:
    said = ", ".join(f"turn {turn}" for turn in range(TURNS))
    return [f"{agent} {number}, {said}" for number in range(CONVERSATIONS)]


async def check_in_step(muster: Muster, run: Run, agent: str) -> None:
    assert run.state is RunState.COMPLETED, run.error
    assert run.result == {"last": last_words(agent)}
    tallies = [made.tally for made in await batches_of(muster, run)]
    assert tallies == [Tally(succeeded=CONVERSATIONS)] * TURNS


async def test_every_turn_of_200_conversations_is_one_batch(house: House, agent: str) -> None:
    house.declare("concurrency = 50")
    async with house.open(patience=PATIENCE) as muster:
        run = await talk(muster, agent)
        await check_in_step(muster, run, agent)
        await house.check_to_the_cent(muster, run)
    assert len(house.batches) == TURNS


async def test_conversations_whose_results_come_page_by_page_keep_step_too(house: House, agent: str) -> None:
    async with house.open(patience=replace(PATIENCE, settle=0.1)) as muster:
        run = await talk(muster, agent, 2500)
        assert run.state is RunState.COMPLETED, run.error
    assert [theirs["requests"] for theirs in house.batches] == [2500] * TURNS


async def begin_live_runs(muster: Muster) -> tuple[list[RunHandle], list[RunHandle]]:
    """Start runs beside the batches: some that answer at once, some that never do, some that do nothing."""
    quick = [
        await muster.start("survey", survey(agent, questions(50, f"live {number}")), concurrency=5)
        for number in range(2)
        for agent in PROVIDERS
    ]
    slow = [
        *[await muster.start("survey", survey(SLOW, questions(30, f"slow {number}"))) for number in range(4)],
        *[await muster.start("nap", {}) for _ in range(2)],
    ]
    return quick, slow


def declare(house: House, slow: House) -> None:
    """Declare both agents with a limiter, and one that nobody ever hears from."""
    house.declare("concurrency = 50")
    path = house.folder / "muster.toml"
    text = f'\n[agents.{SLOW}]\nkind = "anthropic"\nmodel = "claude-haiku-5-5"\nbase_url = "{slow.server.anthropic}"\n'
    key = 'key_env = "ANTHROPIC_API_KEY"\n'
    path.write_text(path.read_text(encoding="utf-8") + text + key, encoding="utf-8")


async def test_ten_live_runs_beside_them_neither_delay_batches_nor_are_delayed(tmp_path: Path) -> None:
    async with (
        open_house(tmp_path / "house", batch_ms=300) as house,
        open_house(tmp_path / "slow", latency_ms=FOR_EVER_MS) as silent,
    ):
        declare(house, silent)
        async with house.open(patience=replace(PATIENCE, linger=FOR_EVER_MS), timeouts=Timeouts()) as muster:
            quick, slow = await begin_live_runs(muster)
            talking = [asyncio.create_task(talk(muster, agent)) for agent in PROVIDERS]
            for handle in quick:
                assert (await handle.wait()).state is RunState.COMPLETED
            assert not any(task.done() for task in talking)  # live answers came while batches were waited for
            for agent, task in zip(PROVIDERS, talking, strict=True):
                await check_in_step(muster, await task, agent)
            for handle in slow:
                assert (await handle.run()).state is RunState.RUNNING  # they were under way all the time
                await muster.runs.cancel(handle.id)
            await asyncio.gather(*(handle.wait() for handle in slow))
        made = [theirs["provider"] for theirs in house.batches]
        assert sorted(made) == ["anthropic"] * TURNS + ["openai"] * TURNS


async def test_two_runs_in_one_process_share_their_batches(house: House) -> None:
    # The runs start one after the other, and on a slow machine the last may start long after the first.
    patience = replace(NEVER_QUIET, most_requests=2 * CONVERSATIONS)
    async with house.open(patience=patience) as muster:
        runs = await asyncio.gather(*(talk(muster, agent) for agent in (*PROVIDERS, *PROVIDERS)))
        assert all(run.state is RunState.COMPLETED for run in runs)
    sizes = sorted((theirs["provider"], theirs["requests"]) for theirs in house.batches)
    assert sizes == [("anthropic", 400)] * TURNS + [("openai", 400)] * TURNS
