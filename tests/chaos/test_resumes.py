"""Runs, chains and tasks that fail, are canceled, are killed or run out of budget, and that several processes resume at
once through all doors, some of which are killed as well, in a file and on PostgreSQL: in the end one run of the lineage
has completed, and all work is paid once."""

import asyncio
import json
import random
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.rows import dict_row

from muster.pool.chains.spec import stored
from tests.chaos import law, work
from tests.chaos.fleet import Order
from tests.chaos.fleets import open_copy
from tests.chaos.stage import PATIENCE, Driver, Stage, declare_prices, until
from tests.chaos.test_chains import spec_of
from tests.forked import ForkedProcess
from tests.postgres import new_database
from tests.rehearsal import ForkedRehearsal
from tests.variants import first_of

KINDS = ("live", "chain", "child", "batch", "task")
MISHAPS = ("fails", "canceled", "killed", "budget")
OF_CALLS = ("call.before_open", "call.opened", "call.answered", "call.settled", "run.claimed", "run.before_release")
OF_STORE = ("store.before_commit", "store.after_commit")  # also before there is a run, or its continuation
OF_BATCHES = ("call.before_open", "batch.planned", "batch.confirmed", "batch.polled", "batch.page")
REFUSING = {"rates": {"400": 0.5, "expired": 0.5}, "at_most_per_digest": 2}
ALWAYS = {"rates": {"400": 1.0}}
HASTE = ("--linger", "0.05", "--poll-interval", "0.05")
TIGHT_USD = {"live": "0.0004", "child": "0.0005", "batch": "0.0002", "chain": "0.0004", "task": "0.0001"}
ROUNDS, ACTORS, MAX_TRIES = 3, 3, 8
EXITS = (0, 1, 3, 4, -9)
TASK = "one small task"


@dataclass
class Told:
    """What became of the processes of one seed."""

    what: str
    ends: Counter[int] = field(default_factory=Counter)  # by exit code
    statuses: Counter[int] = field(default_factory=Counter)  # of servers' answers


