"""Workloads that declare the types of their spec and result: checked at start, given as such, read back as such."""

import runpy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict, assert_type

import pytest
from msgspec import Meta
from pydantic import BaseModel, Field, field_validator
from pydantic.dataclasses import dataclass as checked_dataclass

import muster
from muster import sync
from muster.engine.declared import declared
from muster.engine.workload import Workloads


@dataclass(frozen=True)
class TriageSpec:
    """Which tickets."""

    agent: str
    tickets: tuple[str, ...]
    most: Annotated[int, Meta(ge=1)] = 3


class TriageResult(BaseModel):
    """What became of them."""

    labels: list[str]
    cost: float = 0.0


class Part(TypedDict):
    """One ticket."""

    agent: str
    ticket: str


@muster.workload("typed-part")
async def part(ctx: muster.Context, spec: Part) -> str:
    return (await ctx.call(spec["agent"], spec["ticket"], key="label")).text


@muster.workload("typed-triage")
async def triage(ctx: muster.Context, spec: TriageSpec) -> TriageResult:
    """Label tickets."""

    async def label(number: int, ticket: str) -> str:
        found = await ctx.child(f"part/{number}", part, Part(agent=spec.agent, ticket=ticket))
        assert_type(found, str)
        return found

    return TriageResult(labels=[text async for text in ctx.map(label, spec.tickets[: spec.most])])


@muster.workload("typed-outer")
async def outer(ctx: muster.Context, spec: TriageSpec) -> list[TriageResult]:
    inner = await ctx.child("inner", triage, spec)
    assert_type(inner, TriageResult)
    assert isinstance(inner, TriageResult)
    return [inner]


SPEC = TriageSpec(agent="sim/echo", tickets=("a", "b"))


