"""The batcher: what goes together into a batch, and when."""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.agents.base import BatchUpload
from muster.domain.agent import Timeouts
from muster.domain.batch import BatchLimits, BatchProgress, BatchState
from muster.domain.call import Message, Request, Role
from muster.domain.dispatch import Dispatch, Fallback, Mode
from muster.domain.errors import Overloaded, RetriesExhausted, WireError
from muster.domain.run import Run, RunState
from muster.engine.batches.base import Patience, PollDelays
from muster.engine.context import Context
from muster.testing.batches import MemoryBatches
from tests.engine.batches.house import NEVER_QUIET, HurriedClock
from tests.engine.house import House, echo, house

BATCH = Dispatch(mode=Mode.BATCH)
HASTY = Patience(settle=0.03, poll_first=0.01, poll_longest=0.02)


async def questions(ctx: Context, spec: Any) -> Any:
    async def one(number: int, item: int) -> str:
        return (await ctx.call("puppet", f"question {item}", key=f"q/{number}")).text

    return [answer async for answer in ctx.map(one, range(spec))]


async def drive(place: House, work: Any, batches: MemoryBatches, **rest: Any) -> Run:
    """Drive a run whose batches end as soon as they arrive."""
    driving = asyncio.ensure_future(place.drive(work, dispatch=rest.pop("dispatch", BATCH), **rest))
    while not driving.done():
        arrival = asyncio.ensure_future(batches.arrived.get())
        await asyncio.wait({driving, arrival}, return_when=asyncio.FIRST_COMPLETED)
        if arrival.done():
            batches.end(arrival.result())
        arrival.cancel()
    return await driving


async def test_whatever_waits_at_the_same_time_goes_together(tmp_path: Path) -> None:
    batches = MemoryBatches()
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=500, concurrency=4)
    assert run.result == [f"question {number}" for number in range(500)]
    assert [len(taken) for taken in batches.taken] == [500]


async def test_turns_go_in_lockstep(tmp_path: Path) -> None:
    async def talks(ctx: Context, spec: Any) -> Any:
        async def talk(number: int, item: int) -> str:
            said = ""
            for turn in range(3):
                said = (await ctx.call("puppet", f"{said}{item}.", key=f"talk/{number}/{turn}")).text
            return said

        return [answer async for answer in ctx.map(talk, range(spec))]

    batches = MemoryBatches()
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, talks, batches, spec=50, concurrency=5)
    assert [len(taken) for taken in batches.taken] == [50, 50, 50]
    assert run.result[7] == "7.7.7."


async def test_a_full_batch_is_not_waited_for(tmp_path: Path) -> None:
    batches = MemoryBatches(limits=BatchLimits(requests=10, bytes=10_000))
    async with house(tmp_path, batches=batches, patience=NEVER_QUIET, puppet=echo()) as place:
        await drive(place, questions, batches, spec=10)
    assert [len(taken) for taken in batches.taken] == [10]


async def test_a_request_that_cannot_be_written_harms_no_other_call(tmp_path: Path) -> None:
    class Clumsy(MemoryBatches):
        def _encode(self, request: Request, cache: bool) -> bytes:
            if "question 1" in request.messages[-1].text:
                raise TypeError("not JSON")
            return super()._encode(request, cache)

    batches = Clumsy()
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=3)
    assert (run.state, run.calls.done) == (RunState.FAILED, 2)
    assert "cannot be written" in str(run.error)


async def test_nobody_lingers_for_ever(tmp_path: Path) -> None:
    batches = MemoryBatches()
    lingering = Patience(settle=1000.0, linger=0.1, poll_first=0.01, poll_longest=0.02)
    async with house(tmp_path, batches=batches, patience=lingering, puppet=echo()) as place:
        await drive(place, questions, batches, spec=3)
    assert [len(taken) for taken in batches.taken] == [3]


async def test_only_so_many_calls_are_parked_in_memory(tmp_path: Path) -> None:
    batches = MemoryBatches()
    small = Patience(settle=0.03, poll_first=0.01, poll_longest=0.02, max_parked=8)
    async with house(tmp_path, batches=batches, patience=small, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=20)
    assert len(run.result) == 20
    assert sum(len(taken) for taken in batches.taken) == 20
    assert max(len(taken) for taken in batches.taken) == 8


