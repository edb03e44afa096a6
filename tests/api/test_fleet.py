"""Servers and workers as processes of their own, with a real Redis between them."""

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bullmq import Job, Queue
from redis import Redis as RedisClient
from redis.asyncio import Redis

from tests.forkserver import Forked
from tests.redis_server import RedisServer, running_redis

from .server import SETTINGS, Project, Server

PATIENCE = 40.0
STOP_PATIENCE = 20.0  # for a worker that waits for Redis in vain, at most four times
BATTLE = {"agentId": "sim/slow", "counterpart": "sim/echo", "userMessage": "hello", "messageLimit": 3}


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with running_redis(tmp_path / "redis") as server:
        yield server


@pytest.fixture
def fleet(project: Project, redis: RedisServer) -> Project:
    project.variables["REDIS_URL"] = redis.url
    return project


@contextmanager
def working(project: Project, *options: str) -> Iterator[Forked]:
    """Start a worker, which does not outlive the block."""
    with project.command("worker", *options) as process:
        try:
            yield process
        finally:
            process.kill()


def until(what: Callable[[], Any], words: str) -> Any:
    """Wait until something is so, and return it."""
    end = time.monotonic() + PATIENCE
    while not (found := what()):
        assert time.monotonic() < end, words
        time.sleep(0.05)
    return found


def workers(server: Server, number: int) -> None:
    """Wait until a server sees that runs are left to workers, or not."""
    wanted = [] if number else ["battles", "runs", "scale-tests"]
    until(lambda: server.get("/healthz").json["driven_here"] == wanted, f"the server does not see {number} workers")


def two_workers(server: Server, fleet: Project) -> None:
    """Wait until a server leaves runs to workers, and both of them take jobs."""
    workers(server, 2)
    with RedisClient.from_url(fleet.variables["REDIS_URL"], decode_responses=True) as client:
        until(lambda: len(waiting_for_jobs(client)) == 2, "the second worker does not come")


def waiting_for_jobs(client: RedisClient) -> list[str]:
    """Return the names under which Redis lists the workers of the queue of runs."""
    return [one["name"] for one in client.client_list() if one["name"].startswith("bull:runs:w:")]


def test_a_battle_is_played_by_a_worker_and_followed_at_another_server(fleet: Project) -> None:
    with fleet.serve() as one, fleet.serve() as other, working(fleet) as worker:
        workers(one, 1)
        run = one.post("/api/battles/start", BATTLE).json["id"]
        stream = other.get(f"/api/stream/{run}")
        assert stream.status == 200
        names = [line.split(": ")[1] for line in stream.body.decode().splitlines() if line.startswith("event: ")]
        assert names.count("message") == 6
        assert names[-1] == "end"
        assert other.get(f"/api/battles/{run}/status").json["state"] == "completed"
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(PATIENCE) == 0
        assert f"run {run} completed" in worker.stdout.read()


def test_without_a_worker_the_server_drives_runs_itself_and_says_so(fleet: Project) -> None:
    with fleet.serve() as server:
        workers(server, 0)
        run = server.ask()
        assert server.until(run, "completed")
        assert server.stop() == 0
        assert "runs are driven in this process, within its limits: no worker is alive" in server.process.stderr.read()


class Witness:
    """Reads the store beside everybody: who drives what, and when drivers changed."""

    def __init__(self, project: Project) -> None:
        self._database = sqlite3.connect(f"file:{project.folder}/.muster/muster.db?mode=ro", uri=True)

    def drivers(self) -> dict[str, int]:
        """Return the processes that drive runs now, by the ids of the runs."""
        return dict(self._database.execute("SELECT id, driver_pid FROM runs WHERE driver_pid IS NOT NULL"))

    def children(self, run: str) -> list[str]:
        return [found for (found,) in self._database.execute("SELECT id FROM runs WHERE parent_id = ?", (run,))]

    def work(self) -> list[tuple[float, float]]:
        """Return from when to when each run had calls."""
        return self._database.execute(
            "SELECT min(a.started_at), r.ended_at FROM runs r JOIN attempts a ON a.run_id = r.id GROUP BY r.id"
        ).fetchall()

    def times(self, run: str, kind: str) -> list[float]:
        """Return when events of a kind were written."""
        rows = self._database.execute("SELECT at FROM events WHERE run_id = ? AND kind = ? ORDER BY seq", (run, kind))
        return [at for (at,) in rows]

    def close(self) -> None:
        self._database.close()


