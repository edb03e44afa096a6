"""Drivers of CLI agents killed again and again: every call ends in one state, nothing is left at work, nothing of a
stranger's is touched, and what was finished is not done again."""

import asyncio
import json
import random
import sys
from asyncio.subprocess import DEVNULL
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from muster.agents.processes import system
from muster.domain.entry import AttemptState, Entry, EntryState
from tests.chaos import work
from tests.chaos.books import Books, check_books, read_books
from tests.chaos.stage import LOOK_SECONDS, Stage

CONCURRENCY = 16
TOML = """
[agents.coder]
kind = "cli"
command = [{python}, "-m", "muster.sim.cli_agent", "--max-budget-usd", "{{budget}}"]
output = "jsonl"
answer = "$.result"
cost_usd = "$.total_cost_usd"
session = "$.session_id"
turns = "$.num_turns"
error = "$.is_error"
ends = "$.num_turns"
delta = "$.event.delta.text"
tool_name = "$.message.content[?@.type=='tool_use'].name"
tool_id = "$.message.content[?@.type=='tool_use'].id"
tool_arguments = "$.message.content[?@.type=='tool_use'].input"
tool_done = "$.message.content[?@.type=='tool_result'].tool_use_id"
tool_result = "$.message.content[?@.type=='tool_result'].content"
permission = "$.request.tool_name"
budget_usd = 6.00  # more than the dearest mood costs: more than was reserved would stop the run
idle_secs = 12  # longer than so many programs take to start on a busy machine
concurrency = {concurrency}
working_dir = "work"
env = {{ SCRIPTED_CLI_AUDIT = {audit}, CREW = {crew} }}
"""


class Crew:
    """A folder with a CLI agent that keeps an audit of its own."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.audit = stage.folder / "audit.jsonl"
        (stage.folder / "work").mkdir()
        quoted = {"python": sys.executable, "audit": str(self.audit), "crew": str(stage.folder)}
        names = {name: json.dumps(value) for name, value in quoted.items()}
        (stage.folder / "muster.toml").write_text(TOML.format(**names, concurrency=CONCURRENCY))

    def at_work(self) -> list[int]:
        """Find whatever is alive and was started for this crew, by what it carries."""
        mark = f"CREW={self.stage.folder}\0".encode()
        return [pid for pid, _ in system.with_token("muster-") if system.started(pid) and mark in _environment(pid)]

    def hanging(self) -> bool:
        """Return whether an agent has started that never ends by itself, unlike most, which may be gone any moment."""
        return self.audit.exists() and any("MOOD:hang" in line for line in self.audit.read_text().splitlines())

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


def _environment(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


async def kill_and_look(crew: Crew, calls: int, seconds: float | None) -> int:
    """Kill a driver after its first process, or once an agent hangs, and return how many the next one ended."""
    order = crew.stage.order(calls, workload="crew", agent="coder", concurrency=CONCURRENCY)
    driver = await crew.stage.start(order)
    await driver.ready()
    while not (crew.at_work() if seconds is not None else crew.hanging()):  # noqa: ASYNC110 - in another process
        await asyncio.sleep(LOOK_SECONDS)
    await asyncio.sleep(seconds or 0.0)
    ended = await driver.kill()
    assert ended.killed, ended
    async with crew.stage.open() as muster:
        assert crew.at_work() == []
        return len(muster.reaped)


def check_ends(books: Books, calls: int) -> None:
    ends = {entry.key: _end(entry) for entry in books.entries}
    assert ends == {work.key_of(number): work.MOODS[work.mood_of(number)] for number in range(calls)}
    assert books.run.result["ends"] == [work.MOODS[work.mood_of(number)] for number in range(calls)]


def _end(entry: Entry) -> str:
    assert entry.state in (EntryState.DONE, EntryState.FAILED), entry
    return "done" if entry.reply is not None else str((entry.error or {})["code"])


def check_done_once(crew: Crew, books: Books) -> None:
    """By the agent's own audit: started no oftener than tried, and never again once its reply was settled."""
    starts: dict[str, list[float]] = {}
    for line in crew.lines():
        if line["event"] == "start":
            starts.setdefault(line["prompt"], []).append(line["at"])
    tries = Counter(attempt.key for attempt in books.attempts if attempt.state is not AttemptState.UNSENT)
    for number, entry in enumerate(sorted(books.entries, key=lambda entry: entry.key)):
        begun = starts.get(work.errand(number), [])
        assert len(begun) <= tries[entry.key], (entry.key, begun)
        if entry.reply is not None and entry.settled_at is not None:
            assert begun, entry.key
            assert max(begun) < entry.settled_at, entry.key


async def prove(crew: Crew, calls: int, kills: int, latest: float) -> None:
    chance = random.Random(calls)
    instants = [None, 0.0, *(chance.uniform(0.0, latest) for _ in range(kills - 2))]
    reaped = [await kill_and_look(crew, calls, seconds) for seconds in instants]
    assert reaped[0] > 0, "the agent that hung was not ended"
    order = crew.stage.order(calls, workload="crew", agent="coder", concurrency=CONCURRENCY)
    ended = await crew.stage.drive(order)
    assert ended.run["state"] == "completed", ended
    assert crew.at_work() == []
    books = await read_books(crew.stage)
    check_ends(books, calls)
    check_books(books)
    check_done_once(crew, books)
    started = sum(line["event"] == "start" for line in crew.lines())
    print(f"{calls} calls, {kills} kills: {reaped} reaped, {started} started, {len(books.uncertain)} uncertain")


@pytest.fixture
async def decoy() -> AsyncIterator[None]:
    """Somebody else's CLI agent, with the command line of one of ours; at the end it must still be there."""
    command = (sys.executable, "-m", "muster.sim.cli_agent", "--max-budget-usd", "4.8", work.errand(9))
    process = await asyncio.create_subprocess_exec(*command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL)
    yield
    alive = process.returncode is None
    if alive:
        process.kill()
        await process.wait()
    assert alive, "a stranger's process was ended"


@pytest.mark.usefixtures("decoy")
async def test_a_killed_driver_leaves_nothing_at_work(stage: Stage) -> None:
    await prove(Crew(stage), calls=32, kills=3, latest=1.0)


@pytest.mark.chaos
@pytest.mark.usefixtures("decoy")
async def test_ten_killed_drivers_and_three_hundred_calls_in_all_moods(stage: Stage) -> None:
    await prove(Crew(stage), calls=300, kills=10, latest=4.0)
