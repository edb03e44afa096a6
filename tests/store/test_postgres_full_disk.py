"""A disk of the server that is full: what was paid for waits for room, and nothing new is begun."""

import asyncio
from pathlib import Path

import psycopg
import pytest

import muster
from muster.domain.canonical import Json
from muster.domain.errors import StoreFailed
from muster.settings import load_settings
from muster.store.postgres.store import open_postgres
from muster.testing.stores import driven, new_run, opening, replied, settling
from tests.rehearsal import ForkedRehearsal

PATIENCE = 120.0
FILL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON attempts EXECUTE FUNCTION refuse();
"""
FREE = "DROP FUNCTION refuse CASCADE"
CALLS = 12


@muster.workload("test-full-disk")
async def ask_all(ctx: muster.Context, spec: Json) -> int:
    async def ask(_: int, item: int) -> str:
        return (await ctx.call("anthropic/claude-haiku-5-5", f"question {item}", key=f"ask/{item}")).text

    return len([answer async for answer in ctx.map(ask, range(CALLS))])


def run_script(url: str, script: str) -> None:
    with psycopg.connect(url, autocommit=True) as database:
        database.execute(script.encode())


async def test_a_settlement_waits_for_room_and_a_new_run_is_refused(database_url: str) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    store = open_postgres(database_url, on_wait=told.put_nowait)
    run, claim = await driven(store)
    opened = opening(run, claim.epoch, "k")
    await store.journal.open(opened)
    await asyncio.to_thread(run_script, database_url, FILL)
    settlement = asyncio.ensure_future(store.journal.settle(settling(opened, replied(40))))
    words = await asyncio.wait_for(told.get(), PATIENCE)
    shortage = await store.maintenance.shortage()
    with pytest.raises(StoreFailed, match="the disk of the server is full"):
        await asyncio.wait_for(store.runs.create(new_run("run2")), PATIENCE)
    assert not settlement.done()
    await asyncio.to_thread(run_script, database_url, FREE)
    await asyncio.wait_for(settlement, PATIENCE)
    entry = await store.journal.find(run, "k")
    assert await store.maintenance.shortage() is None
    await store.runs.create(new_run("run3"))
    await store.maintenance.close()
    assert entry is not None
    assert entry.reply is not None
    assert shortage is not None
    assert "1 answer waits in memory, and no calls are started. Free some space there" in words


async def test_a_run_under_which_the_disk_fills_up_goes_on_when_there_is_room(
    database_url: str, tmp_path: Path
) -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    with ForkedRehearsal(latency_ms=300) as rehearsal:
        variables = {"ANTHROPIC_BASE_URL": rehearsal.anthropic, "ANTHROPIC_API_KEY": "rehearsal"}
        variables["MUSTER_DATABASE_URL"] = database_url
        settings = load_settings(tmp_path, folder=tmp_path, environment=variables)
        async with muster.open(settings=settings, on_wait=told.put_nowait) as m:
            run = await m.start("test-full-disk", None, concurrency=4)
            async for event in run.events():
                if event.kind == "call.done":
                    break
            await asyncio.to_thread(run_script, database_url, FILL)
            words = await asyncio.wait_for(told.get(), PATIENCE)
            await asyncio.to_thread(run_script, database_url, FREE)
            result = await asyncio.wait_for(run.result(), PATIENCE)
            uncertain = (await run.run()).calls.uncertain
        paid = rehearsal.audit().calls
    assert "the disk of the server is full" in words
    assert (result, uncertain, paid) == (CALLS, 0, CALLS)
