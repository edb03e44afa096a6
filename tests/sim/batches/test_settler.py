"""Batches are brought up to date by whoever looks, in small steps, and every member is paid once."""

import asyncio
from itertools import count

from muster.sim.batches.batch import Schedule, make_schedule
from muster.sim.options import Options
from muster.sim.server import serve
from tests.sim.batch_wire import ANTHROPIC_BATCHES, call, members
from tests.sim.wire import ask, dial, message, spell

MANY = 3000
DAY = 24 * 60 * 60


async def test_others_are_served_while_a_large_batch_is_settled() -> None:
    async with serve() as server, dial(server) as one, dial(server) as other:
        created = await call(server, "POST", ANTHROPIC_BATCHES, members(MANY))
        one.writer.write(spell(b"", f"{ANTHROPIC_BATCHES}/{created.json()['id']}", "GET"))
        other.send(message())
        large, small = asyncio.create_task(one.answer()), asyncio.create_task(other.answer())
        done, _ = await asyncio.wait({large, small}, return_when=asyncio.FIRST_COMPLETED)
        assert done == {small}
        assert (await large).json()["request_counts"]["succeeded"] == MANY


async def test_several_that_look_at_once_share_the_work() -> None:
    async with serve() as server:
        created = await call(server, "POST", ANTHROPIC_BATCHES, members(MANY))
        path = f"{ANTHROPIC_BATCHES}/{created.json()['id']}"
        paths = [path, path, ANTHROPIC_BATCHES, f"{path}/results", "/_sim/audit"]
        answers = await asyncio.gather(*(call(server, "GET", path) for path in paths))
        assert [answer.status for answer in answers] == [200] * 5
        assert answers[3].body.count(b"\n") == MANY
        assert answers[4].json()["calls"] == MANY
        assert server.audit.calls == MANY


async def test_work_that_was_left_is_taken_up_by_the_next_who_looks() -> None:
    async with serve() as server:
        created = await call(server, "POST", ANTHROPIC_BATCHES, members(MANY))
        path = f"{ANTHROPIC_BATCHES}/{created.json()['id']}"
        async with dial(server) as gone:
            gone.writer.write(spell(b"", path, "GET"))
            await ask(server, message())
        assert (await call(server, "GET", path)).json()["request_counts"]["succeeded"] == MANY
        assert server.audit.calls == MANY + 1


def test_members_are_due_evenly_over_the_time() -> None:
    schedule = Schedule(created=100.0, seconds=10.0)
    assert [schedule.due(10, 100.0 + at) for at in (-5, 0, 0.9, 1, 4, 9.99, 10, 99)] == [0, 0, 0, 1, 4, 9, 10, 10]


def test_without_time_all_are_due_at_once() -> None:
    assert make_schedule(100.0, 0.0, expiring=False).due(7, 100.0) == 7


def test_what_is_not_due_after_a_day_expires() -> None:
    schedule = make_schedule(0.0, 10.0 * DAY, expiring=False)
    assert (schedule.ends, schedule.due(100, 2.0 * DAY)) == (DAY, 10)


async def test_a_batch_that_is_told_to_have_ended_has_all_its_results_however_time_flies() -> None:
    ticks = count(1_800_000_000)
    async with serve(Options(batch_ms=20_000), lambda: float(next(ticks))) as server:
        created = await call(server, "POST", ANTHROPIC_BATCHES, members(10))
        path = f"{ANTHROPIC_BATCHES}/{created.json()['id']}"
        while (found := (await call(server, "GET", path)).json())["processing_status"] != "ended":
            audit = server.audit
            assert audit.batches[0]["status"] == "in_progress" or audit.calls == 10
        assert found["request_counts"]["succeeded"] == 10
        assert (await call(server, "GET", f"{path}/results")).body.count(b"\n") == 10