class Resumes:
    """One piece of work in a folder of its own, and everybody who resumes it."""

    def __init__(self, stage: Stage, seed: int, *, served: bool, url: str | None) -> None:
        self.stage, self.dice, self.served, self.url = stage, random.Random(seed), served, url
        self.kind, self.mishap = KINDS[seed % len(KINDS)], MISHAPS[seed // len(KINDS) % len(MISHAPS)]
        self.told = Told(
            f"{seed}: {self.kind} {self.mishap}{' served' if served else ''}{' on PostgreSQL' if url else ''}"
        )
        declare_prices(stage.folder, "max_tokens = 50\nconcurrency = 4")
        settings = stage.folder / "muster.toml"
        own = f'[workloads]\nimport = ["tests.chaos.work"]\n[pool]\nslots = 1\nagent = "{work.ANTHROPIC}"\n'
        settings.write_text(own + settings.read_text())

    async def play(self) -> Told:
        """Begin, let it go wrong, resume it by many at once, finish it, and look whether that is all."""
        await self.begin()
        run = self.first()
        for _ in range(self.dice.randint(1, ROUNDS)):
            self.stage.sim.faults(REFUSING if self.dice.random() < 0.3 else {})
            await self.resume_at_once(run)
        self.stage.sim.faults({})
        await self.finish(run)
        await self.ask_once_more(run)
        return self.told

    async def begin(self) -> None:
        """Start the work in a process that does not finish it, as far as that can be arranged."""
        wrong = ALWAYS if self.kind == "task" else REFUSING  # a task makes one call
        self.stage.sim.faults(wrong if self.mishap == "fails" else {})
        crash = self.point(1 if self.kind == "task" else 3) if self.mishap == "killed" else None
        if self.kind == "task":
            budget = ("--budget", TIGHT_USD["task"]) if self.mishap == "budget" else ()
            over = self.ended(await self.stage.start_muster("task", "run", TASK, *budget, crash_at=crash))
        else:
            over = self.driven(await self.stage.start(self.order(), crash_at=crash))
        await until(self.exists)
        if self.mishap == "canceled":
            await asyncio.sleep(self.dice.uniform(0, 0.05))
            await self.muster("runs", "cancel", self.first())
        await over
        self.told.what += f" ({self.end(self.first())['state']})"

    def order(self) -> Order:
        budget = TIGHT_USD[self.kind] if self.mishap == "budget" else None
        if self.kind == "chain":
            given = stored(spec_of(self.stage.folder))
            return self.stage.order(0, workload="chain", given=given, budget_usd=budget, concurrency=2)
        workload = {"live": "fleet", "child": "parent", "batch": "judged"}[self.kind]
        batch = self.kind == "batch"
        return self.stage.order(
            24 if self.mishap == "canceled" else 6,
            workload=workload,
            agent=work.OPENAI if batch else work.ANTHROPIC,
            dispatch="batch" if batch else "live",
            max_tokens=50,
            budget_usd=budget,
            concurrency=2,
        )

    async def resume_at_once(self, run: str) -> None:
        """Let several processes resume the run at the same moment; some are killed."""
        async with self.servers(run) as asking:
            chosen = [self.dice.choice(self.doors(run)) for _ in range(ACTORS)]
            crashes = [self.point(2, OF_STORE) if self.dice.random() < 0.6 else None for _ in chosen]
            started = [
                await self.stage.start_muster(*words, crash_at=crash)
                for words, crash in zip(chosen, crashes, strict=True)
            ]
            await asyncio.gather(asking, *map(self.ended, started))
        if self.dice.random() < 0.7:
            await self.ended(await self.stage.start_muster(*self.workers(), crash_at=crashes[0]))

    def doors(self, run: str) -> Sequence[tuple[str, ...]]:
        """Return the commands with which the work is continued."""
        if self.kind == "task":
            return [("task", "retry", run, "--budget", "1"), ("task", "retry", run), self.workers()]
        haste = HASTE if self.kind == "batch" else ()
        resumes = [("runs", "resume", run, *more) for more in (haste, ("--budget", "1", *haste), ("--detach",))]
        return [*resumes, *([("chain", "resume", run, "--budget", "1")] if self.kind == "chain" else ())]

    def workers(self) -> tuple[str, ...]:
        """Return the command that does what was handed over."""
        if self.kind == "task":
            return ("pool", "start", "--until-idle")
        return ("worker", "--until-idle", "--quiet", *(HASTE if self.kind == "batch" else ()))

    @asynccontextmanager
    async def servers(self, run: str) -> AsyncIterator["asyncio.Future[Any]"]:
        """Give what asks two servers at once to go on, each twice as by a double click; none if nobody serves."""
        if not self.served:
            yield asyncio.ensure_future(asyncio.sleep(0))
            return
        processes = [await self.stage.start_muster("serve", "--port", "0", "--json") for _ in range(2)]
        try:
            urls = [json.loads(await asyncio.wait_for(_line(one), PATIENCE))["url"] for one in processes]
            yield asyncio.gather(*(asyncio.to_thread(self.post, url, run) for url in urls * 2))
        finally:
            for process in processes:
                process.kill()
                await process.wait()

    def post(self, url: str, run: str) -> None:
        path = f"/api/tasks/{run}/retry" if self.kind == "task" else f"/api/runs/{run}/resume"
        with closing(HTTPConnection(str(urlsplit(url).netloc), timeout=PATIENCE)) as connection:
            connection.request("POST", path, b"{}", {"content-type": "application/json"})
            answer = connection.getresponse()
            said = answer.read()
        assert answer.status < 500, said
        self.told.statuses[answer.status] += 1

    async def finish(self, run: str) -> None:
        """Resume until it has completed."""
        for _ in range(MAX_TRIES):
            if self.end(run)["state"] == "completed":
                return
            await self.muster(*self.doors(run)[0 if self.kind == "task" else 1])
            await self.muster(*self.workers())
        pytest.fail(f"{self.told}: run {run} does not come to its end: {dict(self.end(run))}")

    async def ask_once_more(self, run: str) -> None:
        """Resume what has completed: it is the answer, and nothing is made or paid."""
        before, paid = self.runs(), self.stage.sim.audit().calls
        code = await self.muster(*self.doors(run)[0])
        assert code == (4 if self.kind == "task" else 0), self.told
        assert (self.runs(), self.stage.sim.audit().calls) == (before, paid)

    async def driven(self, driver: Driver) -> int:
        code = (await driver.end()).code
        self.told.ends[code] += 1
        return code

    async def muster(self, *words: str) -> int:
        return await self.ended(await self.stage.start_muster(*words))

    async def ended(self, process: ForkedProcess) -> int:
        """Wait for the end of a process and note it."""
        _, err = await asyncio.wait_for(process.communicate(), PATIENCE)
        code = process.returncode or 0
        assert code in EXITS, (code, err.decode(), self.told)
        assert b"Traceback" not in err, (err.decode(), self.told)
        self.told.ends[code] += 1
        return code

    def point(self, most: int, more: Sequence[str] = ()) -> str:
        """Choose where a process is killed, the first time that it comes there or a later one."""
        points = OF_BATCHES if self.kind == "batch" else OF_CALLS
        return f"{self.dice.choice((*points, *more))}:{self.dice.randint(1, most)}"

    async def exists(self) -> bool:
        return bool(self.runs())

    def first(self) -> str:
        return str(min(self.runs().values(), key=lambda run: run["created_at"])["id"])

    def end(self, run: str) -> Any:
        runs = self.runs()
        return runs[law.end_of(runs, runs[run])]

    def runs(self) -> law.Runs:
        """Return the runs of the store that no other has started; none before there are tables."""
        query = "SELECT * FROM runs WHERE parent_id IS NULL"
        if self.url is not None:  # of a database with empty tables
            with psycopg.connect(self.url, row_factory=dict_row) as server:
                return {run["id"]: run for run in server.execute(query)}
        file = self.stage.folder / ".muster" / "muster.db"
        if not file.exists():
            return {}
        with closing(sqlite3.connect(file, timeout=PATIENCE)) as database:
            database.row_factory = sqlite3.Row
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'runs'").fetchone():
                return {}
            return {run["id"]: run for run in database.execute(query)}

    async def check(self) -> None:
        """The laws of work and of money hold, from the store and the provider's audit."""
        audit = law.read_audit(self.stage.sim.audit_url)
        with closing(await open_copy(self.stage.folder, self.stage.environment)) as database:
            attempts = database.execute("SELECT * FROM attempts").fetchall()
            calls = [call for call in database.execute(law.CALLS) if call["request"] is not None]
            names = {(call["run_id"], call["key"]): law.digest(law.body(call)) for call in calls}
            found = [
                *law.of_work(database, audit),
                *law.of_attempts(attempts),
                *law.of_money(database, attempts),
                *law.of_payments(names, attempts, audit["by_digest"]),
                *law.of_charges(names, attempts, audit),
            ]
        assert found == [], self.told


async def _line(process: ForkedProcess) -> bytes:
    assert process.stdout is not None
    return await process.stdout.readline()


@pytest.fixture
def quick() -> Iterator[ForkedRehearsal]:
    """A rehearsal server whose answers and batches take a moment."""
    with ForkedRehearsal(latency_ms=40, batch_ms=60) as running:
        yield running


async def play(folder: Path, sim: ForkedRehearsal, seed: int, *, served: bool, url: str | None) -> Counter[int]:
    sim.reset()
    variables = {} if url is None else {"MUSTER_DATABASE_URL": url}
    resumes = Resumes(Stage(folder / str(seed), sim, variables), seed, served=served, url=url)
    told = await resumes.play()
    await resumes.check()
    print(f"{told.what}: exits {dict(told.ends)}, answers {dict(told.statuses)}, {len(resumes.runs())} runs")
    return told.ends


@pytest.mark.parametrize("seed", first_of([5, 1, 12], 2))
async def test_what_many_resume_at_once_is_done_and_paid_once(
    tmp_path: Path, quick: ForkedRehearsal, seed: int
) -> None:
    await play(tmp_path, quick, seed, served=seed == 5, url=None)


@pytest.mark.parametrize("seed", first_of([9, 6]))  # a task and a chain
async def test_what_many_resume_at_once_on_postgres_is_done_and_paid_once(
    tmp_path: Path, quick: ForkedRehearsal, database_url: str, seed: int
) -> None:
    await play(tmp_path, quick, seed, served=True, url=database_url)


@pytest.mark.chaos
@pytest.mark.timeout(3600)
async def test_what_many_resume_at_once_is_done_and_paid_once_with_100_seeds(
    tmp_path: Path, quick: ForkedRehearsal, postgres: str, postgres_template: str
) -> None:
    ends: Counter[int] = Counter()
    for seed in range(100):
        served, on_postgres = seed % 3 == 0, seed // (len(KINDS) * len(MISHAPS)) % 2 == 1
        with ExitStack() as stack:
            url = stack.enter_context(new_database(postgres, postgres_template)) if on_postgres else None
            ends += await play(tmp_path, quick, seed, served=served, url=url)
    assert ends[-9] > 50, ends
    print(f"processes by exit code: {dict(ends)}")