async def test_what_has_no_money_waits_for_the_next_batch(tmp_path: Path) -> None:
    batches = MemoryBatches(most=10)
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=12, cap=50)
    assert (run.state, run.spent.billed, run.spent.reserved) == (RunState.COMPLETED, 12, 0)
    assert next(len(taken) for taken in batches.taken) == 5
    assert sum(len(taken) for taken in batches.taken) == 12


async def test_what_can_never_be_paid_is_refused(tmp_path: Path) -> None:
    batches = MemoryBatches(most=100)
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=2, cap=50)
    assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
    assert batches.taken == []


async def test_a_refusal_that_passes_is_waited_out(tmp_path: Path) -> None:
    batches = MemoryBatches()
    batches.refusals = [Overloaded("full"), Overloaded("full")]
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=3)
        kinds = await place.kinds(run.id)
    assert (len(batches.taken), kinds.count("batch.put_back"), kinds.count("batch.submitted")) == (1, 2, 1)


def sometimes(failures: int) -> Any:
    """Fail each question so many times."""
    seen: dict[str, int] = {}

    def answer(text: str) -> str | WireError:
        seen[text] = seen.get(text, 0) + 1
        return Overloaded("full") if seen[text] <= failures else text

    return answer


async def test_failed_members_go_into_the_next_batch(tmp_path: Path) -> None:
    batches = MemoryBatches(sometimes(2))
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=4)
    assert (run.state, run.calls.failed) == (RunState.COMPLETED, 0)
    assert [len(taken) for taken in batches.taken] == [4, 4, 4]


