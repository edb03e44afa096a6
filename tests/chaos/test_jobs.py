"""Jobs of another program that fail and are tried again, while workers and Redis are killed and people resume the same
runs: each piece of work has one end, and is paid once."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bullmq import Job, Queue
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as RedisGone

from tests.chaos import law, work
from tests.chaos.fleets import PATIENCE, SERVER, Command, Fleet, in_flight, open_fleet, store_copy, wait_until, worker
from tests.postgres import postgres_server
from tests.rehearsal import ForkedRehearsal

REFUSING = {"rates": {"400": 0.6, "cut_after": 0.1}, "at_most_per_digest": 3}
BATTLE = {"agentId": work.ANTHROPIC, "counterpart": "visitor", "messageLimit": 2, "maxTokens": 50}
OPTIONS = {"attempts": 3, "removeOnComplete": False, "removeOnFail": False}
ENDED = ("completed", "failed")
RETRIES = 6
VISITOR = '\n[agents.visitor]\nkind = "program"\ncommand = ["echo", "go on"]\nmode = "plain"\n'


@dataclass
class Jobs:
    """Battles in the queue of a fleet."""

    fleet: Fleet
    queue: Queue
    ids: Sequence[str]

    async def add(self) -> None:
        """Put them into the queue, as any program does; no two ask the same."""
        for id_ in self.ids:
            await self.queue.add("battle", {**BATTLE, "userMessage": f"this is {id_}"}, {**OPTIONS, "jobId": id_})

    async def ended(self) -> list[str]:
        """Wait until no job is under way, and return the ids of those that have failed."""
        states: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            while not (states and set(states.values()) <= set(ENDED)):
                await asyncio.sleep(0.1)
                states = {id_: await self.queue.getJobState(id_) for id_ in self.ids}
        return [id_ for id_, state in states.items() if state == "failed"]

    async def retry(self) -> None:
        """Retry what has failed until nothing has."""
        for _ in range(RETRIES):
            failed = await self.ended()
            for id_ in failed:
                await (await Job.fromId(self.queue, id_)).retry()
            if not failed:
                return
        pytest.fail(f"jobs keep failing: {await self.ended()}")


async def meddle(fleet: Fleet, ids: Sequence[str], victims: Sequence[str], chance: random.Random) -> None:
    """Kill somebody again and again, and resume what jobs stand for as a person does who does not know of them."""
    for victim in victims:
        await asyncio.sleep(chance.uniform(0.3, 0.8))
        await asyncio.to_thread(fleet.kill, victim, chance)
        for words in ("--detach", "--quiet"):
            fleet.start(Command(("runs", "resume", chance.choice(ids), words)))


async def check(fleet: Fleet, sim: ForkedRehearsal, ids: Sequence[str]) -> int:
    """Every battle has completed once, the laws of work and of money hold; return how many runs it took."""
    audit = law.read_audit(sim.audit_url)
    with closing(await store_copy(fleet)) as database:
        attempts: list[Any] = database.execute("SELECT * FROM attempts").fetchall()
        calls = [call for call in database.execute(law.CALLS) if call["agent"] == work.ANTHROPIC]
        names = {(call["run_id"], call["key"]): law.digest(law.body(call)) for call in calls}
        runs = {run["id"]: run for run in database.execute("SELECT * FROM runs")}
        found = [*law.of_work(database, audit), *law.of_attempts(attempts), *law.of_money(database, attempts)]
        paid = [attempt for attempt in attempts if (attempt["run_id"], attempt["key"]) in names]
        found += law.of_payments(names, paid, audit["by_digest"])
    assert found == []
    ends = [runs[law.end_of(runs, runs[id_])] for id_ in ids]
    assert {end["state"] for end in ends} == {"completed"}
    assert len({end["id"] for end in ends}) == len(ids)
    return len(runs)


async def play(folder: Path, seed: int, number: int, victims: Sequence[str]) -> int:
    chance, ids = random.Random(seed), [f"battle-{seed}-{place}" for place in range(number)]
    with ExitStack() as stack:
        sim = stack.enter_context(ForkedRehearsal(latency_ms=120))
        database = stack.enter_context(postgres_server()).url() if seed % 2 else None
        folder.mkdir(exist_ok=True)
        fleet = open_fleet(folder, sim, stack, database)
        with (folder / "muster.toml").open("a") as settings:
            settings.write(VISITOR)
        again = Retry(ConstantBackoff(0.2), 50)
        client = Redis.from_url(fleet.redis.url, decode_responses=True, retry=again, retry_on_error=[RedisGone])
        jobs = Jobs(fleet, Queue("battles", {"connection": client}), ids)
        try:
            sim.faults(REFUSING)
            await jobs.add()
            for command in (SERVER, worker(), worker()):
                fleet.start(command)
            await asyncio.to_thread(wait_until, lambda: in_flight(sim) > 0)
            await meddle(fleet, ids, victims, chance)
            await jobs.ended()
            sim.faults({})
            await jobs.retry()
            return await check(fleet, sim, ids)
        finally:
            await client.aclose()


@pytest.mark.postgres
@pytest.mark.chaos
async def test_jobs_that_fail_are_done_once_whoever_continues_them(tmp_path: Path) -> None:
    assert await play(tmp_path / "fleet", 1, 4, ("worker", "redis")) > 4  # some were continued


@pytest.mark.chaos
@pytest.mark.postgres
@pytest.mark.timeout(3600)
async def test_jobs_that_fail_are_done_once_whoever_continues_them_with_20_seeds(tmp_path: Path) -> None:
    for seed in range(20):
        chance = random.Random(seed)
        victims = [chance.choice(("worker", "worker", "server", "redis")) for _ in range(6)]
        runs = await play(tmp_path / str(seed), seed, 8, victims)
        print(f"seed {seed}: 8 jobs, {runs} runs, killed: {', '.join(victims)}")
