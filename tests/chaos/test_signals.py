"""Killed before, while and after it receives, a run sees every signal once and in order, and pays nothing twice."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence

import msgspec

from muster.app import Muster
from muster.domain.entry import Signal
from tests.chaos.books import check_books, check_paid_once, read_books
from tests.chaos.stage import PATIENCE, ROOT, Driver, Ended, Stage, until

ROUNDS = 6
# Where the process dies, and with how many signals sent by then.
DEATHS = (
    ("signal.before_take:1", 1),
    ("signal.taken:1", 2),
    ("store.before_commit:2", 3),
    ("store.after_commit:2", 4),
    ("call.answered:1", 5),
    ("run.before_release:1", ROUNDS),
)
# A process that sends the signals of some rounds when it is told to, and prints them as they were stored.
SENDER = """
import asyncio, sys, msgspec, muster
from pathlib import Path
from muster.settings import load_settings
from tests.chaos.test_signals import tell

async def send(folder, numbers):
    async with muster.open(settings=load_settings(folder=Path(folder))) as m:
        print("ready", flush=True)
        sys.stdin.readline()
        sent = await asyncio.gather(*(tell(m, int(number)) for number in numbers))
        print(msgspec.json.encode(sent).decode())

asyncio.run(send(sys.argv[1], sys.argv[2:]))
"""


async def is_driven(muster: Muster) -> bool:
    """Return whether the run is there and has a driver."""
    return any(run.name == "relay" and run.is_driven for run in await muster.runs.list())


async def tell(muster: Muster, number: int) -> Signal:
    """Send the signal of a round."""
    return await muster.runs.send("relay", "told", f"round {number}", sender="test", client_id=f"n{number}")


async def test_each_signal_is_seen_once_and_in_order_wherever_the_driver_dies(stage: Stage) -> None:
    order = stage.order(ROUNDS, name="relay", workload="relay")
    begun = await stage.start(order)
    await begun.ready()
    async with stage.open() as muster:
        await until(lambda: is_driven(muster))
    await begun.kill()
    sent = 0
    for point, signals in DEATHS:
        async with stage.open() as muster:
            for number in range(sent, signals):
                await tell(muster, number)
                await tell(muster, number)  # the same client id, as after an answer that got lost
        sent = signals
        ended = await stage.drive(order, crash_at=point)
        assert ended.killed, (point, ended)
    ended = await stage.drive(order)
    assert ended.run["result"] == {"heard": [f"round {number}" for number in range(ROUNDS)]}
    books = await read_books(stage, "relay")
    check_books(books)
    check_paid_once(books, stage.sim.audit())


async def begun_relay(stage: Stage) -> Driver:
    """Start a process whose run waits for its signals."""
    driver = await stage.start(stage.order(ROUNDS, name="relay", workload="relay"))
    await driver.ready()
    async with stage.open() as muster:
        await until(lambda: is_driven(muster))
    return driver


def check_heard(ended: Ended, sent: Sequence[Signal]) -> None:
    """Every signal was given a number of its own, and was seen once, in the order of the numbers."""
    ordered = sorted(sent, key=lambda signal: signal.seq)
    assert [signal.seq for signal in ordered] == list(range(1, ROUNDS + 1))
    assert {signal.payload for signal in sent} == {f"round {number}" for number in range(ROUNDS)}
    assert ended.run["result"] == {"heard": [signal.payload for signal in ordered]}


async def test_signals_sent_at_once_through_two_stores_are_seen_once_in_the_order_of_their_numbers(
    stage: Stage,
) -> None:
    driver = await begun_relay(stage)
    async with stage.open() as one, stage.open() as other:
        # Each is sent through both, as by two senders that do not know of each other; the client id makes it one.
        sent = await asyncio.gather(*(tell(store, number) for number in range(ROUNDS - 1) for store in (one, other)))
        last = await tell(one, ROUNDS - 1)  # alone: the run ends with it, and receives nothing after that
        ended = await driver.end()
    assert sent[::2] == sent[1::2]
    check_heard(ended, [*sent[::2], last])


async def test_signals_of_two_processes_at_once_are_seen_once_in_the_order_of_their_numbers(stage: Stage) -> None:
    driver = await begun_relay(stage)
    senders = [await start_sender(stage, range(place, ROUNDS, 2)) for place in (0, 1)]
    for sender in senders:
        assert sender.stdout is not None
        assert await asyncio.wait_for(sender.stdout.readline(), PATIENCE) == b"ready\n"
    ends = await asyncio.wait_for(asyncio.gather(*(sender.communicate(b"go\n") for sender in senders)), PATIENCE)
    assert [sender.returncode for sender in senders] == [0, 0], ends
    check_heard(
        await driver.end(), [signal for out, _ in ends for signal in msgspec.json.decode(out, type=list[Signal])]
    )


async def start_sender(stage: Stage, numbers: range) -> Process:
    """Start a process that sends the signals of some rounds at once, as soon as it is told to."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SENDER, str(stage.folder), *map(str, numbers)),
        cwd=ROOT,
        env=stage.environment,
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
    )
