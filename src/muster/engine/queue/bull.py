"""BullMQ on Redis: jobs that announce runs, and the keys beside them. The only module that knows either package.

Keys and names are those that Node programs with the `bullmq` package see: queues under the prefix `bull`, and the keys
`worker:background:heartbeat:{region}` and `cancel:conversation:{id}`.
"""

import asyncio
import base64
import contextlib
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from bullmq import Job, Queue, UnrecoverableError, Worker
from bullmq.custom_errors import DelayedError
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError, ResponseError

from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration, QueueFailed
from muster.domain.ids import RunId
from muster.domain.run import Run
from muster.engine.queue.base import HandleJob, QueuedJob, QueueServer, queue_of

RETENTION: Mapping[str, Json] = {
    "removeOnComplete": {"age": 86_400, "count": 1_000},
    "removeOnFail": {"age": 604_800, "count": 1_000},
}
NUMBER_SECONDS = 700_000  # for which the number of a run's last job is kept: longer than any job
LOCK_MS = 10_000  # after which a job whose worker died comes again
STALLED_MS = 5_000  # between two looks for such jobs
MAX_STALLED = 1_000  # a run is durable: that its workers die again and again is no reason to give it up
RECONNECT_MS = 1_000
CONNECT_SECONDS = 3.0
ANSWER_SECONDS = 3.0
STOP_SECONDS = 3.0  # for the answers of the last jobs: a server that is away never takes them
AGAIN_SECONDS = 0.2  # after which what does not end is canceled again
BLOCK_SECONDS = 30.0  # longer than the longest wait for a job
HEARTBEAT_SECONDS = 60  # for which a heartbeat counts
DELAY_SCORE = 0x1000  # by which BullMQ multiplies the times of jobs that were put off
MAX_PROMOTED = 100  # of a queue at a time
WAITING = frozenset({"waiting", "delayed", "prioritized", "paused"})  # states of a job that nobody has taken

_DATABASE = re.compile(r"/?[0-9]*")
_NUMBER = re.compile(r"[0-9]{1,15}")
_UNLISTED = re.compile(r"[^A-Za-z0-9._-]")  # characters that the name of a connection should not have

_UNREADABLE = (ValueError, TypeError, AttributeError, RecursionError)  # what BullMQ raises for a job of another form
_FAILURES = (RedisError, OSError, asyncio.TimeoutError)


def open_bull_queue(
    url: str, region: str, on_error: Callable[[str], None] = lambda text: None, *, process: str = "worker"
) -> "BullQueue":
    """Return the queue at an address, without connecting to it; raises BadConfiguration for an address of no use.

    Workers of the queue are listed under the name of their `process`.
    """
    try:
        address = urlsplit(url)
        if address.scheme != "unix" and not _DATABASE.fullmatch(address.path):
            raise ValueError("the database must be a number")
        pool: Any = _client(url, ANSWER_SECONDS).connection_pool
        pool.make_connection()  # which looks at all options
        return BullQueue(partial(_client, url), region, on_error, _UNLISTED.sub("-", process))
    except (TypeError, ValueError):
        raise BadConfiguration(
            "REDIS_URL is not the address of a Redis server, or has an option that is not known",
            suggestions=(
                "write it like redis://HOST:6379/0, or rediss://NAME:PASSWORD@HOST:6379/0 with TLS",
                "or unix:///PATH/OF/SOCKET?db=0; the database is a number",
                "write / @ # ? in a password as %2F %40 %23 %3F",
            ),
        ) from None


def _client(url: str, seconds: float, name: str | None = None) -> "Redis":
    """Return a client; with a name it has one connection, which the server lists under the name."""
    options: dict[str, Any] = {} if urlsplit(url).scheme == "unix" else {"socket_keepalive": True}
    if name is not None:
        options |= {"client_name": name, "single_connection_client": True}
    return Redis.from_url(
        url,
        decode_responses=True,
        # Another attempt after a broken connection, none at a server that does not answer.
        retry=Retry(ConstantBackoff(0.1), 1, supported_errors=(RedisConnectionError,)),
        socket_connect_timeout=CONNECT_SECONDS,
        socket_timeout=seconds,
        **options,
    )


