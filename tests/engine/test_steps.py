"""Steps: done once, given back as the type that their function returns, in threads, and tried again."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TypedDict

import pytest
from msgspec import Struct
from pydantic import BaseModel

from muster.domain.canonical import Json
from muster.domain.errors import (
    BadArgument,
    BadExit,
    BadOutput,
    ChildFailed,
    InvalidRequest,
    KeyReused,
    LimitReached,
    MusterError,
    ProviderFault,
    RetriesExhausted,
    TimedOut,
    Undecodable,
)
from muster.domain.run import Origin, Reuse, RunState
from muster.engine.calls.retry import RetryPolicy
from muster.engine.context import Context
from muster.engine.steps import step
from muster.testing.clock import FakeClock
from tests.engine.house import failing, house


@dataclass(frozen=True)
class Ticket:
    """A value of a program's own."""

    id: int
    labels: tuple[str, ...] = ()


class Draft(BaseModel):
    """A value of pydantic."""

    text: str
    score: float = 0.0


class Label(StrEnum):
    """A text with few values."""

    LATE = "late"


class Row(TypedDict):
    """A mapping with known keys."""

    id: int


class Note(BaseModel):
    """Another value of pydantic."""

    text: str


class Mark(Struct):
    """A value of msgspec."""

    number: int


async def test_a_value_comes_back_as_its_type_at_once_and_on_resume(tmp_path: Path) -> None:
    made: list[str] = []

    async def ticket() -> Ticket:
        made.append("ticket")
        return Ticket(id=7, labels=("a", "b"))

    def draft() -> Draft:
        made.append("draft")
        return Draft(text="hello")

    async def rows() -> list[Row]:
        made.append("rows")
        return [{"id": 1}]

    async def drafts() -> dict[int, Draft]:
        made.append("drafts")
        return {1: Draft(text="one", score=0.5)}

    def untyped() -> Any:
        made.append("untyped")
        return {1: (2.5, Label.LATE)}

    attempts = 0

    async def uses(ctx: Context, spec: Any) -> Json:
        nonlocal attempts
        attempts += 1
        assert await ctx.step("ticket", ticket) == Ticket(id=7, labels=("a", "b"))
        assert await ctx.step("draft", draft) == Draft(text="hello")
        assert await ctx.step("rows", rows) == [{"id": 1}]
        assert await ctx.step("drafts", drafts) == {1: Draft(text="one", score=0.5)}
        assert await ctx.step("untyped", untyped) == {"1": [2.5, "late"]}  # as JSON has it, at once
        if attempts == 1:
            raise ValueError("stopped")
        return "done"

    async with house(tmp_path) as h:
        run = await h.create(uses)
        await h.engine.drive(run.id)
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLIES))
        assert (await h.engine.drive(again.id)).result == "done"
        assert made == ["ticket", "draft", "rows", "drafts", "untyped"]


@dataclass(frozen=True)
class Parcel:
    """A dataclass with a field that stands in the class only, where no instance has a place for it."""

    number: int
    kind: str = field(default="parcel", init=False)
    tickets: list[Ticket] = field(default_factory=list)


async def test_what_is_stored_of_a_dataclass_has_all_of_its_fields(tmp_path: Path) -> None:
    def find() -> list[Parcel]:
        return [Parcel(1, tickets=[Ticket(id=7)])]

    async def uses(ctx: Context, spec: Any) -> Json:
        assert await ctx.step("find", find) == find()
        return await ctx.recall("find")

    async with house(tmp_path) as h:
        run = await h.drive(uses)
        assert run.result == [{"number": 1, "kind": "parcel", "tickets": [{"id": 7, "labels": []}]}]


@pytest.mark.parametrize(
    ("value", "wrong"), [(Ticket(id=1), "annotate the function"), (object(), "JSON"), ({1, 2}, "JSON")]
)
async def test_what_could_not_be_read_again_is_refused(tmp_path: Path, value: Any, wrong: str) -> None:
    async def uses(ctx: Context, spec: Any) -> Json:
        with pytest.raises(BadArgument) as raised:
            await ctx.step("value", lambda: value)
        return f"{raised.value.message} {' '.join(map(str, raised.value.suggestions))}"

    async with house(tmp_path) as h:
        told = (await h.drive(uses)).result
        assert "step 'value'" in told
        assert wrong in told


