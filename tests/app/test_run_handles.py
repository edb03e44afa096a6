"""A run in the hand of a Python program: followed from the moment that it is resumed, listened to, driven once."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.domain.errors import BadArgument, Conflict
from muster.domain.run import RunState
from muster.settings import Settings, load_settings


@muster.workload("test-approval")
async def approval(ctx: muster.Context, spec: Any) -> Any:
    first = await ctx.call("sim/echo", "before", key="before")
    signal = await ctx.receive("approved", "approval")
    last = await ctx.call("sim/echo", "after", key="after")
    return [first.text, None if signal is None else signal.payload, last.text]


@muster.workload("test-stream")
async def stream(ctx: muster.Context, spec: Any) -> Any:
    return (await ctx.call("sim/echo", "one two three", key="only", stream=True)).text


def settings(folder: Path) -> Settings:
    return load_settings(folder / "home", folder=folder, environment={})


async def waits_for_approval(run: muster.RunHandle) -> None:
    async for event in run.events():
        if event.kind == "call.done":
            return


async def test_the_events_of_an_interrupted_run_that_is_resumed_go_on_to_its_end(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        await waits_for_approval(await m.start("test-approval", None, name="slow"))
    async with muster.open(settings=settings(tmp_path)) as m:
        interrupted = await m.runs.find("slow")
        assert interrupted.state is RunState.INTERRUPTED
        await m.runs.send("slow", "approval", "yes")
        again = await m.resume("slow")
        kinds = [event.kind async for event in again.events(interrupted.last_seq)]
        assert kinds[-1] == "run.completed"
        assert await again.result() == ["before", "yes", "after"]


async def test_the_events_of_a_waiting_run_that_is_resumed_go_on_to_its_end(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        left = await (await m.start("test-approval", None, name="left", detach=True)).wait()
        assert left.state is RunState.WAITING
        again = await m.resume("left")
        kinds: list[str] = []
        async for event in again.events(left.last_seq):
            if not kinds:
                await m.runs.send("left", "approval", "yes")
            kinds.append(event.kind)
        assert kinds[-1] == "run.completed"


async def test_the_events_of_a_resumed_run_end_when_it_is_let_go_of_again(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        left = await (await m.start("test-approval", None, detach=True)).wait()
        again = m.runs.drive(left, detach=True)
        async for _ in again.events(left.last_seq):
            pass
        assert (await again.run()).state is RunState.WAITING
        assert (await again.wait()).lease.driver is None


async def test_a_listener_that_raises_is_dropped_and_the_reply_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[str] = []

    def listen(key: str, delta: str) -> None:
        heard.append(delta)
        raise ValueError("the progress bar is broken")

    async with muster.open(settings=settings(tmp_path)) as m:
        with caplog.at_level(logging.ERROR, logger="muster"):
            run = await m.start("test-stream", None, on_delta=listen)
            assert await run.result() == "one two three"
        assert (await run.run()).calls.failed == 0
    assert len(heard) == 1
    assert [record.message for record in caplog.records] == [
        f"the listener of the deltas of run {run.id} raised ValueError and is not called again"
    ]


async def test_a_listener_that_looks_at_a_canceled_future_does_not_cancel_the_call(tmp_path: Path) -> None:
    canceled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    canceled.cancel()

    def listen(key: str, delta: str) -> None:
        canceled.result()

    async def listen_later(key: str, delta: str) -> None:
        raise AssertionError

    async with muster.open(settings=settings(tmp_path)) as m:
        for listener in (listen, listen_later):
            run = await m.start("test-stream", None, on_delta=listener)  # type: ignore[arg-type]
            assert await run.result() == "one two three"
            assert (await run.run()).calls.uncertain == 0


async def test_a_run_that_was_just_started_here_is_not_resumed_beside_itself(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.start("test-stream", None)
        with pytest.raises(Conflict, match=f"run {run.id} is being started by this process"):
            await m.resume(run.id)
        assert await run.result() == "one two three"


async def test_a_run_that_is_being_resumed_here_is_not_resumed_a_second_time(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:
        left = await (await m.start("test-approval", None, detach=True)).wait()
        await m.resume(left.id)
        with pytest.raises(Conflict, match="is being started by this process"):
            await m.resume(left.id)


async def test_another_event_loop_is_refused_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with muster.open(settings=settings(tmp_path)) as m:

        def elsewhere(work: Any) -> BaseException | None:
            async def one() -> None:
                await asyncio.wait_for(work(), 30)

            try:
                asyncio.run(one())
            except Exception as error:
                return error
            return None

        for work in (
            lambda: m.start("test-stream", None),
            lambda: m.submit("test-stream", None),
            lambda: m.ask("sim/echo", "hello"),
            lambda: m.runs.list(),
            lambda: m.resume("last"),
        ):
            error = await asyncio.to_thread(elsewhere, work)
            assert isinstance(error, BadArgument), error
            assert "event loop" in error.message
        assert await m.runs.list() == []
        assert await (await m.start("test-stream", None)).result() == "one two three"


async def test_the_handle_of_a_submitted_run_follows_it_from_worker_to_worker_to_its_end(tmp_path: Path) -> None:
    begun, goes_on = asyncio.Event(), asyncio.Event()

    @muster.workload("test-two-workers")
    async def held(ctx: muster.Context, spec: None) -> str:
        begun.set()
        await goes_on.wait()
        signal = await ctx.receive("approved", "approval")
        return "" if signal is None else str(signal.payload)

    async with muster.open(settings=settings(tmp_path)) as m:
        run = await m.submit(held, None)
        result = asyncio.ensure_future(run.result())
        async with muster.open(settings=settings(tmp_path)) as first:
            worker = asyncio.ensure_future(first.worker().serve())
            await begun.wait()
            worker.cancel()
            await asyncio.wait({worker})
        assert ((await run.run()).state, result.done()) == (RunState.INTERRUPTED, False)
        goes_on.set()
        await m.worker().serve(until_idle=True)
        assert ((await run.run()).state, result.done()) == (RunState.WAITING, False)
        await m.runs.send(run.id, "approval", "yes")
        await m.worker().serve(until_idle=True)
        assert await result == "yes"
