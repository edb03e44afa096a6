"""Jobs on a real Redis: a run is announced once, comes again when its worker is gone, and is never lost silently."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from bullmq import Job, Queue
from redis.asyncio import Redis

from muster.domain.errors import BadConfiguration, QueueFailed
from muster.domain.ids import RunId
from muster.domain.run import Lease, Run, RunState
from muster.engine.queue.base import JobAnswer, QueuedJob
from muster.engine.queue.bull import BullQueue, open_bull_queue
from muster.engine.queue.fleet import FleetDelivery
from muster.testing.clock import FakeClock
from tests.engine.stores import open_store
from tests.redis_server import RedisServer, running_redis


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with running_redis(tmp_path_factory.mktemp("redis")) as started:
        yield started


@pytest.fixture
async def redis(server: RedisServer) -> AsyncIterator["Redis"]:
    """Give a client of an empty Redis."""
    client = Redis.from_url(server.url, decode_responses=True)
    await client.flushall()
    yield client
    await client.aclose()


@asynccontextmanager
async def queue_at(
    url: str, region: str = "local", on_error: Callable[[str], None] = lambda text: None
) -> AsyncIterator[BullQueue]:
    queue = open_bull_queue(url, region, on_error)
    try:
        yield queue
    finally:
        await queue.close()


def run_of(name: str, workload: str = "ask") -> Run:
    return Run(
        id=RunId(name),
        workload=workload,
        spec={},
        state=RunState.QUEUED,
        created_at=0.0,
        lease=Lease(epoch=0, driver=None, until=0.0),
        submitted=True,
    )


class Handler:
    """Answers jobs as its test says, and lets it wait for them."""

    def __init__(self, *answers: JobAnswer) -> None:
        self._answers = list(answers)
        self.jobs: asyncio.Queue[QueuedJob] = asyncio.Queue()

    async def __call__(self, job: QueuedJob) -> JobAnswer:
        self.jobs.put_nowait(job)
        return self._answers.pop(0) if self._answers else JobAnswer(value={"state": "completed"})

    async def next(self) -> QueuedJob:
        return await asyncio.wait_for(self.jobs.get(), 30)


async def job_ids(redis: "Redis", queue: str) -> list[str]:
    return sorted([key.rpartition(":")[2] async for key in redis.scan_iter(f"bull:{queue}:run-*")])


async def state_of(redis: "Redis", queue: str, job: str, wanted: str) -> None:
    """Wait until a job is in a state."""
    for _ in range(600):
        if await Queue(queue, {"connection": redis}).getJobState(job) == wanted:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{job} is not {wanted}")


@pytest.mark.parametrize(("workload", "name"), [("battle", "battles"), ("scale", "scale-tests"), ("suite", "runs")])
async def test_a_run_is_announced_in_the_queue_of_its_workload(
    server: RedisServer, redis: "Redis", workload: str, name: str
) -> None:
    async with queue_at(server.url) as queue:
        await queue.announce(run_of("r1", workload))
    assert await job_ids(redis, name) == ["run-r1-1"]
    options = json.loads(await redis.hget(f"bull:{name}:run-r1-1", "opts") or "")
    assert options["removeOnComplete"] == {"age": 86_400, "count": 1_000}
    assert options["removeOnFail"] == {"age": 604_800, "count": 1_000}


async def test_a_run_whose_job_still_waits_is_not_announced_again(server: RedisServer, redis: "Redis") -> None:
    async with queue_at(server.url) as queue:
        for _ in range(3):
            await queue.announce(run_of("r1"))
    assert await job_ids(redis, "runs") == ["run-r1-1"]


async def test_a_run_is_announced_again_though_its_finished_job_is_kept(server: RedisServer, redis: "Redis") -> None:
    handler = Handler()
    async with queue_at(server.url) as queue:
        await queue.listen(["runs"], 1, handler)
        for number in (1, 2, 3):
            await queue.announce(run_of("r1"))
            assert (await handler.next()).id == f"run-r1-{number}"
            await state_of(redis, "runs", f"run-r1-{number}", "completed")


async def test_a_job_that_is_put_off_comes_again(server: RedisServer, redis: "Redis") -> None:
    handler = Handler(JobAnswer(again_in=0.0), JobAnswer(again_in=0.2))
    async with queue_at(server.url) as queue:
        await queue.listen(["runs"], 1, handler)
        await queue.announce(run_of("r1"))
        assert [(await handler.next()).run for _ in range(3)] == ["r1", "r1", "r1"]
        await state_of(redis, "runs", "run-r1-1", "completed")


async def test_a_job_that_is_brought_too_early_waits(server: RedisServer, redis: "Redis") -> None:
    """BullMQ brings it by the clock of a machine, which may be ahead."""
    handler, loop = Handler(JobAnswer(again_in=0.5)), asyncio.get_running_loop()
    async with queue_at(server.url) as queue:
        await queue.listen(["runs"], 1, handler)
        await queue.announce(run_of("r1"))
        await handler.next()
        begun = loop.time()
        await state_of(redis, "runs", "run-r1-1", "delayed")
        await Queue("runs", {"connection": redis}).backend.promote("run-r1-1")
        await handler.next()
        assert loop.time() - begun > 0.4


async def test_jobs_come_again_by_the_clock_of_redis(server: RedisServer, redis: "Redis") -> None:
    jobs = Queue("runs", {"connection": redis})
    for name, delay in (("soon", 1), ("late", 60_000)):
        await jobs.add("run", {"run": name}, {"jobId": name, "delay": delay})
    async with queue_at(server.url) as queue:
        while await jobs.getJobState("soon") == "delayed":
            await queue.promote(["battles", "runs"])
        assert await jobs.getJobState("soon") == "waiting"
        assert await jobs.getJobState("late") == "delayed"


async def test_a_job_that_fails_is_kept_with_its_reason(server: RedisServer, redis: "Redis") -> None:
    async with queue_at(server.url) as queue:
        await queue.listen(["runs"], 1, Handler(JobAnswer(failure="run r1 failed: no")))
        await queue.announce(run_of("r1"))
        await state_of(redis, "runs", "run-r1-1", "failed")
    assert await redis.hget("bull:runs:run-r1-1", "failedReason") == "run r1 failed: no"


async def test_a_job_with_attempts_left_comes_again_and_says_how_often_it_has_failed(
    server: RedisServer, redis: "Redis"
) -> None:
    handler, jobs = Handler(JobAnswer(failure="one", retryable=True)), Queue("runs", {"connection": redis})
    async with queue_at(server.url) as queue:
        await queue.listen(["runs"], 1, handler)
        await jobs.add("run", {"run": "r1"}, {"jobId": "mine", "attempts": 3, "removeOnComplete": False})
        assert [(await handler.next()).failures for _ in range(2)] == [0, 1]
        await state_of(redis, "runs", "mine", "completed")


async def test_a_job_that_no_attempt_can_help_is_not_tried_again(server: RedisServer, redis: "Redis") -> None:
    handler, jobs = Handler(JobAnswer(failure="one")), Queue("runs", {"connection": redis})
    async with queue_at(server.url) as queue:
        await queue.listen(["runs"], 1, handler)
        await jobs.add("run", {"run": "r1"}, {"jobId": "mine", "attempts": 3, "removeOnFail": False})
        await state_of(redis, "runs", "mine", "failed")
    assert (await Job.fromId(jobs, "mine")).attemptsMade == 1
    assert handler.jobs.qsize() == 1


async def test_a_failed_job_that_is_retried_comes_again_as_another_attempt(server: RedisServer, redis: "Redis") -> None:
    failure = JobAnswer(failure="no", retryable=True)
    handler, jobs = Handler(failure, failure, failure), Queue("runs", {"connection": redis})
    async with queue_at(server.url) as queue:
        await queue.listen(["runs"], 1, handler)
        await jobs.add("run", {"run": "r1"}, {"jobId": "mine", "removeOnFail": False})
        for number, options in enumerate(({}, {"resetAttemptsMade": True}, {})):
            assert (await handler.next()).failures == number
            await state_of(redis, "runs", "mine", "failed")
            await (await Job.fromId(jobs, "mine")).retry("failed", options)
        assert (await handler.next()).failures == 3


async def test_every_worker_is_listed_once_for_each_of_its_queues_however_busy_it_is(
    server: RedisServer, redis: "Redis"
) -> None:
    begun, over, jobs = asyncio.Semaphore(0), asyncio.Event(), Queue("runs", {"connection": redis})

    async def wait(job: QueuedJob) -> JobAnswer:
        begun.release()
        await over.wait()
        return JobAnswer()

    async def listed() -> tuple[int, int]:
        """Return how many workers the Python package and the Node package see."""
        names = [client["name"] for client in await redis.client_list()]
        return await jobs.get_workers_count(), names.count("bull:cnVucw==:w:worker")

    async with queue_at(server.url) as one:
        async with queue_at(server.url) as other:
            for queue in (one, other):
                await queue.listen(["runs", "battles"], 4, wait)
                await queue.beat(["runs", "battles"])
            for number in range(8):
                await jobs.add("run", {"run": "r1"}, {"jobId": f"mine-{number}"})
                await begun.acquire()
            assert await listed() == (2, 2)
            over.set()
        assert await listed() == (1, 1)


async def test_the_progress_of_a_job_is_written_beside_it(server: RedisServer, redis: "Redis") -> None:
    jobs = Queue("runs", {"connection": redis})
    await jobs.add("run", {"run": "r1"}, {"jobId": "mine"})
    async with queue_at(server.url) as queue:
        await queue.report(QueuedJob(id="mine", queue="runs", data={}), {"run": "r1", "done": 1})
        await queue.report(QueuedJob(id="gone", queue="runs", data={}), {"run": "r2"})
    assert (await Job.fromId(jobs, "mine")).progress == {"run": "r1", "done": 1}


@pytest.mark.parametrize(
    ("field", "value"),
    [("data", "{run: r1"), ("data", "[" * 100_000), ("opts", "{attempts: 3"), ("opts", "[]"), ("timestamp", "today")],
)
async def test_a_job_that_cannot_be_read_fails_and_is_named(
    server: RedisServer, redis: "Redis", field: str, value: str
) -> None:
    told, handler = list[str](), Handler()
    async with queue_at(server.url, on_error=told.append) as queue:
        await queue.announce(run_of("r1"))
        await redis.hset("bull:runs:run-r1-1", field, value)
        await queue.listen(["runs"], 1, handler)
        await state_of(redis, "runs", "run-r1-1", "failed")
        await queue.announce(run_of("r1"))
        assert (await handler.next()).id == "run-r1-2"
    assert "the job cannot be read: " in str(await redis.hget("bull:runs:run-r1-1", "failedReason"))
    assert [words.partition(": it cannot be read: ")[0] for words in told] == [
        "Redis, queue runs: job run-r1-1 is failed"
    ]


async def test_a_heartbeat_says_which_queues_are_served_in_a_region_and_ends(
    server: RedisServer, redis: "Redis"
) -> None:
    whole = "worker:background:heartbeat:eu"
    async with queue_at(server.url, "eu") as eu:
        await eu.beat(["battles", "runs"])
        assert 0 < await redis.ttl(whole) <= 60
        assert sorted(await redis.keys("worker:*")) == [whole, f"{whole}:battles", f"{whole}:runs"]
        await eu.withdraw(["battles"], last=False)
        assert sorted(await redis.keys("worker:*")) == [whole, f"{whole}:runs"]
        await eu.withdraw(["runs"], last=True)
        assert await redis.keys("worker:*") == []


async def test_a_heartbeat_that_redis_has_lost_is_written_again_a_second_later(
    server: RedisServer, redis: "Redis", tmp_path: Path
) -> None:
    async def served() -> frozenset[str]:
        return frozenset()

    async def refuse(job: QueuedJob) -> Run:
        raise AssertionError

    clock, store, whole = FakeClock(), open_store(tmp_path), "worker:background:heartbeat:local"
    async with queue_at(server.url) as queue:
        delivery = FleetDelivery(queue, store, clock, queues=["battles", "runs"], most=1, accept=refuse, served=served)
        await delivery.look(())
        for lost in ([whole], [f"{whole}:battles"], [whole, f"{whole}:battles", f"{whole}:runs"]):
            await redis.delete(*lost)
            clock.advance(1.0)
            await delivery.look(())
            assert sorted(await redis.keys("worker:*")) == [whole, f"{whole}:battles", f"{whole}:runs"]
    await store.maintenance.close()


async def test_a_cancel_key_names_a_run(server: RedisServer, redis: "Redis") -> None:
    await redis.set("cancel:conversation:r2", "1")
    async with queue_at(server.url) as queue:
        assert list(await queue.canceled([RunId("r1"), RunId("r2")])) == ["r2"]
        assert list(await queue.canceled([])) == []


async def test_a_server_that_is_not_there_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    nobody = RedisServer(tmp_path)
    async with queue_at(nobody.url) as queue:
        with pytest.raises(QueueFailed, match="cannot be used") as raised:
            await queue.announce(run_of("r1"))
    assert "REDIS_URL" in raised.value.suggestions[0]


@pytest.mark.parametrize(
    "address",
    [
        "https://me:secret@example.org",
        "redis://:secret@example.org/0?foo=secret",
        "redis://:secret@example.org/secret",
        "redis://:se/secret@example.org:6379/0",
        "redis://:secret@example.org/0?socket_timeout=secret",
        "unix://:secret@/run/redis.sock?foo=secret",
    ],
)
def test_an_address_of_something_else_is_refused_without_being_repeated(address: str) -> None:
    with pytest.raises(BadConfiguration, match="REDIS_URL is not the address") as raised:
        open_bull_queue(address, "local")
    assert "secret" not in str(raised.value)


async def test_a_server_may_be_reached_through_its_socket(
    server: RedisServer, redis: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(server.socket.parent)  # the path of a socket must be short
    handler = Handler()
    async with queue_at(f"unix:{server.socket.name}?db=0") as queue:
        await queue.listen(["runs"], 1, handler)
        await queue.announce(run_of("r1"))
        assert (await handler.next()).id == "run-r1-1"


@pytest.mark.parametrize("value", ["abc", "99999999999999999999", None])
async def test_a_counter_that_is_no_number_begins_anew(server: RedisServer, redis: "Redis", value: str | None) -> None:
    if value is None:
        await redis.hset("muster:rings:r1", "no", "number")
    else:
        await redis.set("muster:rings:r1", value)
    async with queue_at(server.url) as queue:
        await queue.announce(run_of("r1"))
    assert await job_ids(redis, "runs") == ["run-r1-1"]


async def test_a_queue_can_be_closed_although_a_job_does_not_end_when_it_is_canceled(
    server: RedisServer, redis: "Redis"
) -> None:
    begun = asyncio.Event()

    async def go_on(job: QueuedJob) -> JobAnswer:
        begun.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()  # like a request to a server that does not answer
        raise AssertionError

    async with queue_at(server.url) as queue:
        await queue.listen(["runs"], 1, go_on)
        await queue.announce(run_of("r1"))
        await begun.wait()
        await asyncio.wait_for(queue.stop(), 30)
