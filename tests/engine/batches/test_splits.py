"""Calls are split into as many batches as the provider's limits want, by count and by bytes, and no more."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest

from muster.domain.agent import Timeouts
from muster.domain.run import RunState
from muster.engine.batches.base import Patience
from tests.chaos.books import books_of
from tests.engine.batches.house import (
    ANTHROPIC,
    OPENAI,
    PROVIDERS,
    QUICK,
    House,
    ask_all,
    check_answered,
    open_house,
    questions,
)


def limited(requests: int | None = None, size: int | None = None) -> Patience:
    return replace(QUICK, most_requests=requests, most_bytes=size)


async def split_by_count(tmp_path: Path, agent: str, calls: int, most: int) -> list[int]:
    """Ask so many under a limit that server and client agree on; gives the sizes of the batches."""
    asked = questions(calls)
    async with (
        open_house(tmp_path / "house", batch_requests=most) as house,
        house.open(patience=limited(requests=most)) as muster,
    ):
        run = await ask_all(muster, agent, asked)
        check_answered(run, asked)
        books = await house.check_to_the_cent(muster, run)
        sizes = [each.requests for each in books.batches]
        assert sorted(theirs["requests"] for theirs in house.batches) == sorted(sizes)
        return sizes


@pytest.mark.parametrize(
    ("calls", "expected"), [(1, [1]), (49, [49]), (50, [50]), (51, [50, 1]), (100, [50, 50]), (130, [50, 50, 30])]
)
async def test_calls_are_split_by_count(tmp_path: Path, agent: str, calls: int, expected: list[int]) -> None:
    assert sorted(await split_by_count(tmp_path, agent, calls, 50), reverse=True) == expected


async def test_calls_are_split_by_bytes(tmp_path: Path, agent: str) -> None:
    most = 20_000
    asked = {key: f"{text} {'ü' * (int(key[-3:]) % 7 * 100)}" for key, text in questions(150).items()}
    async with (
        open_house(tmp_path / "house", batch_bytes=most) as house,
        house.open(patience=limited(size=most)) as muster,
    ):
        run = await ask_all(muster, agent, asked)
        check_answered(run, asked)
        books = await house.check_to_the_cent(muster, run)
    assert sum(each.requests for each in books.batches) == len(asked)
    assert all(each.bytes <= most for each in books.batches)
    assert all(each.bytes > most - 2000 for each in books.batches[:-1])  # no batch is left half empty
    assert sum(theirs["requests"] for theirs in house.batches) == len(asked)


@pytest.mark.parametrize("spare", [0, 1])
async def test_a_batch_may_be_exactly_as_large_as_the_limit(tmp_path: Path, agent: str, spare: int) -> None:
    asked = questions(10)
    async with open_house(tmp_path / "first") as house, house.open() as muster:
        run = await ask_all(muster, agent, asked)
        [made] = (await books_of(muster, run)).batches
    most = made.bytes - spare
    async with (
        open_house(tmp_path / "second", batch_bytes=most) as house,
        house.open(patience=limited(size=most)) as muster,
    ):
        run = await ask_all(muster, agent, asked)
        check_answered(run, asked)
        books = await house.check_to_the_cent(muster, run)
    assert [each.requests for each in books.batches] == ([10] if spare == 0 else [9, 1])


async def test_a_call_too_large_for_any_batch_fails_and_the_others_go_on(tmp_path: Path, agent: str) -> None:
    most = 20_000
    asked = questions(60)
    large = {"too/large": "ü" * (most // 2)}
    async with (
        open_house(tmp_path / "house", batch_bytes=most) as house,
        house.open(patience=limited(size=most)) as muster,
    ):
        first, *rest = asked.items()
        run = await ask_all(muster, agent, {first[0]: first[1], **large, **dict(rest)})
        assert run.state is RunState.COMPLETED
        refused = run.result.pop("too/large")
        check_answered(run, asked)
        assert refused["error"] == "invalid_request"
        assert f"the maximum of a whole batch is {most}" in refused["message"]
        books = await books_of(muster, run)
        assert sum(each.requests for each in books.batches) == house.audit.calls == len(asked)
        assert all(amount == 0 for amount in books.reserved.values())


async def test_a_server_with_lower_limits_than_we_know_refuses_the_batch_with_its_message(
    tmp_path: Path, agent: str
) -> None:
    asked = questions(20)
    async with open_house(tmp_path / "house", batch_requests=10) as house, house.open() as muster:
        run = await ask_all(muster, agent, asked)
        assert {answer["error"] for answer in run.result.values()} == {"invalid_request"}
        assert all("10" in answer["message"] for answer in run.result.values())
        await house.check_to_the_cent(muster, run)
        assert house.audit.calls == 0


async def test_calls_for_both_providers_and_many_models_share_batches_where_they_may(house: House) -> None:
    names = (*PROVIDERS, "anthropic/claude-sonnet-4-5", "openai/gpt-5")
    async with house.open() as muster:
        runs = await asyncio.gather(*(ask_all(muster, name, questions(10, f"for {name}")) for name in names))
    for name, run in zip(names, runs, strict=True):
        check_answered(run, questions(10, f"for {name}"))
    by_models = {tuple(theirs["models"]): theirs["requests"] for theirs in house.batches}
    assert by_models == {
        ("claude-haiku-5-5", "claude-sonnet-4-5"): 20,
        ("gpt-5",): 10,
        ("gpt-5-mini",): 10,
    }


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("name", "expected"), [(ANTHROPIC, [100_000]), (OPENAI, [50_000, 50_000])])
async def test_100000_calls_make_as_few_batches_as_the_real_limits_allow(
    tmp_path: Path, name: str, expected: list[int]
) -> None:
    asked, began = questions(100_000), time.monotonic()
    async with (
        open_house(tmp_path / "house") as house,
        # A server that looks at fifty thousand requests is not silent, it is at work.
        house.open(
            patience=replace(QUICK, settle=0.5, max_parked=200_000), batch_timeouts=Timeouts(call=120.0)
        ) as muster,
    ):
        run = await ask_all(muster, name, asked)
        check_answered(run, asked)
        seconds = time.monotonic() - began
        [*made] = await muster._backend.store.batches.of_run(run.id)
        assert [each.requests for each in made] == expected
        assert sorted(theirs["requests"] for theirs in house.batches) == expected
        assert house.audit.calls == 100_000
        assert run.spent.billed == house.audit.cost
        print(f"{name}: 100,000 calls in {len(made)} batches, {seconds:.1f} s")
