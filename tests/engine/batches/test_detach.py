"""A run that was left waiting needs nothing but its store and its key: any later process brings it to its end."""

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from muster.app import Muster
from muster.domain.batch import BatchState
from muster.domain.errors import BadConfiguration
from muster.domain.run import Run, RunState
from tests import forked
from tests.chaos.books import books_of
from tests.engine.batches.house import House, batch, batches_of, check_answered, open_house, questions, survey

ASKED = questions(30)
VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
SECONDS = 200.0


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """A folder before a server whose batches take long enough to be left alone."""
    async with open_house(tmp_path / "house", batch_ms=500) as opened:
        yield opened


async def leave(muster: Muster, agent: str) -> Run:
    """Start a run and let go of it as soon as the provider has everything."""
    handle = await muster.start("survey", survey(agent, ASKED), dispatch=batch(), detach=True)
    run = await handle.wait()
    assert (run.state, run.ended_reason) == (RunState.WAITING, "left_waiting")
    assert run.lease.driver is None
    assert (await muster._backend.store.batches.saving(run.id)).parked == len(ASKED)
    return run


def clear(folder: Path) -> None:
    """Delete everything in a folder but the store."""
    for path in folder.iterdir():
        if path.name != ".muster":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert [path.name for path in folder.iterdir()] == [".muster"]


async def test_a_run_that_was_left_is_finished_by_whoever_comes_later(house: House, agent: str) -> None:
    async with house.open() as muster:
        run = await leave(muster, agent)
        [made] = await batches_of(muster, run)
        assert made.state is BatchState.RUNNING
    async with house.open() as muster:
        run = await (await muster.resume(run.id)).wait()
        check_answered(run, ASKED)
        await house.check_to_the_cent(muster, run)
    assert len(house.batches) == 1
    assert house.audit.calls == len(ASKED)


async def test_nothing_but_the_store_is_needed_later(house: House, agent: str) -> None:
    (house.folder / "notes.txt").write_text("to be deleted", encoding="utf-8")
    (house.folder / "prompts").mkdir()
    async with house.open() as muster:
        run = await leave(muster, agent)
    clear(house.folder)
    async with house.open() as muster:
        run = await (await muster.resume(run.id)).wait()
        check_answered(run, ASKED)
        await house.check_to_the_cent(muster, run)  # at the prices of then
    assert len(house.batches) == 1


async def test_a_budget_that_was_lowered_meanwhile_does_not_lose_what_is_paid(house: House, agent: str) -> None:
    async with house.open() as muster:
        run = await leave(muster, agent)
    (house.folder / "muster.toml").write_text("[budget]\nday_usd = 0.000001\n", encoding="utf-8")
    async with house.open() as muster:
        run = await (await muster.resume(run.id)).wait()
        check_answered(run, ASKED)
        await house.check_to_the_cent(muster, run)


@pytest.mark.parametrize("key", ["sk-of-somebody-else", ""])
async def test_without_the_key_of_then_the_variable_is_named_and_nothing_is_lost(
    house: House, agent: str, key: str
) -> None:
    variable = VARIABLES[agent.partition("/")[0]]
    async with house.open() as muster:
        run = await leave(muster, agent)
    async with house.open(environment=house.environment | {variable: key}) as muster:
        with pytest.raises(BadConfiguration, match=variable) as refused:
            await muster.resume(run.id)
        assert "sk-" not in str(refused.value.record())
        assert (await muster.runs.get(run.id)).state is RunState.WAITING
        with pytest.raises(BadConfiguration, match=variable):
            await muster.batches.fetch(await muster.batches.find("last"))
        [made] = await batches_of(muster, run)
        # The provider may have been done before the process left; nothing of it was read in either case.
        assert made.state in (BatchState.RUNNING, BatchState.ENDED)
        assert made.tally.over == 0
        assert (await muster._backend.store.batches.saving(run.id)).parked == len(ASKED)
    async with house.open() as muster:
        run = await (await muster.resume(run.id)).wait()
        check_answered(run, ASKED)
        assert (await books_of(muster, run)).texts == ASKED  # whichever run it is now, it has everything itself
    assert len(house.batches) == 1
    assert house.audit.calls == len(ASKED)


async def test_the_results_of_a_batch_can_be_fetched_before_the_run_goes_on(house: House, agent: str) -> None:
    async with house.open() as muster:
        run = await leave(muster, agent)
        [made] = await batches_of(muster, run)
    async with house.open() as muster:
        fetched = await muster.batches.fetch(await muster.batches.find(made.id))
        assert (fetched.state, fetched.tally.succeeded) == (BatchState.COLLECTED, len(ASKED))
        assert (await muster.runs.get(run.id)).state is RunState.WAITING
        requests = house.audit.requests
        run = await (await muster.resume(run.id)).wait()
        check_answered(run, ASKED)
        assert house.audit.requests == requests  # everything was there
        await house.check_to_the_cent(muster, run)


async def test_an_exported_run_is_fetched_and_finished_in_another_folder(
    house: House, agent: str, tmp_path: Path
) -> None:
    file = tmp_path / "run.jsonl"
    async with house.open() as muster:
        run = await leave(muster, agent)
        await muster.runs.export(run.id, file)
    records = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    [members] = [record["members"] for record in records if "members" in record]
    assert {len(member) for member in members} == {8}  # nothing that is of that store only, and as it always was
    elsewhere = House(tmp_path / "elsewhere", house.server)
    async with elsewhere.open() as muster:
        taken = await muster.runs.import_(file)
        [made] = await batches_of(muster, taken)
        fetched = await muster.batches.fetch(await muster.batches.find(made.id))
        assert (fetched.state, fetched.tally.succeeded) == (BatchState.COLLECTED, len(ASKED))
        check_answered(await (await muster.resume(run.id)).wait(), ASKED)
    assert (len(house.batches), house.audit.calls) == (1, len(ASKED))


async def test_a_process_of_its_own_finishes_what_another_left(house: House, agent: str) -> None:
    async with house.open() as muster:
        spec = {"agent": agent, "prompt": "is anybody there?"}
        handle = await muster.start("ask", spec, dispatch=batch(), detach=True)
        assert (await handle.wait()).state is RunState.WAITING
    clear(house.folder)
    code, out, err = await command(house, "runs", "resume", "last", "--json")
    assert code == 0, err
    assert json.loads(out)["data"]["result"]["text"] == "is anybody there?"
    assert (house.audit.calls, len(house.batches)) == (1, 1)


async def command(house: House, *arguments: str) -> tuple[int, str, str]:
    """Run the command itself."""
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "HOME": str(house.folder), **house.environment}
    process = await forked.start("muster", *arguments, folder=house.folder, environment=environment)
    out, err = await asyncio.wait_for(process.communicate(), SECONDS)
    return process.returncode or 0, out.decode(), err.decode()
