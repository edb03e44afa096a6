"""A lineage has one end: whoever resumes a run, however often and from where, goes on with the same piece of work."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.app import Muster
from muster.app.serving.jobs import JobIntake
from muster.app.views.runs import run_view
from muster.domain.errors import Conflict, MusterError
from muster.domain.run import Run, RunState
from muster.engine.queue.base import QueuedJob
from muster.settings import load_settings

SETTINGS = """
[agents.paid]
kind = "python"
function = "tests.app.test_continuations:paid"
budget_usd = 0.10
"""
WORDS = tuple("abcde")

_broken: set[str] = set()
_paid: Counter[str] = Counter()


async def paid(request: muster.Request) -> Mapping[str, Any]:
    """Answer for ten cents; refuses, for nothing, what is broken at the moment."""
    await asyncio.sleep(0)
    if request.prompt in _broken:
        return {"error": f"{request.prompt} is broken", "cost_usd": 0}
    _paid[request.prompt] += 1
    return {"text": request.prompt, "cost_usd": 0.10}


@muster.workload("test-continuations")
async def questions(ctx: muster.Context, spec: Any) -> Any:
    return [(await ctx.call("paid", word, key=word)).text for word in spec["words"]]


@muster.workload("test-continued-parent")
async def parent(ctx: muster.Context, spec: Any) -> Any:
    return await ctx.child("child", "test-continuations", spec)


@muster.workload("test-continued-twice")
async def child_and_call(ctx: muster.Context, spec: Any) -> Any:
    done = await ctx.child("child", "test-continuations", {"words": ["a", "b"]})
    return [done, (await ctx.call("paid", "e", key="e")).text]


@muster.workload("test-continued-question")
async def asks_a_person(ctx: muster.Context, spec: Any) -> Any:
    first = (await ctx.call("paid", "a", key="a")).text
    signal = await ctx.receive("go", "go")
    return [first, signal and signal.payload]


@pytest.fixture(autouse=True)
def nothing_is_broken() -> None:
    _broken.clear()
    _paid.clear()


@asynccontextmanager
async def opened(folder: Path, *, several: int = 1) -> AsyncIterator[list[Muster]]:
    """Open a store as several programs would."""
    folder.mkdir(exist_ok=True)
    (folder / "muster.toml").write_text(SETTINGS)
    settings = load_settings(folder / "home", folder=folder, environment={})
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(muster.open(settings=settings)) for _ in range(several)]


async def failed(m: Muster, workload: str = "test-continuations", **options: Any) -> Run:
    """Start a run that fails after its first call."""
    _broken.update(WORDS[1:])
    run = await (await m.start(workload, {"words": list(WORDS)}, **options)).wait()
    assert (run.state, run.calls.done) in ((RunState.FAILED, 1), (RunState.FAILED, 0))
    _broken.clear()
    return run


async def resumed(m: Muster, run: str, **options: Any) -> Run | MusterError:
    try:
        return await (await m.resume(run, **options)).wait()
    except MusterError as error:
        return error


async def test_a_failed_run_that_is_resumed_by_many_at_once_is_paid_for_once(tmp_path: Path) -> None:
    async with opened(tmp_path, several=4) as programs:
        run = await failed(programs[0])
        ends = await asyncio.gather(*(resumed(m, run.id) for m in programs for _ in range(2)))
        again = await resumed(programs[0], run.id)
        runs = await programs[0].runs.list()
    completed = [one for one in ends if isinstance(one, Run)]
    assert completed
    assert {(one.id, one.state) for one in completed} == {(completed[0].id, RunState.COMPLETED)}
    refused = [one for one in ends if isinstance(one, MusterError)]
    assert all("is being executed" in one.message or "is being started" in one.message for one in refused)
    assert isinstance(again, Run)
    assert (again.id, again.result) == (completed[0].id, list(WORDS))
    assert {one.id for one in runs} == {run.id, again.id}
    assert _paid == Counter(WORDS)


async def test_a_canceled_run_is_continued_once(tmp_path: Path) -> None:
    async with opened(tmp_path, several=2) as (one, other):
        queued = await one.submit("test-continuations", {"words": list(WORDS)})
        canceled = await one.runs.cancel(queued.id)
        assert canceled.state is RunState.CANCELED
        ends = [await resumed(m, queued.id) for m in (one, other, one)]
    assert len({end.id for end in ends if isinstance(end, Run)}) == 1
    assert _paid == Counter(WORDS)


async def test_totals_of_several_resumes_do_not_overwrite_each_other(tmp_path: Path) -> None:
    async with opened(tmp_path, several=3) as programs:
        run = await (await programs[0].start("test-continuations", {"words": list(WORDS)}, budget_usd=0.10)).wait()
        assert (run.ended_reason, run.calls.done) == ("budget", 1)
        totals = ("0.50", "0.60", "0.70")
        ends = await asyncio.gather(
            *(resumed(m, run.id, budget_usd=total) for m, total in zip(programs, totals, strict=True))
        )
        (done,) = {end.id: end for end in ends if isinstance(end, Run)}.values()
        cap = (await programs[0].runs.get(run.id)).cap
    assert (done.state, done.total.settled) == (RunState.COMPLETED, 500_000)
    assert cap == done.cap
    assert _paid == Counter(WORDS)


async def test_of_several_totals_for_a_run_that_stands_still_one_holds(tmp_path: Path) -> None:
    async with opened(tmp_path, several=3) as programs:
        queued = await programs[0].submit("test-continuations", {"words": list(WORDS)}, budget_usd=0.20)
        totals = (0.50, 0.60, 0.70)
        asked = [m.submit_resume(queued.id, budget_usd=total) for m, total in zip(programs, totals, strict=True)]
        answered = await asyncio.gather(*asked, return_exceptions=True)
        (given,) = [one.cap for one in answered if isinstance(one, Run)]
        refused = [one for one in answered if isinstance(one, MusterError)]
        assert [one.message for one in refused] == [
            f"run {queued.id} was given a budget of ${(given or 0) / 1e6:.2f} meanwhile"
        ] * 2
        assert (await programs[0].runs.get(queued.id)).cap == given


async def test_another_total_for_a_run_that_is_driven_is_refused(tmp_path: Path) -> None:
    async with opened(tmp_path, several=2) as (one, other):
        handle = await one.start("test-continued-question", {}, budget_usd=0.5)
        async for event in handle.events():
            if event.kind == "call.done":
                break
        shown = await other.submit_resume(handle.id)
        assert (shown.id, shown.is_driven) == (handle.id, True)
        assert (await other.submit_resume(handle.id, budget_usd=0.5)).id == handle.id
        with pytest.raises(Conflict, match=r"is being executed with a budget of \$0\.50"):
            await other.submit_resume(handle.id, budget_usd=0.9)
        with pytest.raises(Conflict, match=r"is being executed by process \d+"):
            await other.resume(handle.id)
        assert (await one.runs.get(handle.id)).cap == 500_000
        await other.runs.send(handle.id, "go", "on")
        assert await handle.result() == ["a", "on"]


async def test_the_same_total_at_once_is_never_a_conflict(tmp_path: Path) -> None:
    """Whoever asks for the total that a run has, while others take it up and complete it, is given the run."""
    async with opened(tmp_path, several=3) as programs:
        queued = await programs[0].submit("test-continuations", {"words": ["a"]}, budget_usd=0.50)
        serving = asyncio.ensure_future(programs[0].worker().serve(until_idle=True))
        states: set[RunState] = set()
        while RunState.COMPLETED not in states:
            asked = [m.submit_resume(queued.id, budget_usd=0.50) for m in programs for _ in range(3)]
            states = {run.state for run in await asyncio.gather(*asked)}
        await serving
    assert _paid == {"a": 1}


async def test_whoever_lost_a_race_for_a_run_does_not_make_its_driver_look_dead(tmp_path: Path) -> None:
    async with opened(tmp_path, several=3) as programs:
        queued = await programs[0].submit("test-continued-question", {})
        handles = await asyncio.gather(*(m.resume(queued.id) for m in programs))
        waits = [asyncio.ensure_future(handle.wait()) for handle in handles]
        while sum(wait.done() for wait in waits) < 2:
            await asyncio.wait([wait for wait in waits if not wait.done()], return_when=asyncio.FIRST_COMPLETED)
        assert all(isinstance(wait.exception(), Conflict) for wait in waits if wait.done())
        for m in programs:
            with pytest.raises(Conflict, match=r"is being executed by process \d+"):
                await m.resume(queued.id)
        await programs[0].runs.send(queued.id, "go", "on")
        assert [(await wait).result for wait in waits if not wait.done()] == [["a", "on"]]
    assert _paid == {"a": 1}


async def test_a_resume_goes_to_the_end_of_the_lineage_from_anywhere_in_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (m,):
        first = await failed(m)
        _broken.add("d")
        second = await resumed(m, first.id)
        assert isinstance(second, Run)
        assert (second.state, second.calls.done) == (RunState.FAILED, 3)
        _broken.clear()
        third = await resumed(m, first.id)  # and not from the first one again
        assert isinstance(third, Run)
        assert (third.state, third.origin and third.origin.run) == (RunState.COMPLETED, second.id)
        for run in (first, second, third):
            assert await (await m.resume(run.id)).result() == list(WORDS)
            assert (await m.submit_resume(run.id)).id == third.id
        links = [run_view(await m.runs.get(run.id)).continued_by for run in (first, second, third)]
        assert links == [second.id, third.id, None]
    assert _paid == Counter(WORDS)


async def test_a_run_that_is_queued_for_workers_is_continued_once(tmp_path: Path) -> None:
    async with opened(tmp_path, several=2) as (one, other):
        run = await failed(one)
        queued = await asyncio.gather(*(m.submit_resume(run.id) for m in (one, other, one, other)))
        assert len({each.id for each in queued}) == 1
        assert {each.state for each in queued} == {RunState.QUEUED}
        here = await resumed(other, run.id)  # it stands still, so this process drives it
        assert isinstance(here, Run)
        assert (here.id, here.state) == (queued[0].id, RunState.COMPLETED)
    assert _paid == Counter(WORDS)


async def test_a_child_is_continued_only_through_its_root(tmp_path: Path) -> None:
    async with opened(tmp_path) as (m,):
        run = await failed(m, "test-continued-parent")
        (child,) = await m._backend.store.archive.children(run.id)
        with pytest.raises(Conflict, match=f"run {child.id} is a child of run {run.id}") as refused:
            await m.resume(child.id)
        assert refused.value.suggestions == (f"muster runs resume {run.id}",)
        again = await resumed(m, run.id)
        assert isinstance(again, Run)
        assert (again.state, again.result) == (RunState.COMPLETED, list(WORDS))
        (continued,) = await m._backend.store.archive.children(again.id)
        assert (await m.runs.get(child.id)).continued_by == continued.id
    assert _paid == Counter(WORDS)


async def test_a_run_goes_on_although_what_its_child_completed_as_was_deleted(tmp_path: Path) -> None:
    async with opened(tmp_path) as (m,):
        first = await failed(m, "test-continued-twice")
        _broken.add("e")
        second = await resumed(m, first.id)
        assert isinstance(second, Run)
        (child,) = await m._backend.store.archive.children(second.id)
        assert (second.state, child.state) == (RunState.FAILED, RunState.COMPLETED)
        _broken.clear()
        for gone in (second.id, child.id):
            await m.runs.delete([gone])
        third = await resumed(m, first.id)
    assert isinstance(third, Run)
    assert (third.state, third.result) == (RunState.COMPLETED, [["a", "b"], "e"])
    assert _paid == Counter({"a": 1, "b": 2, "e": 1})  # one reply was deleted with the child


async def test_what_completed_and_was_deleted_is_not_done_again(tmp_path: Path) -> None:
    async with opened(tmp_path) as (m,):
        run = await failed(m)
        done = await resumed(m, run.id)
        assert isinstance(done, Run)
        await m.runs.delete([done.id])
        with pytest.raises(Conflict, match=f"run {run.id} completed as run {done.id}, which was deleted"):
            await m.resume(run.id)
        forked = await m.runs.fork(run.id, "b")  # a new story
        assert (await m.runs.drive(forked).wait()).state is RunState.COMPLETED
    assert _paid == Counter(WORDS) + Counter(WORDS[1:])


async def test_a_job_that_is_added_again_under_its_id_has_all_its_attempts(tmp_path: Path) -> None:
    async with opened(tmp_path) as (m,):
        intake, ends = JobIntake(m), list[Run]()
        data = {"start": "question", "agent": "paid", "prompt": "a"}
        later = 1000 * int(time.time() + 1000)
        _broken.add("a")
        for added_at, failures in ((0, 0), (0, 1), (later, 0), (later, 1)):
            job = QueuedJob(id="j1", queue="runs", data=data, added_at=added_at, failures=failures)
            made = await intake.accept(job)
            assert made.state is RunState.QUEUED
            await m.worker().serve(until_idle=True)
            ends.append(await m.runs.get(made.id))
            assert ends[-1].state is RunState.FAILED
    assert len({end.id for end in ends}) == 4


async def test_two_stores_stay_two(tmp_path: Path) -> None:
    """A run that was continued here can be continued elsewhere; brought together, the older completed one counts."""
    async with opened(tmp_path / "here") as (here,):
        run = await failed(here)
        await here.runs.export(run.id, tmp_path / "failed.jsonl")
        done = await resumed(here, run.id)
        assert isinstance(done, Run)
        await here.runs.export(done.id, tmp_path / "done.jsonl")
    async with opened(tmp_path / "elsewhere") as (elsewhere,):
        await elsewhere.runs.import_(tmp_path / "failed.jsonl")
        queued = await elsewhere.submit_resume(run.id)
        await elsewhere.runs.import_(tmp_path / "done.jsonl")
        async with asyncio.timeout(20):
            await elsewhere.worker().serve(until_idle=True)
        left = await elsewhere.runs.get(queued.id)
        assert (left.state, left.continued_by, left.calls.total) == (RunState.INTERRUPTED, done.id, 0)
        assert (await elsewhere.submit_resume(queued.id)).id == done.id
    async with opened(tmp_path / "there") as (there,):
        imported = await there.runs.import_(tmp_path / "failed.jsonl")
        assert (imported.id, (await there.runs.get(run.id)).continued_by) == (run.id, None)
        other = await resumed(there, run.id)
        assert isinstance(other, Run)
        assert other.state is RunState.COMPLETED
        await there.runs.import_(tmp_path / "done.jsonl")
        assert (await there.runs.get(run.id)).continued_by == done.id
        assert await (await there.resume(run.id)).result() == list(WORDS)
