"""An answer that is sent again under the same client id is the same answer, whatever has become of the run since."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from muster.app import Muster, open_muster
from muster.app.runs.questions import AnswerOutcome, send_answer
from muster.domain.entry import SentAnswer
from muster.domain.errors import Conflict
from muster.domain.ids import RunId
from muster.domain.run import RunState
from muster.engine.context import Context
from muster.engine.workload import REGISTRY
from muster.settings import load_settings
from muster.store.base import Store

SETTINGS = '[agents.me]\nkind = "human"\n'
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
ANSWER = '{"n": 3}'


@REGISTRY.workload("test-asks-once")
async def asks_once(ctx: Context, spec: Any) -> Any:
    await ctx.call("me", "how many?", key="count", schema=SCHEMA)
    if spec["then"] == "waits":
        await ctx.receive("more", "more")
    if spec["then"] == "fails":
        raise ValueError("it was not enough")
    return "enough"


@REGISTRY.workload("test-asks-below")
async def asks_below(ctx: Context, spec: Any) -> Any:
    return await ctx.child("child", "test-asks-once", spec)


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Muster]:
    (folder / "muster.toml").write_text(SETTINGS, encoding="utf-8")
    async with open_muster(settings=load_settings(folder=folder, environment={})) as m:
        yield m


async def drive(m: Muster, run: RunId) -> None:
    await m.worker().serve(until_idle=True)


async def cancel(m: Muster, run: RunId) -> None:
    await m.runs.cancel(run)


async def cancel_and_resume(m: Muster, run: RunId) -> None:
    await m.runs.cancel(run)
    await m.prepare_resume(run)


async def cancel_and_go_on(m: Muster, run: RunId) -> None:
    await m.runs.cancel(run)
    await m.runs.queue((await m.prepare_resume(run, here=False)).id)
    await m.worker().serve(until_idle=True)


async def fork(m: Muster, run: RunId) -> None:
    await drive(m, run)
    await m.runs.fork(run, "count" if (await m.runs.get(run)).workload == "test-asks-once" else "child")


async def nothing(m: Muster, run: RunId) -> None:
    """Leave it as it is."""


# What happens after the answer, what the run does with it, and the state in which the answer is sent again.
MOMENTS: dict[str, tuple[Callable[[Muster, RunId], Awaitable[None]], str, RunState]] = {
    "nobody has taken it": (nothing, "ends", RunState.QUEUED),
    "the run goes on and waits": (drive, "waits", RunState.WAITING),
    "completed": (drive, "ends", RunState.COMPLETED),
    "failed": (drive, "fails", RunState.FAILED),
    "canceled before it was taken": (cancel, "ends", RunState.CANCELED),
    "resumed as another run": (cancel_and_resume, "ends", RunState.CANCELED),
    "completed as another run": (cancel_and_go_on, "ends", RunState.CANCELED),
    "forked": (fork, "ends", RunState.COMPLETED),
}


async def asked(m: Muster, workload: str, then: str) -> RunId:
    """Return a run that waits for a person, without a process."""
    submitted = await m.submit(workload, {"then": then})
    await m.worker().serve(until_idle=True)
    assert (await submitted.run()).state is RunState.WAITING
    return submitted.id


async def send(m: Muster, run: RunId, key: str | None) -> AnswerOutcome:
    return await m.runs.answer(run, ANSWER, key=key, client_id="phone/1")


@pytest.mark.parametrize("key", ["count", None])
@pytest.mark.parametrize("workload", ["test-asks-once", "test-asks-below"])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_it_is_the_same_answer_at_every_moment(
    tmp_path: Path, moment: str, workload: str, key: str | None
) -> None:
    then, spec, state = MOMENTS[moment]
    async with opened(tmp_path) as m:
        run = await asked(m, workload, spec)
        first = await send(m, run, key)
        await then(m, run)
        assert (await m.runs.get(run)).state is state
        again = await send(m, run, key)
        assert again.sent == first.sent
        with pytest.raises(Conflict, match="used for another signal"):
            await m.runs.answer(run, '{"n": 4}', key=key, client_id="phone/1")


@pytest.mark.parametrize("key", ["count", None])
async def test_many_that_send_it_at_once_answer_once(tmp_path: Path, key: str | None) -> None:
    async with opened(tmp_path) as m:
        run = await asked(m, "test-asks-below", "ends")
        worker = m.worker()
        driving = asyncio.ensure_future(worker.serve())
        outcomes = [one for _ in range(20) for one in await asyncio.gather(*(send(m, run, key) for _ in range(5)))]
        assert all(outcome.sent == outcomes[0].sent for outcome in outcomes)
        worker.close()
        await driving


class AnsweredMeanwhile:
    """The questions of a store; right after an answer was not found, another request stores it."""

    def __init__(self, store: Store, answer: Callable[[], Awaitable[object]]) -> None:
        self._questions, self._answer = store.questions, answer
        self._answered = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._questions, name)

    async def sent(self, run: RunId, client_id: str) -> SentAnswer | None:
        found = await self._questions.sent(run, client_id)
        if not self._answered:
            self._answered = True
            await self._answer()
        return found


class StoreBetween:
    """A store with other questions."""

    def __init__(self, store: Store, questions: AnsweredMeanwhile) -> None:
        self._store, self.questions = store, questions

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


@pytest.mark.parametrize("key", ["count", None])
async def test_the_same_answer_that_is_stored_while_it_is_looked_for_is_found(tmp_path: Path, key: str | None) -> None:
    async with opened(tmp_path) as m:
        run = await asked(m, "test-asks-below", "ends")
        store: Store = m.runs._store
        between: Any = StoreBetween(store, AnsweredMeanwhile(store, lambda: send(m, run, key)))
        sent = await send_answer(
            between, await m.runs.get(run), ANSWER, key=key, sender="", client_id="phone/1", at=m.clock.now()
        )
        assert sent == (await send(m, run, key)).sent