async def test_a_workload_is_started_with_its_spec_and_gives_its_result(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        run = await m.start(triage, SPEC, name="monday")
        assert_type(run, muster.RunHandle[TriageResult])
        assert await run.result() == TriageResult(labels=["a", "b"])
        stored = await run.run()
        assert stored.spec == {"agent": "sim/echo", "tickets": ["a", "b"], "most": 3}
        assert stored.result == {"labels": ["a", "b"], "cost": 0.0}
        assert await (await m.resume("monday")).result() == {"labels": ["a", "b"], "cost": 0.0}


async def test_children_give_results_of_their_types_at_once_and_on_resume(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        run = await m.start(outer, SPEC)
        assert await run.result() == [TriageResult(labels=["a", "b"])]
        replayed = m.runs.drive(await m.runs.replay(run.id))
        assert await replayed.result() == [{"labels": ["a", "b"], "cost": 0.0}]


async def test_a_worker_gives_a_typed_workload_its_spec(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        waiting = await m.submit(triage, SPEC)
        assert_type(waiting, muster.RunHandle[TriageResult])
        await m.worker(most=2).serve(until_idle=True)
        assert await waiting.result() == TriageResult(labels=["a", "b"])


def test_code_that_is_not_async_has_the_same_types(tmp_path: Path) -> None:
    with sync.open(tmp_path) as m:
        run = m.start(triage, SPEC)
        assert_type(run, sync.RunHandle[TriageResult])
        assert run.result() == TriageResult(labels=["a", "b"])


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        (
            {"tickets": ["a", 3], "most": 0},
            "the spec of workload 'typed-triage' is not a TriageSpec: agent is missing; "
            "tickets[1] must be str, not int; most must be int >= 1",
        ),
        ({"agent": "sim/echo", "tickets": "a"}, "tickets must be array, not str"),
        (None, "must be object, not null"),
        (Part(agent="a", ticket="b"), "tickets is missing"),
        (object(), "cannot be stored as JSON"),
    ],
)
async def test_a_spec_of_another_type_is_refused_before_anything_is_stored_with_all_flaws(
    tmp_path: Path, spec: Any, wrong: str
) -> None:
    async with muster.open(tmp_path) as m:
        for started in (m.start(triage, spec), m.start("typed-triage", spec), m.submit("typed-triage", spec)):
            with pytest.raises(muster.BadArgument) as raised:
                await started
            assert wrong in raised.value.message
        assert await m.runs.list() == []


async def test_a_result_of_another_type_fails_the_run(tmp_path: Path) -> None:
    @muster.workload("typed-liar")
    async def liar(ctx: muster.Context, spec: None) -> TriageResult:
        return {"labels": "none"}  # type: ignore[return-value]

    async with muster.open(tmp_path) as m:
        with pytest.raises(muster.RunFailed, match="the result of workload 'typed-liar' is not a TriageResult: labels"):
            await (await m.start(liar, None)).result()


async def test_what_is_no_workload_says_what_to_do(tmp_path: Path) -> None:
    async def plain(ctx: muster.Context, spec: None) -> None:
        return None

    async with muster.open(tmp_path) as m:
        with pytest.raises(muster.BadArgument, match="plain is not a workload") as raised:
            await m.start(plain, None)
        assert "@muster.workload" in raised.value.suggestions[0]


def test_a_signature_that_no_run_can_be_driven_with_is_refused_with_all_flaws() -> None:
    def wrong() -> None:
        return None

    with pytest.raises(muster.BadArgument, match="must be an async function and take two arguments") as raised:
        muster.workload("typed-wrong")(wrong)  # type: ignore[type-var]
    assert raised.value.suggestions == ("write async def wrong(ctx, spec)",)


async def test_a_type_that_only_type_checkers_know_is_refused_at_start(tmp_path: Path) -> None:
    async def hidden(ctx: "muster.Context", spec: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
        return None

    muster.workload("typed-hidden")(hidden)
    async with muster.open(tmp_path) as m:
        with pytest.raises(muster.BadConfiguration, match="name 'Nowhere' is not defined"):
            await m.start("typed-hidden", None)


class Own:
    """Nothing that JSON could hold."""


@pytest.mark.parametrize("kind", [Own, dict[str, Own], Own | TriageSpec], ids=str)
async def test_a_type_that_cannot_be_stored_is_refused_at_start(tmp_path: Path, kind: Any) -> None:
    async def promises(ctx: muster.Context, spec: Any) -> Any: ...

    async with muster.open(tmp_path) as m:
        for place in ("spec", "return"):
            promises.__annotations__ = {place: kind}
            muster.workload("typed-promises")(promises)
            for started in (m.start(promises, None), m.start("typed-promises", None), m.submit(promises, None)):
                with pytest.raises(muster.BadConfiguration, match="the types that workload 'typed-promises' declares"):
                    await started
        assert await m.runs.list() == []


class Refund(BaseModel):
    """One of two results."""

    percent: int


@checked_dataclass
class Checked:
    """A dataclass of pydantic, with a validator."""

    number: str

    @field_validator("number")
    @classmethod
    def has_a_letter(cls, number: str) -> str:
        """Refuse digits alone."""
        if number.isdigit():
            raise ValueError("it has no letter")
        return number.upper()


@muster.workload("typed-either")
async def either(ctx: muster.Context, spec: Checked | TriageSpec) -> Refund | str:
    return Refund(percent=5) if isinstance(spec, Checked) else spec.agent


async def test_specs_and_results_may_be_of_several_types(tmp_path: Path) -> None:
    async with muster.open(tmp_path) as m:
        assert await (await m.start(either, Checked(number="a7"))).result() == Refund(percent=5)
        assert await (await m.start(either, SPEC)).result() == "sim/echo"
        with pytest.raises(muster.BadArgument, match="it has no letter"):
            await m.start("typed-either", {"number": "7"})


class Described(BaseModel):
    """A spec of pydantic."""

    count: int = Field(ge=1, description="How many.")


def test_the_schema_of_a_workload_is_that_of_its_spec_with_that_of_its_result(tmp_path: Path) -> None:
    @muster.workload("typed-described")
    async def described(ctx: muster.Context, spec: Described) -> list[TriageResult]:
        return []

    project = muster.Project(tmp_path)
    shown = project.schema("typed-described")
    assert (shown["title"], shown["properties"]["count"]["description"]) == ("typed-described", "How many.")
    assert shown["returns"]["type"] == "array"
    assert project.schema("typed-triage")["required"] == ["agent", "tickets"]
    with pytest.raises(muster.BadArgument, match="Did you mean 'typed-described'"):
        project.schema("typed-describd")


def twin(text: str) -> Any:
    """Return a workload under a name that others take too."""

    @muster.workload("typed-twin")
    async def same(ctx: muster.Context, spec: None) -> str:
        return text

    return same


@muster.workload("typed-twins")
async def twins(ctx: muster.Context, spec: None) -> Any:
    return await ctx.child("first", FIRST_TWIN, None)


FIRST_TWIN, SECOND_TWIN = twin("first"), twin("second")


async def test_the_function_that_is_given_runs_or_is_refused(tmp_path: Path) -> None:
    taken = "another function is registered as workload 'typed-twin' by now, the one of test_typed_workloads.py"
    async with muster.open(tmp_path) as m:
        assert await (await m.start(SECOND_TWIN, None)).result() == "second"
        for wrong in (m.start(FIRST_TWIN, None), m.submit(FIRST_TWIN, None), (await m.start(twins, None)).result()):
            with pytest.raises(muster.MusterError, match=taken):
                await wrong


def test_a_module_that_is_imported_twice_has_the_same_workloads(tmp_path: Path) -> None:
    file = tmp_path / "twice.py"
    file.write_text('import muster\n@muster.workload("typed-twice")\nasync def twice(ctx, spec): ...\n')
    first, second = (runpy.run_path(str(file))["twice"] for _ in range(2))
    assert declared(first) == declared(second)


async def test_a_workload_that_is_registered_again_has_the_options_of_the_last_time(tmp_path: Path) -> None:
    checked: list[str] = []

    async def again(ctx: muster.Context, spec: str) -> int:
        return ctx.version

    async with muster.open(tmp_path) as m:
        muster.workload("typed-again", check=checked.append, version=3, oldest=3)(again)
        assert await (await m.start(again, "first")).result() == 3
        muster.workload("typed-again")(again)
        assert await (await m.start(again, "second")).result() == 1
    assert set(checked) == {"first"}


@pytest.mark.parametrize("first", ["own", "built-in"])
def test_names_of_built_in_workloads_are_refused(first: str) -> None:
    registry = Workloads()
    own, built_in = partial(registry.workload("suite"), part), partial(registry.promise, "suite", "x.y")
    once, other = (own, built_in) if first == "own" else (built_in, own)
    once()
    with pytest.raises(
        muster.BadArgument, match="'suite' is the name of a built-in workload, and test_typed_workloads"
    ):
        other()
