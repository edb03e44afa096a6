"""Tests side by side, in forks of one process: what they all need is loaded, and the tests are collected, only once.

    pytest --workers 6

Every worker is given a few tests at a time, of one file as long as it has more. Those with the marker `page` all run in
the first worker, which starts one browser for them, those with `postgres` in the second, with one server, those with
`source` in the third, which parses the source once. A worker that
dies fails its test, and another takes its place; a test that no worker has reported fails.
"""

import contextlib
import os
import random
import signal
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

import pytest
from _pytest.config import create_terminal_writer

LANES = (
    "page",
    "postgres",
    "source",
)  # markers of tests that share something that is slow to start, by the number of a worker
MAX_AT_ONCE = 8  # tests that a worker is given, so that none has many left when the others are done
END_SECONDS = 20.0  # for a worker that is told to end
# Begun first, for the same reason; the files beside this one are of that kind too.
SLOW_FOLDERS = ("testing", "witness", "chaos", "cli", "git", "app", "mcp", "api", "battles", "pool", "councils")


def run_in_workers(session: pytest.Session, count: int) -> bool | None:
    """Run the tests of a session in so many workers; None where the session is to go on by itself."""
    if count < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    Distribution(session, count).run()
    return True


class TestQueue:
    """The tests that nobody has begun, by file."""

    __test__ = False

    def __init__(self, items: Sequence[pytest.Item]) -> None:
        self._files: dict[str, deque[int]] = {}
        self._lanes: list[deque[int]] = [deque() for _ in LANES]
        for number, item in sorted(enumerate(items), key=lambda one: _rank(one[1])):
            file = item.nodeid.partition("::")[0]
            lane = next((one for one, name in enumerate(LANES) if item.get_closest_marker(name)), None)
            (self._files.setdefault(file, deque()) if lane is None else self._lanes[lane]).append(number)
        self._begun: set[str] = set()

    def take(self, worker: "Worker", workers: int) -> list[int]:
        """Return the next tests for a worker; none are left when it is empty."""
        for lane in self._lanes[worker.number :: workers]:  # of few workers one has several
            if lane:
                return _cut(lane, MAX_AT_ONCE)
        if worker.file not in self._files:
            worker.file = self._next_file()
        if worker.file is None:
            return []
        self._begun.add(worker.file)
        left = sum(map(len, self._files.values()))
        tests = self._files[worker.file]
        found = _cut(tests, max(1, min(MAX_AT_ONCE, left // (4 * workers))))
        if not tests:
            del self._files[worker.file]
        return found

    def put_back(self, tests: Sequence[int]) -> None:
        """Take tests back that a dead worker had not begun."""
        if tests:
            self._files.setdefault(f"{tests[0]}", deque()).extendleft(reversed(tests))

    def _next_file(self) -> str | None:
        """Return the next file that nobody works on, else that of which most is left."""
        fresh = (file for file in self._files if file not in self._begun)
        return next(fresh, None) or max(self._files, key=lambda file: len(self._files[file]), default=None)


def _rank(item: pytest.Item) -> int:
    place = item.nodeid.partition("::")[0].split("/")[1:2]
    if place and place[0] in SLOW_FOLDERS:
        return SLOW_FOLDERS.index(place[0])
    return 0 if "".join(place).endswith(".py") else len(SLOW_FOLDERS)


def _cut(tests: "deque[int]", count: int) -> list[int]:
    return [tests.popleft() for _ in range(min(count, len(tests)))]


@dataclass(eq=False)
class Worker:
    """A process that runs tests, as the distribution sees it."""

    number: int
    pid: int
    connection: Connection
    file: str | None = None
    given: deque[int] = field(default_factory=deque)  # what it has not reported


class Distribution:
    """Hands out the tests of a session to workers, and reports what they tell."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self._session, self._config, self._count = session, session.config, count
        self._queue = TestQueue(session.items)
        self._left = set(range(len(session.items)))
        self._workers: list[Worker] = []

    def run(self) -> None:
        """Run all tests; raises what stops a session, with no worker left."""
        try:
            for number in range(self._count):
                self._start(number)
            while self._workers:
                for worker in self._told():
                    self._hear(worker)
                    if self._session.shouldfail:
                        raise self._session.Failed(self._session.shouldfail)
        finally:
            self._end_all()
        for number in sorted(self._left):
            self._fail(number, "no worker has reported it")

    def _end_all(self) -> None:
        """End workers in the middle of their tests: they end what these have started, as long as they have time."""
        for worker in self._workers:
            os.kill(worker.pid, signal.SIGTERM)
        until = time.monotonic() + END_SECONDS
        for worker in self._workers:
            while wait([worker.connection], max(0.0, until - time.monotonic())):
                if _received(worker.connection)[0] == "ended":
                    break
            os.kill(worker.pid, signal.SIGKILL)
            os.waitpid(worker.pid, 0)

    def _told(self) -> Iterator[Worker]:
        ready = wait([worker.connection for worker in self._workers])
        return iter([worker for worker in self._workers if worker.connection in ready])

    def _start(self, number: int) -> None:
        ours, theirs = Pipe()
        base = self._config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        pid = os.fork()
        if pid == 0:
            ours.close()
            for other in self._workers:
                other.connection.close()
            _work(self._session, theirs, base / f"worker-{number}-{os.getpid()}")
        theirs.close()
        self._workers.append(Worker(number, pid, ours))

    def _hear(self, worker: Worker) -> None:
        kind, value = _received(worker.connection)
        if kind == "ended":
            self._bury(worker)
        elif kind == "next":
            tests = self._queue.take(worker, self._count)
            worker.given.extend(tests)
            worker.connection.send(tests)
        elif kind == "broken":
            raise RuntimeError(f"a worker cannot go on:\n{value}")
        else:
            for data in value:
                report = self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
                self._report(report)
                if report.when == "teardown":
                    self._left.discard(worker.given.popleft())

    def _bury(self, worker: Worker) -> None:
        """Fail the test in which a worker died, and start another worker; one that has nothing left may go."""
        self._workers.remove(worker)
        worker.connection.close()
        _, status = os.waitpid(worker.pid, 0)
        if not worker.given and status == 0:
            return
        if worker.given:
            number = worker.given.popleft()
            self._fail(number, f"its worker ended with {os.waitstatus_to_exitcode(status)}")
            self._left.discard(number)
        self._queue.put_back(worker.given)
        self._start(worker.number)

    def _fail(self, number: int, why: str) -> None:
        item = self._session.items[number]
        self._report(
            pytest.TestReport(
                nodeid=item.nodeid, location=item.location, keywords={}, outcome="failed", longrepr=why, when="call"
            )
        )

    def _report(self, report: pytest.TestReport) -> None:
        self._config.hook.pytest_runtest_logreport(report=report)


def _received(connection: Connection) -> tuple[str, Any]:
    try:
        kind, value = connection.recv()
    except (EOFError, ConnectionResetError):
        return "ended", None
    return kind, value


class _Reports:
    """Passes on what a worker finds out: failures at once, and else when a test is over, which wakes nobody in vain."""

    tearing_down = False

    def __init__(self, config: pytest.Config, connection: Connection) -> None:
        self._config, self._connection = config, connection
        self._kept: list[Any] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Iterator[None]:
        _Reports.tearing_down = True
        try:
            return (yield)
        finally:
            _Reports.tearing_down = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._kept.append(data)
        if report.failed or report.when == "teardown":
            self._connection.send(("reports", self._kept))
            self._kept = []


def _work(session: pytest.Session, connection: Connection, folder: Path) -> None:
    """Run tests in this process until there are none, and end it."""
    try:
        _settle(session.config, folder)
        session.config.pluginmanager.register(_Reports(session.config, connection))
        _run_all(session, connection)
    except BaseException:
        connection.send(("broken", traceback.format_exc()))
        _tear_down(session)
        os._exit(1)
    connection.close()
    os._exit(0)


def _tear_down(session: pytest.Session) -> None:
    """End what fixtures have started, in a worker that is told to end once or twice."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(BaseException):
        session._setupstate.teardown_exact(None)


def _end(number: int, frame: object) -> None:
    if not _Reports.tearing_down:  # which is the end of it, and must not be cut
        raise SystemExit(1)


def _run_all(session: pytest.Session, connection: Connection) -> None:
    tests = _next(connection)
    while tests:
        test = tests.pop(0)
        if not tests:  # what comes next says which fixtures are needed no more
            tests = _next(connection)
        following = session.items[tests[0]] if tests else None
        session.config.hook.pytest_runtest_protocol(item=session.items[test], nextitem=following)


def _next(connection: Connection) -> list[int]:
    connection.send(("next", None))
    found: list[int] = connection.recv()
    return found


def _settle(config: pytest.Config, folder: Path) -> None:
    """Give this process what it must not share: its captured streams, its folder and its random numbers."""
    signal.signal(signal.SIGTERM, _end)
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    reporter = config.pluginmanager.getplugin("terminalreporter")
    nowhere = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    reporter._tw = create_terminal_writer(config, nowhere)
    folder.mkdir()
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    random.seed()
