"""A workload is killed at every point: what survives passes, and what does not is named with the place."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import muster
from muster.testing import FakeAgent, kill_everywhere
from tests.variants import first_of

SPEC = {"mail": ["Where is my parcel?", "the bill"]}


@muster.workload("triage of a test", version=2, oldest=2)  # known also to a run that is killed before its first step
async def triage(ctx: muster.Context, spec: Any) -> dict[str, Any]:
    async def label(i: int, text: str) -> str:
        return (await ctx.call("desk", text, key=f"mail/{day}/{i}")).text

    async def count() -> int:
        return len(spec["mail"])

    day = await ctx.step("day", lambda: str(uuid4()))  # another one in each run, and the same on resume
    await ctx.sleep("night", 24 * 60 * 60)
    labels = [one async for one in ctx.map(label, spec["mail"])]
    return {"labels": labels, "count": await ctx.step("count", count)}


@muster.workload("a child of a test")
async def parent(ctx: muster.Context, spec: Any) -> Any:
    await ctx.sleep("a moment", 0.01)
    return await ctx.child("triage", "triage of a test", spec)


@muster.workload("forgetful work of a test")
async def forgetful(ctx: muster.Context, spec: Any) -> str:
    first = (await ctx.call("desk", "first", key="first")).text
    effects = Path(spec["file"])
    effects.write_text(
        effects.read_text() + "x" if effects.exists() else "x"
    )  # in no step: whoever resumes does it again
    await ctx.call("desk", "second", key="second")
    return first + Path(spec["file"]).read_text()


@muster.workload("work of a test that does not end")
async def endless(ctx: muster.Context, spec: Any) -> None:
    await ctx.call("desk", "first", key="first")
    await asyncio.Event().wait()


def agents() -> dict[str, Any]:
    answers = {"(?i)parcel": "delivery"}
    return {"desk": FakeAgent(answers, otherwise=[muster.Overloaded("busy"), "other"], cost_usd="0.01")}


@muster.workload("work of a test whose keys differ")
async def unstable(ctx: muster.Context, spec: str) -> list[str]:
    if spec == "call":
        mail = uuid4()  # in the key, and in what is asked
        return [(await ctx.call("desk", f"parcel {mail}", key=f"mail/{mail}")).text]
    if spec == "step":
        return [await ctx.step(f"letter/{uuid4()}", lambda: "sorted")]
    names = {"Ada", "Bob", "Cyd", "Dot"}  # in another order in each process
    return sorted([await ctx.step(f"letter/{i}", partial(str, name)) for i, name in enumerate(names)])


async def not_registered(ctx: muster.Context, spec: None) -> None:
    pass


def spendthrift() -> dict[str, Any]:
    return {"desk": FakeAgent("label", cost_usd="0.01")}


@pytest.mark.parametrize("labels", first_of([["delivery"], ["delivery", "other"]]))
def test_a_workload_that_survives_is_killed_at_every_point_and_comes_to_the_same(labels: list[str]) -> None:
    report = kill_everywhere(triage, {"mail": SPEC["mail"][: len(labels)]}, agents=agents, budget_usd="1.00")

    assert report.result == {"labels": labels, "count": len(labels)}
    assert {kill.partition(":")[0] for kill in report.kills} >= {
        "run.claimed", "call.opened", "call.answered", "call.settled", "store.before_commit", "store.after_commit"
    }  # fmt: skip
    assert ("call.opened:2" in report.kills) == (len(labels) > 1)
    assert len(set(report.kills)) == len(report.kills)
    assert "signal.before_take:1" in report.kills  # in the night, of which nobody waits for the end
    assert report.uncertain > 0


@pytest.mark.chaos
def test_children_and_waits_survive_too() -> None:
    report = kill_everywhere(parent, {"mail": ["Where is my parcel?"]}, agents=spendthrift)

    assert report.result == {"labels": ["label"], "count": 1}
    assert {"signal.before_take:1", "run.claimed:2"} <= set(report.kills)


@pytest.mark.chaos
def test_an_effect_outside_of_steps_is_found_and_the_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"killed at \S+:\d+: the result is \"otherx+\", and \"otherx\" without"):
        kill_everywhere(forgetful, {"file": str(tmp_path / "effects")}, agents=agents)


@pytest.mark.chaos
def test_what_may_differ_is_checked_by_the_test(tmp_path: Path) -> None:
    seen: list[Any] = []

    def check(result: Any) -> None:
        seen.append(result)
        assert result.startswith("other")

    kill_everywhere(forgetful, {"file": str(tmp_path / "effects")}, agents=agents, check=check)
    assert len(set(seen)) > 1

    with pytest.raises(AssertionError, match="the result is refused: never"):
        kill_everywhere(
            forgetful, {"file": str(tmp_path / "effects")}, agents=agents, check=lambda result: _refuse_later(seen)
        )


def _refuse_later(seen: list[Any]) -> None:
    if seen:
        seen.clear()  # without a kill it is accepted
        return
    raise AssertionError("never")


def test_keys_that_differ_when_a_run_is_resumed_are_found() -> None:
    with pytest.raises(AssertionError, match=r"'mail/\S+' was stored and not used, and 'mail/\S+' was done instead"):
        kill_everywhere(unstable, "call", agents=spendthrift)


@pytest.mark.chaos
@pytest.mark.parametrize(("kind", "told"), [("step", "was stored and not used"), ("set", "the result is")])
def test_keys_of_steps_that_differ_are_found(kind: str, told: str) -> None:
    with pytest.raises(AssertionError, match=told):
        kill_everywhere(unstable, kind)


def test_a_run_that_does_not_end_has_failed() -> None:
    with pytest.raises(AssertionError, match="without a kill: it was not over after 1 seconds"):
        kill_everywhere(endless, None, agents=agents, seconds=1)


@pytest.mark.chaos
def test_a_budget_that_uncertain_attempts_use_up_is_a_failure() -> None:
    with pytest.raises(AssertionError, match=r"killed at call\.opened:2: run_failed: .* its budget does not"):
        kill_everywhere(triage, SPEC, agents=spendthrift, budget_usd="0.02")


def test_what_another_process_cannot_import_is_refused() -> None:
    @muster.workload("a local workload of a test")
    async def local(ctx: muster.Context, spec: Any) -> None:
        pass

    with pytest.raises(muster.BadArgument, match="top level of a module"):
        kill_everywhere(local, None)
    with pytest.raises(muster.BadArgument, match="top level of a module"):
        kill_everywhere(triage, SPEC, agents=lambda: {})
    with pytest.raises(muster.BadArgument, match="is not a workload"):
        kill_everywhere(not_registered, None)


def test_a_workload_without_an_agent_that_it_needs_says_so() -> None:
    with pytest.raises(AssertionError, match=r"without a kill: .*unknown agent"):
        kill_everywhere(triage, SPEC)
