"""A budget holds for a run and everything it is resumed as; what is not resumed has a budget of its own."""

import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

import muster
from muster.app import Muster
from muster.domain.errors import BudgetExhausted, ChildFailed, Overdraft, RunFailed
from muster.domain.run import Run, RunState
from muster.settings import Settings, load_settings
from muster.testing import FakeAgent

AGENT = """
[agents.paid]
kind = "python"
function = "tests.app.test_lineages:paid"
budget_usd = 0.10
"""

_broken: set[str] = set()


async def paid(request: muster.Request) -> Mapping[str, Any]:
    """Answer for ten cents; raises for a prompt that is broken at the moment."""
    if request.prompt in _broken:
        raise ValueError(f"{request.prompt} is broken")
    return {"text": request.prompt, "cost_usd": 0.10}


@muster.workload("test-lineage-questions")
async def questions(ctx: muster.Context, spec: Any) -> Any:
    return [(await ctx.call("paid", word, key=word)).text for word in spec["words"]]


@muster.workload("test-lineage-parent")
async def parent(ctx: muster.Context, spec: Any) -> Any:
    try:
        return await ctx.child("child", "test-lineage-questions", spec, budget_usd=spec.get("child_usd"))
    except ChildFailed:
        if spec.get("goes_on"):
            return "without it"
        raise


def settings(folder: Path, more: str = "") -> Settings:
    (folder / "muster.toml").write_text(AGENT + more)
    return load_settings(folder / "home", folder=folder, environment={})


@asynccontextmanager
async def opened(folder: Path, more: str = "") -> AsyncIterator[Muster]:
    async with muster.open(settings=settings(folder, more)) as m:
        yield m


def spec(*words: str, **more: Any) -> Any:
    return {"words": list(words), **more}


async def over(m: Muster, workload: str, spec: Any, **options: Any) -> Run:
    """Start a run and wait until it is over."""
    return await (await m.start(workload, spec, **options)).wait()


async def resumed(m: Muster, run: Run, **options: Any) -> Run:
    return await (await m.resume(run.id, **options)).wait()


WORDS = tuple("abcdefgh")


async def test_a_run_whose_child_exceeded_a_budget_of_its_own_says_so(tmp_path: Path) -> None:
    (tmp_path / "muster.toml").write_text(AGENT.replace("budget_usd = 0.10", "budget_usd = 0.01"))
    async with muster.open(settings=load_settings(tmp_path / "home", folder=tmp_path, environment={})) as m:
        run = await over(m, "test-lineage-parent", spec("a", child_usd=0.05))
    assert (run.state, run.ended_reason, run.result) == (RunState.COMPLETED, "overdraft", ["a"])
    assert "child run" in str(run.error)


@pytest.fixture(autouse=True)
def nothing_is_broken() -> None:
    _broken.clear()