@pytest.fixture
def witness(fleet: Project) -> Iterator[Callable[[], Witness]]:
    """Give a witness as soon as there is a store."""
    opened: list[Witness] = []

    def look() -> Witness:
        if not opened:
            opened.append(Witness(fleet))
        return opened[0]

    yield look
    for one in opened:
        one.close()


def ended(process: Forked) -> str:
    """Stop a worker and return what it wrote."""
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    return process.stdout.read()


def test_the_run_of_a_killed_worker_goes_on_elsewhere_within_15_seconds(
    fleet: Project, witness: Callable[[], Witness]
) -> None:
    with fleet.serve() as server, working(fleet) as one, working(fleet) as other:
        two_workers(server, fleet)
        run = server.post("/api/battles/start", {**BATTLE, "messageLimit": 8}).json["id"]
        driver = until(lambda: witness().drivers().get(run), "nobody drives the battle")
        victim, heir = (one, other) if driver == one.pid else (other, one)
        assert driver in (one.pid, other.pid)
        until(lambda: server.get(f"/api/battles/{run}/messages").json["messages"], "nobody said anything")
        killed_at = time.time()
        victim.kill()
        assert until(lambda: witness().times(run, "run.resumed"), "nobody goes on")[0] - killed_at < 15
        assert server.until(run, "completed")
        assert len(server.get(f"/api/battles/{run}/messages").json["messages"]) == 16
        assert f"run {run} completed" in ended(heir)


def test_a_worker_that_is_told_to_stop_hands_its_run_over(fleet: Project, witness: Callable[[], Witness]) -> None:
    with fleet.serve() as server, working(fleet) as one, working(fleet) as other:
        two_workers(server, fleet)
        run = server.post("/api/battles/start", {**BATTLE, "messageLimit": 8}).json["id"]
        driver = until(lambda: witness().drivers().get(run), "nobody drives the battle")
        goes, stays = (one, other) if driver == one.pid else (other, one)
        assert "interrupted" in ended(goes)
        assert server.until(run, "completed")
        assert f"run {run} completed" in ended(stays)


def test_workers_share_the_battles_of_a_scale_test(fleet: Project, witness: Callable[[], Witness]) -> None:
    with fleet.serve() as server, working(fleet) as one, working(fleet) as other:
        two_workers(server, fleet)
        body = {**BATTLE, "messageLimit": 2, "runCount": 9, "concurrency": 3, "revision": False}
        run = server.post("/api/scale/start", body).json["id"]
        seen: dict[str, int] = {}

        def over() -> bool:
            seen.update(witness().drivers())
            return bool(server.get(f"/api/scale/{run}/status").json["state"] == "completed")

        until(over, "the scale test does not end")
        battles = witness().children(run)
        assert len(battles) == 9
        assert {seen[battle] for battle in battles if battle in seen} == {one.pid, other.pid}
        assert server.get(f"/api/scale/{run}/status").json["counts"]["limit"] == 9
        for worker in (one, other):
            ended(worker)


SCALE = {**BATTLE, "messageLimit": 4, "runCount": 6, "concurrency": 3, "revision": False}


def spread(witness: Witness, run: str) -> bool:
    """Return whether battles of a scale test are played by another process than the one that drives it."""
    found = witness.drivers()
    return (
        any(found.get(battle, found[run]) != found[run] for battle in witness.children(run)) if run in found else False
    )


