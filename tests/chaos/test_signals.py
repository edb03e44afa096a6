"""Killed before, while and after it receives, a run sees every signal once and in order, and pays nothing twice."""

from muster.app import Muster
from tests.chaos.books import check_books, check_paid_once, read_books
from tests.chaos.stage import Stage, until

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


async def is_driven(muster: Muster) -> bool:
    """Return whether the run is there and has a driver."""
    return any(run.name == "relay" and run.is_driven for run in await muster.runs.list())


async def tell(muster: Muster, number: int) -> None:
    """Send the signal of a round."""
    await muster.runs.send("relay", "told", f"round {number}", sender="test", client_id=f"n{number}")


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


async def test_signals_of_two_senders_at_once_are_all_seen(stage: Stage) -> None:
    order = stage.order(ROUNDS, name="relay", workload="relay")
    driver = await stage.start(order)
    await driver.ready()
    async with stage.open() as one, stage.open() as other:
        await until(lambda: is_driven(one))
        for number in range(ROUNDS):
            await tell(one if number % 2 else other, number)
        ended = await driver.end()
    assert sorted(ended.run["result"]["heard"]) == [f"round {number}" for number in range(ROUNDS)]