async def test_a_budget_does_not_start_anew_with_a_resume(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        run = await over(m, "test-lineage-questions", spec(*WORDS), budget_usd="0.25")
        assert (run.state, run.ended_reason, run.spent.settled) == (RunState.FAILED, "budget", 200_000)
        again = await resumed(m, run)
        assert (again.state, again.ended_reason, again.spent.settled) == (RunState.FAILED, "budget", 0)
        assert (again.total.settled, again.cap) == (200_000, 250_000)
        assert "$0.20 of $0.25 is spent" in str((again.error or {})["message"])


async def test_a_budget_given_on_resume_is_the_new_total(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        run = await over(m, "test-lineage-questions", spec(*WORDS), budget_usd="0.25")
        second = await resumed(m, run, budget_usd="0.45")
        assert (second.state, second.spent.settled, second.total.settled) == (RunState.FAILED, 200_000, 400_000)
        third = await resumed(m, second, budget_usd="0.80")
        assert (third.state, third.spent.settled, third.total.settled) == (RunState.COMPLETED, 400_000, 800_000)
        first = await m.runs.get(run.id)
        assert (first.spent.settled, first.total.settled, first.cap) == (200_000, 800_000, 800_000)


async def test_a_resume_is_refused_with_the_numbers_when_nothing_is_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        run = await over(m, "test-lineage-questions", spec(*WORDS), budget_usd="0.20")
        with pytest.raises(BudgetExhausted, match=r"\$0\.20 of its budget of \$0\.20 is already spent"):
            await m.resume(run.id)
        with pytest.raises(BudgetExhausted, match=r"\$0\.20 of its budget of \$0\.15 is already spent"):
            await m.resume(run.id, budget_usd="0.15")
        assert [found.id for found in await m._backend.store.runs.roots()] == [run.id]
        assert (await m.runs.get(run.id)).cap == 200_000


async def test_a_fork_and_a_replay_have_a_budget_of_their_own(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        run = await over(m, "test-lineage-questions", spec(*WORDS), budget_usd="0.25")
        forked = await m.runs.drive(await m.runs.fork(run.id, "a")).wait()
        assert (forked.spent.settled, forked.total.settled, forked.cap) == (200_000, 200_000, 250_000)
        assert (await m.runs.get(run.id)).total.settled == 200_000
        again = await resumed(m, forked)  # of the fork, whose budget it shares
        assert (again.spent.settled, again.total.settled) == (0, 200_000)


async def test_a_run_keeps_the_day_cap_it_was_started_under(tmp_path: Path) -> None:
    async with opened(tmp_path, "[budget]\nday_usd = 0.35\n") as m:
        run = await over(m, "test-lineage-questions", spec(*WORDS))
        queued = await m.submit("test-lineage-questions", spec("x"))
        assert (run.state, run.spent.settled) == (RunState.FAILED, 300_000)
    async with opened(tmp_path) as m:  # whose settings know no day cap
        again = await resumed(m, run)
        assert (again.state, again.ended_reason, again.spent.settled) == (RunState.FAILED, "budget", 0)
        ends: list[Run] = []
        await m.worker(most=1, on_end=ends.append, on_error=lambda *_: None).serve(until_idle=True)
        assert [(end.id, end.ended_reason, end.spent.settled) for end in ends] == [(queued.id, "budget", 0)]
        fresh = await over(m, "test-lineage-questions", spec("y"))
        assert (fresh.state, fresh.spent.settled) == (RunState.COMPLETED, 100_000)


async def test_the_budget_of_a_child_holds_when_its_parent_is_resumed(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        run = await over(m, "test-lineage-parent", spec(*WORDS, child_usd="0.25"), budget_usd="5")
        assert (run.state, run.spent.settled) == (RunState.FAILED, 200_000)
        again = await resumed(m, run)
        (child,) = await m._backend.store.archive.children(again.id)
        assert (child.spent.settled, child.total.settled, child.cap) == (0, 200_000, 250_000)
        assert (again.spent.settled, again.total.settled) == (0, 200_000)
        forked = await m.runs.drive(await m.runs.fork(run.id, "child")).wait()
        assert forked.spent.settled == 200_000


async def test_deleting_the_first_run_of_a_lineage_leaves_its_budget(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        run = await over(m, "test-lineage-questions", spec("a", "b"), budget_usd="0.15")
        second = await resumed(m, run, budget_usd="0.20")
        assert second.state is RunState.COMPLETED
        await m.runs.delete([run.id])
        left = await m.runs.get(second.id)
        assert (left.spent.settled, left.total.settled, left.cap) == (100_000, 200_000, 200_000)
        await m.runs.delete([second.id])
        assert await m._backend.store.runs.balances([f"lineage:{run.id}", f"run:{run.id}"]) == {}


async def test_an_imported_run_is_resumed_under_what_its_lineage_has_spent(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    async with opened(here) as m:
        run = await over(m, "test-lineage-questions", spec(*WORDS), budget_usd="0.25")
        second = await resumed(m, run, budget_usd="0.45")
        await m.runs.export(second.id, tmp_path / "run.jsonl")
    async with opened(there) as m:
        found = await m.runs.import_(tmp_path / "run.jsonl")
        assert (found.id, (await m.runs.get(found.id)).total.settled) == (second.id, 400_000)
        again = await resumed(m, found)
        assert (again.state, again.ended_reason, again.spent.settled) == (RunState.FAILED, "budget", 0)
        done = await resumed(m, again, budget_usd="0.80")
        assert (done.state, done.total.settled) == (RunState.COMPLETED, 800_000)


async def test_a_run_that_stands_still_goes_on_with_what_is_left(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        queued = await m.submit("test-lineage-questions", spec(*WORDS), budget_usd="5")
        prepared = await m.runs.prepare_resume(queued.id, budget_usd="0.25")
        assert prepared.id == queued.id
        run = await m.runs.drive(prepared).wait()
        assert (run.spent.settled, run.cap) == (200_000, 250_000)


async def test_a_failed_call_is_tried_again_within_the_same_budget(tmp_path: Path) -> None:
    _broken.add("c")
    async with opened(tmp_path) as m:
        handle = await m.start("test-lineage-questions", spec("a", "b", "c", "d"), budget_usd="0.55")
        with pytest.raises(RunFailed):
            await handle.result()
        _broken.clear()
        again = await resumed(m, await handle.run())
        # What the broken call reserved is uncertain, and counts.
        assert (again.state, again.spent.billed, again.total.settled) == (RunState.COMPLETED, 200_000, 500_000)


async def test_a_run_of_an_older_store_keeps_its_budget_when_it_is_resumed(tmp_path: Path) -> None:
    async with opened(tmp_path) as m:
        run = await over(m, "test-lineage-parent", spec(*WORDS), budget_usd="0.25")
    with closing(sqlite3.connect(tmp_path / "home" / "muster.db")) as raw, raw:  # as it was before runs had lineages
        raw.execute("UPDATE budgets SET cap = 250000 WHERE id = ?", (f"run:{run.id}",))
        raw.execute("DELETE FROM budgets WHERE id LIKE 'lineage:%'")
        raw.execute("UPDATE runs SET lineage = NULL, levels = NULL")
    async with opened(tmp_path) as m:
        old = await m.runs.get(run.id)
        assert (old.cap, old.spent.settled, old.total.settled) == (250_000, 200_000, 200_000)
        again = await resumed(m, run)
        assert (again.state, again.spent.settled) == (RunState.FAILED, 0)
        assert "$0.20 of $0.25 is spent" in str((again.error or {})["message"])
        done = await resumed(m, run, budget_usd="0.80")
        assert (done.state, done.spent.settled, done.total.settled) == (RunState.COMPLETED, 600_000, 800_000)


async def test_an_answer_over_the_budget_is_kept_and_the_run_says_so(tmp_path: Path) -> None:
    more = '[agents.dear]\nkind = "python"\nfunction = "tests.app.test_lineages:dear"\n'
    async with opened(tmp_path, more) as m:
        with pytest.raises(Overdraft):
            await m.ask("dear", "hello", budget_usd=1)
        run = await m.runs.find("last")
        assert (run.state, run.ended_reason, run.result["text"]) == (RunState.COMPLETED, "overdraft", "dear")
        outer = await over(m, "test-lineage-dear", None, budget_usd=1)
        assert (outer.state, outer.ended_reason, outer.result) == (RunState.COMPLETED, "overdraft", "without it")


async def dear(request: muster.Request) -> Mapping[str, Any]:
    """Answer for seven and a half dollars."""
    return {"text": "dear", "cost_usd": 7.5}


@muster.workload("test-lineage-dear")
async def asks_dear(ctx: muster.Context, spec: Any) -> Any:
    if spec == "child":
        return [(await ctx.call("dear", word, key=word)).text for word in "ab"]
    try:
        return await ctx.child("child", "test-lineage-dear", "child")
    except ChildFailed:
        return "without it"


_payments: list[str] = []


async def pay() -> str:
    """Pay."""
    _payments.append(muster.idempotency_key())
    if len(_payments) == 1:
        raise OSError("the connection broke")
    return "ok"


@muster.workload("test-lineage-payment")
async def payment(ctx: muster.Context, spec: None) -> str:
    return (await ctx.tools("clerk", "Pay", tools=[pay], key="pay")).text


async def test_a_tool_that_runs_again_in_a_lineage_has_the_same_idempotency_key_and_in_a_fork_another(
    tmp_path: Path,
) -> None:
    clerk = FakeAgent([{"tool_calls": [{"id": "1", "name": "pay", "arguments": {}}]}, "paid"])
    async with muster.open(tmp_path, agents={"clerk": clerk}) as m:
        run = await m.start(payment, None, name="payment")
        assert (await run.wait()).state is RunState.FAILED
        assert await (await m.resume(run.id)).result() == "paid"
        fork = await m.runs.fork("payment", "pay/001/tool/1/pay")
        assert await m.runs.drive(fork).result() == "paid"
    first, again, other = _payments
    assert first == again != other
    assert len(first) == 64
    assert first.isalnum()