def test_a_scale_test_that_is_canceled_takes_its_battles_at_other_workers_along(
    fleet: Project, witness: Callable[[], Witness]
) -> None:
    with fleet.serve() as server, working(fleet), working(fleet):
        two_workers(server, fleet)
        run = server.post("/api/scale/start", SCALE).json["id"]
        until(lambda: spread(witness(), run), "no battle is played elsewhere")
        assert server.post(f"/api/scale/{run}/cancel").status == 200
        assert server.until(run, "canceled")
        until(lambda: not witness().drivers(), "battles go on without their scale test")
        assert {server.get(f"/api/runs/{battle}").json["state"] for battle in witness().children(run)} <= {
            "canceled",
            "completed",
        }


def test_battles_go_on_while_the_worker_of_their_scale_test_is_killed(
    fleet: Project, witness: Callable[[], Witness]
) -> None:
    with fleet.serve() as server, working(fleet) as one, working(fleet) as other:
        two_workers(server, fleet)
        run = server.post("/api/scale/start", SCALE).json["id"]
        until(lambda: spread(witness(), run), "no battle is played elsewhere")
        (one if witness().drivers()[run] == one.pid else other).kill()
        assert server.until(run, "completed")
        assert len(witness().children(run)) == 6
        assert server.get(f"/api/scale/{run}/status").json["counts"]["limit"] == 6


def test_a_redis_that_loses_its_data_loses_no_run(fleet: Project, redis: RedisServer) -> None:
    with fleet.serve() as server, working(fleet, "--concurrency", "2") as worker:
        workers(server, 1)
        runs = [server.post("/api/battles/start", {**BATTLE, "messageLimit": 1}).json["id"] for _ in range(8)]
        until(lambda: server.get(f"/api/runs/{runs[0]}").json["state"] == "completed", "the first does not end")
        redis.restart(data=False)
        late = server.post("/api/battles/start", {**BATTLE, "messageLimit": 1}).json["id"]
        for run in (*runs, late):
            assert server.until(run, "completed")
        ended(worker)


def test_while_redis_is_down_runs_are_driven_all_the_same(fleet: Project, redis: RedisServer) -> None:
    with fleet.serve() as server, working(fleet) as worker:
        workers(server, 1)
        redis.kill()
        assert server.until(server.ask(), "completed")
        redis.start()
        workers(server, 1)
        assert server.until(server.ask(), "completed")
        ended(worker)


@pytest.mark.parametrize("fails", [RedisServer.kill, RedisServer.freeze])
def test_a_worker_ends_when_it_is_told_to_though_redis_is_away(
    fleet: Project, redis: RedisServer, witness: Callable[[], Witness], fails: Callable[[RedisServer], None]
) -> None:
    with fleet.serve() as server, working(fleet) as worker:
        workers(server, 1)
        run = server.post("/api/battles/start", {**BATTLE, "messageLimit": 25}).json["id"]
        until(lambda: witness().drivers().get(run) == worker.pid, "the worker does not take the battle")
        fails(redis)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(STOP_PATIENCE) == 0
        assert f"run {run} was interrupted" in worker.stdout.read()


def test_the_fleet_has_as_many_runs_of_one_client_at_work_as_a_server_alone(
    fleet: Project, witness: Callable[[], Witness]
) -> None:
    fleet.declare("", SETTINGS.replace("jobs_per_client = 100", "jobs_per_client = 2"))
    with fleet.serve() as server, working(fleet) as one, working(fleet) as other:
        two_workers(server, fleet)
        runs = [server.post("/api/battles/start", {**BATTLE, "messageLimit": 1}).json["id"] for _ in range(6)]
        for run in runs:
            assert server.until(run, "completed")
        # Who is claimed beyond them is let go of again before anything is asked.
        spans = witness().work()
        assert len(spans) == 6
        assert max(sum(begun <= at < ended for begun, ended in spans) for at, _ in spans) <= 2
        for worker in (one, other):
            ended(worker)


