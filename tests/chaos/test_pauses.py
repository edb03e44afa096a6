"""A process that stood still for longer than its calls may take reads the answers that arrived meanwhile."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.domain.agent import Timeouts
from tests.chaos.books import Books, check_books, read_books
from tests.chaos.fleet import Order
from tests.chaos.stage import Stage, until
from tests.rehearsal import ForkedRehearsal

CALLS = 9  # one in three is streamed
TIMEOUTS = Timeouts(connect=60.0, idle=9.0, call=9.4, grace=0.2)
PAUSE = 10.0  # seconds: longer than a call may take, with its grace
LARGE = 300_000  # bytes: more than is read at a time
SETTINGS = """
[agents.clerk]
kind = "program"
mode = "plain"
timeout_secs = 9
command = ["sh", "-c", "echo begun >> programs.log; sleep 5; cat; echo ended >> programs.log"]
"""


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Stage]:
    """A server that answers after five seconds: there is time to stop whoever waits for that."""
    with ForkedRehearsal(latency_ms=5000) as running:
        yield Stage(tmp_path / "stage", running)


async def pause_on_the_wire(stage: Stage, order: Order, on_the_wire: int, pause: float = PAUSE) -> Books:
    """Stop the process with so many calls on the wire, and let it go on when their time is over."""
    driver = await stage.start(order)

    async def all_sent() -> bool:
        return begun(stage) >= on_the_wire

    await until(all_sent)
    os.kill(driver.pid, signal.SIGSTOP)
    await asyncio.sleep(pause)  # it is the length of the pause that counts
    os.kill(driver.pid, signal.SIGCONT)
    ended = await driver.end()
    assert ended.run["state"] == "completed", ended
    return await read_books(stage)


def begun(stage: Stage) -> int:
    """Count the requests and the programs that were begun."""
    log = stage.folder / "programs.log"
    return stage.sim.audit().requests + (log.read_text(encoding="utf-8").count("begun") if log.exists() else 0)


@pytest.mark.parametrize("size", [0, LARGE])
async def test_answers_that_wait_in_the_socket_are_read_before_the_time_of_their_calls_is_over(
    slow: Stage, size: int
) -> None:
    order = slow.order(CALLS, timeouts=TIMEOUTS, concurrency=CALLS, size=size)
    books = await pause_on_the_wire(slow, order, CALLS)
    check_books(books)
    assert (books.uncertain, len(books.attempts)) == ([], CALLS)
    assert slow.sim.audit().calls == CALLS


async def test_what_a_program_wrote_is_read_before_its_time_is_over(slow: Stage) -> None:
    (slow.folder / "muster.toml").write_text(SETTINGS, encoding="utf-8")
    order = slow.order(2, timeouts=TIMEOUTS, workload="crew", agent="clerk", concurrency=2)
    books = await pause_on_the_wire(slow, order, 2)
    check_books(books)
    assert books.run.result == {"ends": ["done", "done"]}
    assert len(books.attempts) == 2


async def test_an_answer_that_arrived_in_a_pause_is_read_before_the_time_of_the_run_is_over(slow: Stage) -> None:
    books = await pause_on_the_wire(slow, slow.order(3, timeouts=TIMEOUTS, concurrency=3, timeout=9.0), 3, pause=10.5)
    check_books(books)
    assert (books.uncertain, len(books.attempts)) == ([], 3)