class BullQueue:
    """The queues of a fleet, and the keys that it shares. Implements `FleetQueue`."""

    def __init__(
        self, client: Callable[..., "Redis"], region: str, on_error: Callable[[str], None], process: str
    ) -> None:
        self._make_client, self._region, self._on_error, self._process = client, region, on_error, process
        self._redis: Redis = client(ANSWER_SECONDS)
        self._presence: list[Redis] = []  # connections by which other programs count workers
        self._queues: dict[str, Queue] = {}
        self._workers: list[tuple[Worker, asyncio.Task[None]]] = []

    async def announce(self, run: Run) -> None:
        """Add a job for a run, unless one waits already.

        An id that is still kept, of a finished job too, is silently ignored when it is added again: the number grows.
        """
        queue, key = self._queue(queue_of(run.workload)), f"muster:rings:{run.id}"
        async with _reached():
            last = await self._number(key)
            if last is not None and await queue.getJobState(_job_id(run.id, last)) in WAITING:
                return
            number = int(await self._redis.incr(key))
            await self._redis.expire(key, NUMBER_SECONDS)
            await queue.add("run", {"run": run.id}, {"jobId": _job_id(run.id, number), **RETENTION})

    async def listen(self, queues: Iterable[str], most: int, handle: HandleJob) -> None:
        """Begin to take jobs, at most so many of a queue at a time."""
        options = {
            "autorun": False,
            "concurrency": most,
            "lockDuration": LOCK_MS,
            "stalledInterval": STALLED_MS,
            "maxStalledCount": MAX_STALLED,
            "runRetryDelay": RECONNECT_MS,
            **RETENTION,
        }
        for name in queues:
            worker = JobWorker(
                name, self._processor(name, handle), {**options, "connection": self._make_client(BLOCK_SECONDS)}
            )
            worker.on("error", partial(self._tell, name))
            running = asyncio.get_running_loop().create_task(self._run(worker))
            self._workers.append((worker, running))
            names = _listed_names(name, self._process)
            self._presence += [self._make_client(ANSWER_SECONDS, listed) for listed in names]

    async def report(self, job: QueuedJob, progress: Json) -> None:
        """Write how far a job has got; BullMQ raises TypeError for one that is gone."""
        async with _reached():
            with contextlib.suppress(TypeError):
                await self._queue(job.queue).backend.updateProgress(job.id, progress)

    async def promote(self, queues: Iterable[str]) -> None:
        """Let jobs be taken that were put off until now: workers whose clocks are behind would leave them there."""
        async with _reached():
            until = (await self._now()) * DELAY_SCORE
            for name in queues:
                queue = self._queue(name)
                for job in await self._redis.zrange(
                    queue.toKey("delayed"), 0, until, byscore=True, offset=0, num=MAX_PROMOTED
                ):
                    with contextlib.suppress(TypeError):  # another worker has promoted it
                        await queue.backend.promote(job)

    async def waiting(self, queues: Iterable[str]) -> int:
        """Return how many jobs of some queues nobody has taken yet."""
        async with _reached():
            counts = [await self._queue(name).getJobCounts("waiting", "prioritized") for name in queues]
        return sum(sum(count.values()) for count in counts)

    async def server(self) -> QueueServer:
        """Return what the server says of itself; a hosted one may allow no such question."""
        async with _reached():
            await self._redis.ping()
            try:
                told = {**await self._redis.info("server"), **await self._redis.info("memory")}
            except ResponseError:
                told = {}
        return QueueServer(version=str(told.get("redis_version", "")), eviction=str(told.get("maxmemory_policy", "")))

    async def stop(self) -> None:
        """Take no more jobs, and wait until those that were taken are answered, while the server answers at all."""
        workers, self._workers = self._workers, []
        presence, self._presence = self._presence, []
        for client in presence:
            async with _ignored():
                await client.aclose()
        await asyncio.gather(*(_end(worker) for worker, _ in workers))
        for _, running in workers:
            running.cancel()
        await asyncio.gather(*(running for _, running in workers), return_exceptions=True)

    async def close(self) -> None:
        """Close the connections."""
        await self.stop()
        async with _ignored():
            await self._redis.aclose()

    async def beat(self, queues: Iterable[str]) -> None:
        """Write that a worker takes runs of these queues, for the next minute."""
        names = tuple(queues)
        value = json.dumps({"at": int(time.time() * 1000), "queues": names})
        async with _reached(), self._redis.pipeline(transaction=False) as pipe:
            for key in self._heartbeats(names):
                pipe.set(key, value, ex=HEARTBEAT_SECONDS)
            await pipe.execute()
            for client in self._presence:
                await client.ping()

    async def is_beating(self, queues: Iterable[str]) -> bool:
        """Return whether the heartbeats of these queues are there."""
        keys = self._heartbeats(queues)
        async with _reached():
            return int(await self._redis.exists(*keys)) == len(keys)

    async def withdraw(self, queues: Iterable[str], *, last: bool) -> None:
        """Write that no worker takes runs of these queues any more; the `last` one takes runs of none."""
        keys = [*map(self._heartbeat, queues), *([self._heartbeat()] if last else [])]
        async with _reached():
            if keys:
                await self._redis.delete(*keys)

    async def canceled(self, runs: Collection[RunId]) -> Collection[RunId]:
        """Return those of some runs that another program wants to be canceled."""
        if not runs:
            return ()
        async with _reached():
            found = await self._redis.mget([f"cancel:conversation:{run}" for run in runs])
        return [run for run, value in zip(runs, found, strict=True) if value is not None]

    async def _now(self) -> int:
        """Return the time of the server in milliseconds: this machine's clock may be wrong."""
        seconds, micros = await self._redis.time()
        return int(seconds) * 1000 + int(micros) // 1000

    async def _number(self, key: str) -> int | None:
        """Return the number under a key; whatever else somebody wrote there is removed."""
        try:
            value = str(found) if (found := await self._redis.get(key)) is not None else None
        except ResponseError:  # a list, say
            value = ""
        if value is None or _NUMBER.fullmatch(value):
            return None if value is None else int(value)
        await self._redis.delete(key)
        return None

    def _heartbeats(self, queues: Iterable[str]) -> tuple[str, ...]:
        return (self._heartbeat(), *map(self._heartbeat, queues))

    def _heartbeat(self, queue: str = "") -> str:
        key = f"worker:background:heartbeat:{self._region}"
        return f"{key}:{queue}" if queue else key

    def _queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = Queue(name, {"connection": self._redis})
        return self._queues[name]

    def _processor(self, queue: str, handle: HandleJob) -> Callable[[Job, str], Any]:
        loop, put_off = asyncio.get_running_loop(), dict[str, float]()

        async def process(job: Job, token: str) -> Any:
            # BullMQ brings it too early while the clock of this machine is ahead.
            await asyncio.sleep(put_off.pop(job.id, 0.0) - loop.time())
            answer = await handle(_queued(queue, job))
            if answer.again_in is not None:
                for other in [one for one, due in put_off.items() if due < loop.time()]:
                    del put_off[other]  # which another worker took
                put_off[job.id] = loop.time() + answer.again_in
                # By the clock of Redis, and not with `Job.moveToDelayed`, which knows only that of this machine.
                delay = round(answer.again_in * 1000)
                await job.backend.moveToDelayed(job.id, await self._now(), delay, token, {"skipAttempt": True})
                raise DelayedError
            if answer.failure:
                raise JobFailed(answer.failure) if answer.retryable else UnrecoverableError(answer.failure)
            return answer.value

        return process

    async def _run(self, worker: Worker) -> None:
        """Keep a worker running: its loop ends when its first connection is refused."""
        while not worker.closing:
            try:
                await worker.run()
            except _FAILURES as error:
                self._tell(worker.name, error)
                await asyncio.sleep(RECONNECT_MS / 1000)

    def _tell(self, queue: str, error: object, *_: object) -> None:
        self._on_error(f"Redis, queue {queue}: {error}")