async def enqueued(
    redis: RedisServer, queue: str, job: str | None, data: dict[str, Any], delay: int = 0, **more: Any
) -> Job:
    """Add a job as another program does, and wait until it is finished."""
    client = Redis.from_url(redis.url, decode_responses=True)
    try:
        added = Queue(queue, {"connection": client})
        chosen = {} if job is None else {"jobId": job}
        options = {**chosen, "delay": delay, "removeOnComplete": False, "removeOnFail": False, **more}
        job = (await added.add("battle", data, options)).id
        end = time.monotonic() + PATIENCE
        while await added.getJobState(job) not in ("completed", "failed"):
            assert time.monotonic() < end, f"job {job} is {await added.getJobState(job)}"
            await asyncio.sleep(0.05)
        return await Job.fromId(added, job)
    finally:
        await client.aclose()


async def test_another_program_enqueues_a_battle_and_gets_its_result(fleet: Project, redis: RedisServer) -> None:
    with working(fleet):
        job = await enqueued(redis, "battles", "battle-1", {**BATTLE, "messageLimit": 1})
        value = json.loads(job.returnvalue) if isinstance(job.returnvalue, str) else job.returnvalue
        assert (value["run"], value["state"], value["result"]["ending"]) == ("battle-1", "completed", "limit")
        scale = {**BATTLE, "messageLimit": 1, "runCount": 2, "concurrency": 2, "revision": False}
        job = await enqueued(redis, "scale-tests", "scale-1", scale)
        value = json.loads(job.returnvalue) if isinstance(job.returnvalue, str) else job.returnvalue
        assert [one["ending"] for one in value["result"]["battles"]] == ["limit", "limit"]


FLAKY = """
[agents.flaky]
kind = "program"
command = ["sh", "-c", "test -e {folder}/repaired && echo well"]
mode = "plain"
[agents.breaks-once]
kind = "program"
command = ["sh", "-c", "mkdir {folder}/broken 2>/dev/null && exit 1; echo well"]
mode = "plain"
[agents.dear]
kind = "cli"
command = ["echo", "well"]
budget_usd = 0.10
"""
PAIR = {"counterpart": "sim/echo", "userMessage": "hello", "messageLimit": 1}