class Forgetful(MemoryBatches):
    """Counts all answers, and leaves one out of the results at first."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times, self.downloads = times, 0

    async def poll(self, provider_id: str, timeouts: Timeouts) -> BatchProgress:
        return replace(await super().poll(provider_id, timeouts), answered=len(self.taken[int(provider_id)]))

    async def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        self.downloads += 1
        lines = [line async for line in super().results(source, timeouts)]
        for line in lines[int(self.downloads <= self.times) :]:
            yield line


@pytest.mark.parametrize("times", [1, 3, 7])
async def test_results_that_lack_answers_are_read_again(tmp_path: Path, times: int) -> None:
    batches = Forgetful(times)
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=4)
    assert run.state is RunState.COMPLETED
    assert (batches.downloads, run.calls.uncertain) == (times + 1, 0)
    assert [len(taken) for taken in batches.taken] == [4]


class Repeating(MemoryBatches):
    """Gives every batch the same id."""

    async def submit(self, upload: BatchUpload, timeouts: Timeouts) -> str:
        await super().submit(upload, timeouts)
        return "0"


async def test_an_id_that_another_batch_has_is_told_and_its_batch_is_open(tmp_path: Path) -> None:
    async def twice(ctx: Context, spec: Any) -> Any:
        return [(await ctx.call("puppet", f"question {number}", key=f"q/{number}")).text for number in range(2)]

    batches = Repeating()
    async with house(tmp_path, batches=batches, patience=replace(HASTY, grace=0.1), puppet=echo()) as place:
        run = await drive(place, twice, batches)
        made = await place.store.batches.of_run(run.id)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_open")
    assert "the provider gave it the id of another batch, 0" in str(run.error)
    assert [each.state for each in made] == [BatchState.COLLECTED, BatchState.SENT]


class Endless(MemoryBatches):
    """Repeats something after its results, for as long as anybody listens."""

    def __init__(self, again: Callable[[bytes], bytes], *, lacks: bool) -> None:
        super().__init__()
        self.again, self.lacks, self.sent, self.most_on_disk = again, lacks, 0, 0

    async def poll(self, provider_id: str, timeouts: Timeouts) -> BatchProgress:
        return replace(await super().poll(provider_id, timeouts), answered=len(self.taken[int(provider_id)]))

    async def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        lines = [line async for line in super().results(source, timeouts)]
        for line in lines[int(self.lacks) :]:
            yield line
        while True:
            chunk = self.again(lines[-1])
            self.sent += len(chunk)
            self.most_on_disk = max(self.most_on_disk, self.on_disk())
            yield chunk

    on_disk: Callable[[], int] = staticmethod(lambda: 0)


ENDLESS: dict[str, Callable[[bytes], bytes]] = {
    "a line of a member": lambda line: line * 1000,
    "a line of nobody": lambda line: b'{"custom_id":"nobody","text":"x"}\n' * 1000,
    "garbage": lambda line: b"{" * 50_000 + b"\n",
    "blank lines": lambda line: b"\n" * 50_000,
    "one line that never ends": lambda line: b"x" * 50_000,
}


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*.jsonl") if file.exists())


@pytest.mark.parametrize("again", ENDLESS.values(), ids=ENDLESS)
async def test_endless_results_are_read_as_far_as_what_was_asked_can_reach(
    tmp_path: Path, again: Callable[[bytes], bytes]
) -> None:
    batches = Endless(again, lacks=False)
    batches.on_disk = lambda: size_of(tmp_path)
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=4)
        [made] = await place.store.batches.of_run(run.id)
    assert run.state is RunState.COMPLETED
    assert (made.state, made.tally.succeeded) == (BatchState.COLLECTED, 4)
    assert batches.sent < 2_000_000
    assert batches.most_on_disk < 100_000


async def test_endless_results_that_lack_an_answer_leave_the_run_waiting(tmp_path: Path) -> None:
    batches = Endless(ENDLESS["a line of a member"], lacks=True)
    async with house(tmp_path, batches=batches, patience=replace(HASTY, deadline=3.0), puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=4)
    assert (run.state, run.ended_reason) == (RunState.WAITING, "batch_lost")
    assert [len(taken) for taken in batches.taken] == [4]


async def test_after_so_many_batches_a_call_fails(tmp_path: Path) -> None:
    batches = MemoryBatches(sometimes(99))
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await drive(place, questions, batches, spec=2)
    assert (run.state, run.ended_reason, run.calls.failed) == (RunState.FAILED, RetriesExhausted.code, 2)
    assert len(batches.taken) == 3


async def test_after_so_many_batches_a_call_goes_live_if_told_to(tmp_path: Path) -> None:
    batches, puppet = MemoryBatches(sometimes(99)), echo()
    dispatch = Dispatch(mode=Mode.BATCH, fallback=Fallback.LIVE, batches=2)
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=puppet) as place:
        run = await drive(place, questions, batches, spec=3, dispatch=dispatch)
    assert (run.state, run.result) == (RunState.COMPLETED, ["question 0", "question 1", "question 2"])
    assert (len(batches.taken), len(puppet.asked)) == (2, 3)


async def test_a_single_call_may_go_another_way_than_its_run(tmp_path: Path) -> None:
    async def mixed(ctx: Context, spec: Any) -> Any:
        live = await ctx.call("puppet", "now", key="live", dispatch="live")
        later = await ctx.call("puppet", "later", key="later")
        return [live.text, later.text]

    batches, puppet = MemoryBatches(), echo()
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=puppet) as place:
        run = await drive(place, mixed, batches)
    assert run.result == ["now", "later"]
    assert [len(puppet.asked), len(batches.taken)] == [1, 1]


@pytest.mark.parametrize(("length", "cache", "marked"), [(4096, True, 3), (4095, True, 0), (4096, False, 0)])
async def test_a_long_prefix_that_is_shared_is_marked(tmp_path: Path, length: int, cache: bool, marked: int) -> None:
    async def judged(ctx: Context, spec: Any) -> Any:
        def request(system: str, text: str) -> Request:
            return Request(messages=(Message(role=Role.USER, text=text),), system=system)

        # To write a prefix for an hour costs twice: where only two share it, that is no saving.
        systems = ["s" * length] * 3 + ["two" * 2000] * 2 + ["alone" * 2000]
        calls = [ctx.call("puppet", request(system, "?"), key=f"q/{n}") for n, system in enumerate(systems)]
        return [reply.text for reply in await ctx.gather(*calls)]

    batches = MemoryBatches()
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        await drive(place, judged, batches, dispatch=Dispatch(mode=Mode.BATCH, cache=cache))
    assert sum("cached" in member["body"] for member in batches.taken[0]) == marked


async def test_the_shared_beginning_of_messages_is_marked_where_the_answer_has_the_same_shape(tmp_path: Path) -> None:
    async def verified(ctx: Context, spec: Any) -> Any:
        def request(number: int, schema: dict[str, Any]) -> Request:
            said = Message(role=Role.USER, text="f" * 5000 + f" question {number}")
            return Request(messages=(said,), shared=5000, schema=schema)

        asked = [*(request(n, {"type": "object"}) for n in range(3)), request(3, {"type": "array"})]
        return [
            reply.text
            for reply in await ctx.gather(*(ctx.call("puppet", one, key=f"q/{n}") for n, one in enumerate(asked)))
        ]

    batches = MemoryBatches()
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        await drive(place, verified, batches)
    # In which order calls are parked is not said.
    assert sorted("cached" in member["body"] for member in batches.taken[0]) == [False, True, True, True]


async def test_a_run_in_batch_is_shown_as_waiting_and_its_clock_stands_still(tmp_path: Path) -> None:
    batches, clock = MemoryBatches(), HurriedClock()
    async with house(tmp_path, clock=clock, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await place.create(questions, spec=2, dispatch=BATCH, timeout=60.0)
        driving = asyncio.ensure_future(place.engine.drive(run.id))
        await batches.arrived.get()
        while (await place.store.runs.get(run.id)).state is not RunState.WAITING:  # type: ignore[union-attr]
            await place.store.changes.wait(1.0, place.store.changes.commits)
        clock.ahead += 3600.0
        batches.end()
        done = await driving
    assert done.state is RunState.COMPLETED
    assert done.active < 60.0


async def test_a_canceled_run_takes_its_batch_along(tmp_path: Path) -> None:
    batches = MemoryBatches()
    async with house(tmp_path, batches=batches, patience=HASTY, puppet=echo()) as place:
        run = await place.create(questions, spec=4, dispatch=BATCH)
        driving = asyncio.ensure_future(place.engine.drive(run.id))
        name = await batches.arrived.get()
        await place.store.runs.cancel(run.id, place.clock.now())
        done = await driving
        (batch,) = await place.store.batches.of_run(run.id)
    assert batches.canceled == {name}
    assert (done.state, done.spent.reserved, done.spent.billed) == (RunState.CANCELED, 0, 4)
    assert batch.state is BatchState.COLLECTED


async def test_a_batch_that_others_still_need_is_not_canceled(tmp_path: Path) -> None:
    batches = MemoryBatches(limits=BatchLimits(requests=4, bytes=10_000))
    async with house(tmp_path, batches=batches, patience=NEVER_QUIET, puppet=echo()) as place:
        one, two = [await place.create(questions, spec=2, dispatch=BATCH) for _ in range(2)]
        drives = [asyncio.ensure_future(place.engine.drive(run.id)) for run in (one, two)]
        await batches.arrived.get()
        await place.store.runs.cancel(one.id, place.clock.now())
        assert (await drives[0]).state is RunState.CANCELED
        assert batches.canceled == set()
        batches.end()
        assert (await drives[1]).state is RunState.COMPLETED
        gone = await place.store.runs.get(one.id)
    assert [len(taken) for taken in batches.taken] == [4]
    assert gone is not None
    assert (gone.spent.reserved, gone.spent.billed) == (0, 2)  # what came for it is booked all the same


def test_polling_becomes_ever_more_seldom() -> None:
    pulse = PollDelays(Patience(), random.Random(1))
    delays = [pulse.delay() for _ in range(30)]
    assert 4.0 <= delays[0] <= 6.0
    assert max(delays) <= 360.0
    assert all(delay >= 240.0 for delay in delays[-5:])
    assert len(set(delays)) == 30
    assert pulse.delay(asked=7 * 86_400.0) <= 360.0