class JobFailed(Exception):
    """What BullMQ counts as a failed attempt of a job; it comes again while the job has attempts left."""


class JobWorker(Worker):  # type: ignore[misc]  # BullMQ has no types
    """A worker of BullMQ that fails a job which it cannot read, instead of taking it again and again."""

    async def _ensure_client_names(self) -> None:
        """Name no connection: BullMQ names all that a worker has, and each is counted as a worker."""

    async def nextJobFromJobData(  # noqa: N802 - the name in BullMQ
        self, job_data: Any = None, job_id: Any = None, limit_until: Any = 0, delay_until: Any = 0, token: Any = None
    ) -> Job | None:
        """Return the job that was taken; one that is not JSON with the reason for which the worker fails it."""
        try:
            return await super().nextJobFromJobData(job_data, job_id, limit_until, delay_until, token)
        except _UNREADABLE as error:
            job = Job.fromJSON(self, {"name": job_data.get("name", "")}, job_id)
            job.token, job.deferredFailure = token, f"the job cannot be read: {error}"
            self.emit("error", f"job {job_id} is failed: it cannot be read: {error}")
            return job


async def _end(worker: Worker) -> None:
    """Close a worker; by force when it does not close by itself: it would try to reach its server without end."""
    closing = asyncio.ensure_future(worker.close())
    if (await asyncio.wait({closing}, timeout=STOP_SECONDS))[0]:
        if (error := closing.exception()) is not None and not isinstance(error, _FAILURES):
            raise error
        return
    left = {closing, asyncio.ensure_future(worker.close(force=True))}
    while left:
        ended, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
        await asyncio.gather(*ended, return_exceptions=True)
        worker.cancelProcessing()  # again: what was canceled may still ask the server for something, and wait


def _queued(queue: str, job: Job) -> QueuedJob:
    """Return a job as it was found. A retry may set the number of its attempts to 0, but keeps what they raised."""
    raised = len(job.stacktrace) if isinstance(job.stacktrace, list) else 0
    failures = max(job.attemptsMade, raised)
    return QueuedJob(id=str(job.id), queue=queue, data=job.data, added_at=job.timestamp, failures=failures)


def _listed_names(queue: str, process: str) -> tuple[str, str]:
    """Return the names under which BullMQ looks for workers of a queue: its Node package, and its Python package."""
    return f"bull:{base64.b64encode(queue.encode()).decode()}:w:{process}", f"bull:{queue}:w:{process}"


def _job_id(run: RunId, number: int) -> str:
    return f"run-{run}-{number}"


@asynccontextmanager
async def _reached() -> AsyncIterator[None]:
    """Raise QueueFailed for what the server or the way to it does not do."""
    try:
        yield
    except _FAILURES as error:
        raise QueueFailed(
            f"the Redis server of REDIS_URL cannot be used: {type(error).__name__}: {error}",
            suggestions=("check REDIS_URL and that the server runs; runs stay in the store meanwhile",),
        ) from error


@asynccontextmanager
async def _ignored() -> AsyncIterator[None]:
    """Let a connection that is closed anyway be broken."""
    try:
        yield
    except _FAILURES:
        return