async def value_of(redis: RedisServer, queue: str, job: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a job came to, and its progress."""
    client = Redis.from_url(redis.url, decode_responses=True)
    try:
        found = await Job.fromId(Queue(queue, {"connection": client}), job)
        value = json.loads(found.returnvalue) if isinstance(found.returnvalue, str) else found.returnvalue
        return value, found.progress
    finally:
        await client.aclose()


async def test_the_next_attempt_of_a_job_continues_its_failed_run(fleet: Project, redis: RedisServer) -> None:
    fleet.declare(FLAKY.format(folder=fleet.folder))
    with fleet.serve() as server, working(fleet):
        workers(server, 1)
        await enqueued(redis, "battles", "battle-1", {**PAIR, "agentId": "breaks-once"}, attempts=3)
        value, progress = await value_of(redis, "battles", "battle-1")
        assert (value["state"], value["result"]["ending"]) == ("completed", "limit")
        first = server.get("/api/runs/battle-1").json
        assert (first["state"], first["continued_by"]) == ("failed", value["run"])
        assert (progress["run"], progress["state"]) == (value["run"], "completed")
        assert progress["done"] == progress["total"] > 0


async def test_a_failed_job_that_is_retried_continues_its_run_once_for_each_retry(
    fleet: Project, redis: RedisServer
) -> None:
    fleet.declare(FLAKY.format(folder=fleet.folder))
    client = Redis.from_url(redis.url, decode_responses=True)
    try:
        with fleet.serve() as server, working(fleet):
            workers(server, 1)
            failed = await enqueued(redis, "battles", "battle-1", {**PAIR, "agentId": "flaky"}, attempts=2)
            assert failed.attemptsMade == 2
            assert len(server.get("/api/runs").json["runs"]) == 2
            (fleet.folder / "repaired").touch()
            job = await Job.fromId(Queue("battles", {"connection": client}), "battle-1")
            await job.retry()
            await enqueued(redis, "battles", "battle-1", {})  # which adds nothing, and waits
            value, _ = await value_of(redis, "battles", "battle-1")
            runs = server.get("/api/runs").json["runs"]
            assert [run["state"] for run in runs] == ["completed", "failed", "failed"]
            assert [run["continued_by"] for run in runs] == [None, runs[0]["id"], runs[1]["id"]]
            assert value["run"] == runs[0]["id"]
    finally:
        await client.aclose()


async def test_a_job_whose_budget_is_spent_is_not_tried_again(fleet: Project, redis: RedisServer) -> None:
    fleet.declare(FLAKY.format(folder=fleet.folder))
    with working(fleet):
        data = {**PAIR, "agentId": "dear", "budgetUsd": 0.05}
        job = await enqueued(redis, "battles", "battle-1", data, attempts=3)
        assert (job.attemptsMade, "run battle-1 failed" in job.failedReason) == (1, True)


async def test_a_job_that_redis_numbers_is_another_one_after_redis_lost_its_data(
    fleet: Project, redis: RedisServer
) -> None:
    answers: list[dict[str, Any]] = []
    with working(fleet):
        for words in ("one", "one", "two"):
            job = await enqueued(redis, "battles", None, {**BATTLE, "messageLimit": 1, "userMessage": words})
            assert job.id == "1"
            assert not job.failedReason
            answers.append(json.loads(job.returnvalue) if isinstance(job.returnvalue, str) else job.returnvalue)
            redis.clear()
    assert len({answer["run"] for answer in answers}) == 3
    assert [answer["result"]["closing"][0][1] for answer in answers] == ["one", "one", "two"]


async def test_a_worker_that_has_taken_a_job_does_not_announce_its_run(fleet: Project, redis: RedisServer) -> None:
    with working(fleet):
        job = await enqueued(redis, "battles", "battle-1", {**BATTLE, "agentId": "sim/echo", "messageLimit": 1})
        assert not job.failedReason
    client = Redis.from_url(redis.url, decode_responses=True)
    try:
        assert [key async for key in client.scan_iter("muster:rings:*")] == []
    finally:
        await client.aclose()


@pytest.mark.postgres
@pytest.mark.parametrize("minutes", [-10, 10])
async def test_jobs_that_are_put_off_come_in_time_to_a_worker_whose_clock_is_wrong(
    fleet: Project, redis: RedisServer, database_url: str, minutes: int
) -> None:
    fleet.variables |= {"MUSTER_DATABASE_URL": database_url, "TEST_CLOCK": str(60 * minutes)}
    with Forked("tests.elsewhere", ("worker",), folder=fleet.folder, environment=fleet.environment) as worker:
        try:
            job = await enqueued(redis, "battles", "battle-1", {**BATTLE, "messageLimit": 1}, delay=200)
            assert not job.failedReason
        finally:
            worker.kill()


@pytest.mark.postgres
async def test_a_worker_until_idle_takes_jobs_that_no_run_stands_for_yet_and_names_its_store(
    fleet: Project, redis: RedisServer, database_url: str
) -> None:
    fleet.variables["MUSTER_DATABASE_URL"] = f"{database_url}&password=hidden-0123"
    client = Redis.from_url(redis.url, decode_responses=True)
    try:
        await Queue("battles", {"connection": client}).add(
            "battle", {**BATTLE, "messageLimit": 1}, {"jobId": "battle-1"}
        )
    finally:
        await client.aclose()
    worker = fleet.command("worker", "--until-idle")
    said, noted = await asyncio.to_thread(worker.communicate, PATIENCE)
    assert (worker.returncode, "run battle-1 completed" in said) == (0, True)
    assert "working for postgresql://" in noted
    assert "hidden-0123" not in noted


@pytest.mark.parametrize(
    ("queue", "data", "why"),
    [
        ("battles", {"agent": "sim/echo"}, "agentId: is missing; agent: is unknown; did you mean agentId?"),
        ("battles", {"agentId": "nobody"}, "nobody"),
        ("runs", {"workload": "ask"}, "must name a run"),
        ("runs", {"run": "\ud800"}, "bad_argument: the data of the job contains half of a surrogate pair"),
    ],
)
async def test_a_job_that_asks_for_nothing_known_fails_with_the_reason(
    fleet: Project, redis: RedisServer, queue: str, data: dict[str, Any], why: str
) -> None:
    with working(fleet):
        assert why in (await enqueued(redis, queue, "job-1", data)).failedReason


def test_a_cancel_key_ends_a_battle(fleet: Project, redis: RedisServer, witness: Callable[[], Witness]) -> None:
    with fleet.serve() as server, working(fleet):
        workers(server, 1)
        run = server.post("/api/battles/start", {**BATTLE, "messageLimit": 25}).json["id"]
        until(lambda: witness().drivers().get(run), "nobody drives the battle")
        redis.set(f"cancel:conversation:{run}", "1")
        assert server.until(run, "canceled")


def test_a_cancel_key_ends_a_battle_that_a_server_drives_itself(
    fleet: Project, redis: RedisServer, witness: Callable[[], Witness]
) -> None:
    with fleet.serve() as server:
        workers(server, 0)
        run = server.post("/api/battles/start", {**BATTLE, "messageLimit": 25}).json["id"]
        until(lambda: witness().drivers().get(run), "nobody drives the battle")
        redis.set(f"cancel:conversation:{run}", "1")
        assert server.until(run, "canceled")


def test_a_cancel_key_ends_a_battle_behind_a_busy_worker_and_one_of_a_scale_test(
    fleet: Project, redis: RedisServer, witness: Callable[[], Witness]
) -> None:
    with fleet.serve() as server, working(fleet, "--concurrency", "1"):
        workers(server, 1)
        scale = server.post("/api/scale/start", {**SCALE, "messageLimit": 25, "runCount": 2}).json["id"]
        behind = server.post("/api/battles/start", {**BATTLE, "messageLimit": 25}).json["id"]
        battle = until(
            lambda: [one for one in witness().drivers() if one in witness().children(scale)], "no battle is played"
        )[0]
        for run in (behind, battle):
            redis.set(f"cancel:conversation:{run}", "1")
            assert server.until(run, "canceled")
        assert witness().drivers().get(scale), "the scale test ended with its battle"


NODE = Path(__file__).parent.parent.parent / "examples" / "node-enqueue"


@pytest.mark.node
def test_a_node_program_enqueues_a_battle_and_gets_its_result(fleet: Project, redis: RedisServer) -> None:
    with working(fleet):
        command = ["node", str(NODE / "enqueue.mjs"), "battle-1", json.dumps({**BATTLE, "messageLimit": 1})]
        environment = {**fleet.environment, "REDIS_URL": redis.url}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        value = json.loads(done.stdout)
        assert (value["run"], value["state"], value["result"]["ending"]) == ("battle-1", "completed", "limit")


def test_without_the_extra_a_worker_says_what_to_install(fleet: Project) -> None:
    program = "import sys; sys.modules['bullmq'] = None; from muster.__main__ import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "worker", "--until-idle"]
    done = subprocess.run(
        command, cwd=fleet.folder, env=fleet.environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 3
    assert "the extra `redis` is not installed" in done.stderr
    assert "pip install 'muster-ai[redis]'" in done.stderr
