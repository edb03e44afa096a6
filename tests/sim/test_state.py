"""A server that goes on from the state of another: what was paid, and batches that nobody has fetched yet."""

import json
from pathlib import Path

import pytest
from anthropic import AsyncAnthropic

from muster.domain.errors import BadFile
from muster.sim.options import Options
from muster.sim.server import serve
from muster.testing.clock import FakeClock

from .batch_wire import anthropic_at, anthropic_of, lines, openai_at, requests, submit

DAY_LONG = 24 * 60 * 60 * 1000


async def say(client: AsyncAnthropic, text: str) -> None:
    await client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": text}])


async def test_what_was_paid_is_counted_on(tmp_path: Path) -> None:
    options = Options(state=tmp_path / "state.json")
    for _ in range(2):
        async with anthropic_at(options) as (client, server):
            await say(client, "hello")
    assert (server.audit.calls, list(server.audit.by_digest.values()), server.audit.statuses) == (2, [2], {"200": 2})


@pytest.mark.parametrize("key", ["k", "other"])
async def test_a_batch_that_was_left_is_found_by_its_owner_and_ends_by_the_time_of_the_server_that_goes_on(
    tmp_path: Path, key: str
) -> None:
    state = tmp_path / "state.json"
    async with anthropic_at(Options(state=state, batch_ms=DAY_LONG)) as (client, _):
        left = await client.messages.batches.create(requests=requests(3))
    async with serve(Options(state=state), FakeClock().now) as server, anthropic_of(server, key) as client:
        listed = [batch.id async for batch in client.messages.batches.list()]
        assert listed == ([left.id] if key == "k" else [])
        if listed:
            found = [item.result.type async for item in await client.messages.batches.results(left.id)]
            assert found == ["succeeded"] * 3
        another = await client.messages.batches.create(requests=requests(1))
    assert another.id != left.id


async def test_results_that_are_files_are_there_again(tmp_path: Path) -> None:
    options = Options(state=tmp_path / "state.json")
    async with openai_at(options) as (client, _):
        batch = await submit(client, lines(2))
        ended = await client.batches.retrieve(batch.id)
        assert ended.output_file_id is not None
        before = (await client.files.content(ended.output_file_id)).content
    async with openai_at(options) as (client, _):
        assert (await client.files.content(ended.output_file_id)).content == before
        assert (await client.batches.retrieve(batch.id)) == ended
        assert {file.purpose async for file in client.files.list()} == {"batch", "batch_output"}


@pytest.mark.parametrize("text", ["", "{}", json.dumps({"version": 99})])
async def test_a_file_that_is_no_state_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(BadFile):
        async with serve(Options(state=tmp_path / "state.json")):
            pass