@pytest.mark.parametrize(
    ("kind", "value"), [(Ticket, {"id": "seven"}), (int, "7"), (str, 7), (dict, [7]), (list, {"7": 7}), (None, 7)]
)
async def test_a_value_of_another_type_than_was_promised_is_refused(tmp_path: Path, kind: Any, value: Any) -> None:
    def lies() -> Any:
        return value

    lies.__annotations__["return"] = kind

    async def uses(ctx: Context, spec: Any) -> Json:
        with pytest.raises(BadArgument, match=f"the value of step 'lie' is not a {getattr(kind, '__name__', kind)}"):
            await ctx.step("lie", lies)
        return "refused"

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == "refused"


@dataclass(frozen=True)
class Closed:
    """A value with the same fields as a Ticket."""

    id: int
    labels: tuple[str, ...] = ()


class Open:
    """Nothing that JSON could hold."""


async def test_a_value_may_be_of_several_types(tmp_path: Path) -> None:
    def either() -> list[Ticket | Note | None]:
        return [Note(text="a"), Ticket(id=1), None]

    async def uses(ctx: Context, spec: Any) -> Json:
        assert await ctx.step("either", either) == either()
        return "read"

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == "read"


async def test_a_value_that_would_be_read_as_another_type_is_refused(tmp_path: Path) -> None:
    def either() -> list[Ticket | Closed]:
        return [Closed(id=1)]

    async def uses(ctx: Context, spec: Any) -> Json:
        with pytest.raises(BadArgument, match="a Closed that would be read again as a Ticket") as raised:
            await ctx.step("either", either)
        return raised.value.suggestions[0]

    async with house(tmp_path) as h:
        assert "Literal" in str((await h.drive(uses)).result)


@pytest.mark.parametrize("kind", [Open, list[Open], Mark | Ticket])
async def test_a_type_that_cannot_be_stored_is_refused_before_the_step_is_done(tmp_path: Path, kind: Any) -> None:
    done: list[str] = []

    def promises() -> Any:
        done.append("done")

    promises.__annotations__["return"] = kind

    async def uses(ctx: Context, spec: Any) -> Json:
        with pytest.raises(BadArgument, match="the value of step 'k' cannot be stored"):
            await ctx.step("k", promises)
        return "refused"

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == "refused"
        assert done == []


async def test_functions_that_are_not_async_leave_the_loop_free(tmp_path: Path) -> None:
    gate, on_loop = threading.Event(), threading.get_ident()

    def blocks() -> bool:
        gate.wait(30)
        return threading.get_ident() != on_loop

    async def uses(ctx: Context, spec: Any) -> Json:
        async def opens() -> None:
            gate.set()

        blocked, _ = await ctx.gather(ctx.step("blocks", blocks), ctx.step("opens", opens))
        return blocked

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result is True


async def test_what_a_thread_raises_is_raised_to_the_workload(tmp_path: Path) -> None:
    def fails() -> None:
        raise KeyError("lost")

    def ends() -> None:
        raise StopIteration

    async def uses(ctx: Context, spec: Any) -> Json:
        with pytest.raises(KeyError, match="lost"):
            await ctx.step("fails", fails)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await ctx.step("ends", ends)
        return "told"

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == "told"


async def test_a_step_that_raises_is_tried_again_after_pauses_that_double(tmp_path: Path) -> None:
    clock, tries = FakeClock(), 0

    async def flaky() -> str:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ConnectionError("not yet")
        return "there"

    async def uses(ctx: Context, spec: Any) -> Json:
        return await ctx.step("flaky", flaky, retries=5, backoff=2.0)

    async with house(tmp_path, clock=clock) as h:
        run = await h.create(uses, timeout=1.0)
        driving = asyncio.create_task(h.engine.drive(run.id))
        for pause in (2.0, 4.0):  # time passes in the pauses alone, and uses up none of the run's
            while pause not in clock.slept:
                await h.store.changes.wait(0.01, h.store.changes.commits)
            clock.advance(pause)
        done = await driving
        assert (done.state, done.result, tries) == (RunState.COMPLETED, "there", 3)


