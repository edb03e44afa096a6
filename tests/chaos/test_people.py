"""Killed while a person is asked, while the answer waits and while it is recorded, a run asks once and hears once."""

from collections import Counter

from muster.app import Muster
from muster.domain.run import RunState
from tests.chaos.books import check_books, read_books
from tests.chaos.stage import Stage, until

# Where the process dies, and whether the person has answered the question that is open by then.
DEATHS = (
    ("question.asked:1", False),
    ("question.before_take:1", True),
    ("question.answered:1", True),
    ("store.before_commit:2", True),
    ("store.after_commit:2", True),
)
CALLS = 6


def key_of(number: int) -> str:
    return f"me/{number:05d}"


async def answer_next(muster: Muster) -> bool:
    """Answer the question that is open, twice, as a client does whose first request got no response."""
    for question in await muster.runs.questions("consult"):
        for _ in range(2):
            await muster.runs.answer("consult", f"answer to {question.key}", key=question.key, client_id=question.key)
        return True
    return False


async def is_asked(muster: Muster) -> bool:
    """Return whether the run is there and has an open question."""
    return any(run.name == "consult" for run in await muster.runs.list()) and bool(
        await muster.runs.questions("consult")
    )


async def is_over(muster: Muster) -> bool:
    """Return whether the run is over; a question that is open is answered first."""
    return not await answer_next(muster) and (await muster.runs.find("consult")).state is RunState.COMPLETED


async def test_each_answer_is_heard_once_wherever_the_driver_dies(stage: Stage) -> None:
    (stage.folder / "muster.toml").write_text('[agents.me]\nkind = "human"\n', encoding="utf-8")
    order = stage.order(CALLS, name="consult", workload="consult")
    waiting = await stage.start(order)
    await waiting.ready()
    async with stage.open() as muster:
        await until(lambda: is_asked(muster))
        ended = await waiting.kill()  # while it waits
        assert ended.killed
        for point, answered in DEATHS:
            if answered:
                await answer_next(muster)
            ended = await stage.drive(order, crash_at=point)
            assert ended.killed, (point, ended)
        last = await stage.start(order)
        await last.ready()
        await until(lambda: is_over(muster))
        done = await last.end()
        events = await muster.runs.events(done.run["id"])
    assert done.run["result"] == {"said": [f"answer to {key_of(number)}" for number in range(CALLS)]}
    kinds = Counter((event.kind, event.data.get("key")) for event in events)
    assert [kinds["call.asked", key_of(number)] for number in range(CALLS)] == [1] * CALLS
    books = await read_books(stage, "consult")
    check_books(books)
    assert stage.sim.audit().calls <= CALLS + len(books.uncertain), "a draft was paid for twice"