def raises(*errors: Exception) -> tuple[list[str], Callable[[], Awaitable[str]]]:
    """Return a function that raises these in turn, and what it was called for."""
    tries: list[str] = []

    async def trying() -> str:
        tries.append("try")
        if len(tries) <= len(errors):
            raise errors[len(tries) - 1]
        return "there"

    return tries, trying


class Busy(MusterError):
    """An error of a program's own that says that it is worth another try."""

    retryable = True


@pytest.mark.parametrize(
    "error",
    [
        ProviderFault("it broke"),
        RetriesExhausted("5 times", last=ProviderFault("it broke")),
        BadExit("it exited with 1"),
        TimedOut("too late"),
        LimitReached("too often", retry_after=1.0),
        Busy("busy"),
    ],
    ids=repr,
)
async def test_a_step_is_tried_again_after_what_may_go_well_the_next_time(tmp_path: Path, error: MusterError) -> None:
    tries, trying = raises(error, ValueError("own"))

    async def uses(ctx: Context, spec: Any) -> Json:
        return await ctx.step("k", trying, retries=2, backoff=0)

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == "there"
        assert len(tries) == 3


@pytest.mark.parametrize(
    "error",
    [
        BadArgument("wrong"),
        InvalidRequest("wrong"),
        BadOutput("not JSON"),
        Undecodable("read by nobody"),
        KeyReused("twice"),
        RetriesExhausted("2 times", last=Undecodable("read by nobody")),
        ChildFailed("it failed"),
    ],
    ids=repr,
)
async def test_a_step_is_not_tried_again_after_what_would_be_the_same_again(tmp_path: Path, error: MusterError) -> None:
    tries, trying = raises(error)

    async def uses(ctx: Context, spec: Any) -> Json:
        with pytest.raises(type(error)):
            await ctx.step("k", trying, retries=2, backoff=0)
        return len(tries)

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == 1


async def test_a_call_in_a_step_that_is_tried_again_is_asked_again(tmp_path: Path) -> None:
    agent = failing(ProviderFault("it broke"), BadExit("it exited with 1"), then="there")

    async def uses(ctx: Context, spec: Any) -> Json:
        async def asks() -> str:
            return (await ctx.call("a", "go", key="asked")).text

        return await ctx.step("k", asks, retries=2, backoff=0)

    async with house(tmp_path, policy=RetryPolicy(attempts=1), a=agent) as h:
        assert (await h.drive(uses)).result == "there"
        assert len(agent.asked) == 3


async def test_a_function_that_is_a_step_takes_arguments(tmp_path: Path) -> None:
    tries: list[str] = []

    @step(retries=1, backoff=0)
    async def fetch(place: str, *, loud: bool = False) -> Ticket:
        tries.append(place)
        if len(tries) == 1:
            raise OSError
        return Ticket(id=len(place), labels=("loud",) if loud else ())

    async def uses(ctx: Context, spec: Any) -> Any:
        found = await fetch(ctx, "fetch/1", "here", loud=True)
        assert found == Ticket(id=4, labels=("loud",))
        return fetch.__name__  # type: ignore[attr-defined]  # of the function that it stands for

    async with house(tmp_path) as h:
        assert (await h.drive(uses)).result == "fetch"
        assert tries == ["here", "here"]


@pytest.mark.parametrize(("retries", "backoff"), [(-1, 1.0), (True, 1.0), (1.5, 1.0), (1, -1.0), (1, float("nan"))])
def test_retries_are_counts_and_pauses_are_seconds(retries: Any, backoff: Any) -> None:
    with pytest.raises(BadArgument):
        step(retries=retries, backoff=backoff)
