"""The official SDK, with strict validation, is the oracle of our batches of chat completions."""

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from openai.types.chat import ChatCompletion

from muster.domain.canonical import digest
from muster.sim.options import Options
from muster.sim.server import serve
from muster.testing.clock import FakeClock
from tests.sim.batch_wire import OPENAI_BATCHES, call, content, jsonl, line, lines, openai_at, openai_of, submit
from tests.sim.wire import message

SLOW = Options(batch_ms=10_000)


async def test_a_batch_lives_from_its_file_to_its_output() -> None:
    async with openai_at() as (client, server):
        created = await submit(client, lines(5), ours="b1")
        assert (created.status, created.metadata, created.output_file_id) == ("validating", {"ours": "b1"}, None)
        done = await client.batches.retrieve(created.id)
        assert (done.status, done.error_file_id, done.model) == ("completed", None, "claude-haiku-5-5")
        assert done.request_counts is not None
        assert done.request_counts.to_dict() == {"total": 5, "completed": 5, "failed": 0}
        found = {item["custom_id"]: item for item in await content(client, done.output_file_id)}
    assert set(found) == {f"r{n}" for n in range(5)}
    for name, item in found.items():
        assert (item["error"], item["response"]["status_code"]) == (None, 200)
        body = ChatCompletion.model_validate(item["response"]["body"])
        assert body.choices[0].message.content == name
    assert server.audit.calls == 5


async def test_a_batch_goes_through_its_phases() -> None:
    clock, seen = FakeClock(), []
    async with openai_at(SLOW, clock) as (client, _):
        created = await submit(client, lines(10))
        for seconds in (0, 1, 3.9, 5, 0.1):
            clock.advance(seconds)
            batch = await client.batches.retrieve(created.id)
            assert batch.request_counts is not None
            seen.append((batch.status, batch.request_counts.total, batch.request_counts.completed))
    assert seen == [
        ("validating", 0, 0),
        ("in_progress", 10, 1),
        ("in_progress", 10, 4),
        ("finalizing", 10, 9),
        ("completed", 10, 10),
    ]
    assert (batch.expires_at or 0) - batch.created_at == 24 * 60 * 60
    assert (batch.completed_at or 0) - batch.created_at == 10


async def test_counts_stay_zero_until_the_end_when_they_are_told_to() -> None:
    clock = FakeClock()
    async with openai_at(Options(batch_ms=10_000, live_counts=False), clock) as (client, _):
        created = await submit(client, lines(10))
        clock.advance(5)
        batch = await client.batches.retrieve(created.id)
    assert batch.request_counts is not None
    assert batch.request_counts.to_dict() == {"total": 10, "completed": 0, "failed": 0}


async def test_members_that_fail_go_to_a_file_of_their_own() -> None:
    bad = line("bad", body={"model": "claude-haiku-5-5"})
    async with openai_at() as (client, server):
        mixed = await client.batches.retrieve((await submit(client, [*lines(2), bad])).id)
        [failed] = await content(client, mixed.error_file_id)
        assert len(await content(client, mixed.output_file_id)) == 2
        none_good = await client.batches.retrieve((await submit(client, [bad])).id)
    assert (none_good.output_file_id, none_good.error_file_id is None) == (None, False)
    assert (failed["custom_id"], failed["error"], failed["response"]["status_code"]) == ("bad", None, 400)
    assert failed["response"]["body"]["error"]["code"] == "missing_required_parameter"
    assert mixed.request_counts is not None
    assert (mixed.request_counts.completed, mixed.request_counts.failed) == (2, 1)
    assert server.audit.calls == 2


async def test_a_cancel_keeps_what_was_processed_by_then() -> None:
    clock = FakeClock()
    async with openai_at(SLOW, clock) as (client, server):
        created = await submit(client, lines(10))
        clock.advance(4)
        canceling = await client.batches.cancel(created.id)
        assert (canceling.status, canceling.output_file_id) == ("cancelling", None)
        canceled = await client.batches.retrieve(created.id)
        assert canceled.status == "cancelled"
        assert len(await content(client, canceled.output_file_id)) == 4
        rest = await content(client, canceled.error_file_id)
        assert {item["error"]["code"] for item in rest} == {"batch_cancelled"}
        assert len(rest) == 6
        assert (await client.batches.cancel(created.id)).status == "cancelled"
    assert (server.audit.calls, server.audit.batches[0]["canceled"]) == (4, 6)


async def test_a_completed_batch_cannot_be_canceled() -> None:
    async with openai_at() as (client, _):
        created = await submit(client, lines(1))
        with pytest.raises(openai.ConflictError, match="completed"):
            await client.batches.cancel(created.id)


async def test_a_batch_that_takes_longer_than_a_day_expires_in_part() -> None:
    clock = FakeClock()
    async with openai_at(Options(batch_ms=2 * 24 * 60 * 60 * 1000), clock) as (client, server):
        created = await submit(client, lines(4))
        clock.advance(24 * 60 * 60)
        expired = await client.batches.retrieve(created.id)
        assert (expired.status, expired.expired_at) == ("expired", expired.expires_at)
        assert len(await content(client, expired.output_file_id)) == 2
        rest = await content(client, expired.error_file_id)
    assert [(item["response"], item["error"]["code"]) for item in rest] == [(None, "batch_expired")] * 2
    assert server.audit.calls == 2


async def test_a_list_is_newest_first_and_is_paged_through() -> None:
    async with openai_at() as (client, _):
        names = [(await submit(client, lines(1))).id for _ in range(25)]
        newest = names[::-1]
        first = await client.batches.list()
        assert ([batch.id for batch in first.data], first.has_more) == (newest[:20], True)
        assert [batch.id async for batch in client.batches.list(limit=7)] == newest
        rest = await client.batches.list(limit=100, after=newest[22])
        assert ([batch.id for batch in rest.data], rest.has_more) == (newest[23:], False)


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "after=nobody"])
async def test_a_list_that_makes_no_sense_is_refused(query: str) -> None:
    async with serve() as server:
        answer = await call(server, "GET", f"{OPENAI_BATCHES}?{query}")
    assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_one_key_does_not_see_the_batches_and_files_of_another() -> None:
    async with serve() as server, openai_of(server, "one") as one, openai_of(server, "two") as two:
        mine = await submit(one, lines(1))
        assert [batch.id async for batch in two.batches.list()] == []
        assert [file.id async for file in two.files.list()] == []
        with pytest.raises(openai.NotFoundError):
            await two.batches.retrieve(mine.id)
        with pytest.raises(openai.NotFoundError):
            await two.files.content(mine.input_file_id)
        with pytest.raises(openai.BadRequestError):
            await two.batches.create(
                input_file_id=mine.input_file_id, endpoint="/v1/chat/completions", completion_window="24h"
            )


@pytest.mark.parametrize(
    ("data", "code", "number", "param"),
    [
        (b"", "empty_file", None, None),
        (b"\n\n", "empty_file", None, None),
        (jsonl([line("a")]) + b"{\n", "invalid_json_line", 2, None),
        (b"[1]\n", "invalid_json_line", 1, None),
        (jsonl([line("a"), line("")]), "missing_required_parameter", 2, "custom_id"),
        (jsonl([{"method": "POST"}]), "invalid_url", 1, "url"),
        (jsonl([line("a"), line("b"), line("a")]), "duplicate_custom_id", 3, "custom_id"),
        (jsonl([line("a", url="/v1/responses")]), "invalid_url", 1, "url"),
        (jsonl([line("a", method="GET")]), "invalid_method", 1, "method"),
        (jsonl([line("a", body=None)]), "missing_required_parameter", 1, "body"),
        (jsonl([line("a", body={})]), "missing_required_parameter", 1, "body.model"),
        (jsonl([line("a"), line("b", body=message(model="other"))]), "mismatched_model", 2, "body.model"),
        (jsonl(lines(4)), "too_many_tasks", None, None),
    ],
)
async def test_a_wrong_file_makes_the_batch_fail(data: bytes, code: str, number: int | None, param: str | None) -> None:
    async with openai_at(Options(batch_requests=3)) as (client, server):
        file = await client.files.create(file=("input.jsonl", data), purpose="batch")
        created = await create(client, file.id)
        failed = await client.batches.retrieve(created.id)
    assert (created.status, failed.status) == ("validating", "failed")
    assert failed.errors is not None
    assert failed.errors.data is not None
    [error] = failed.errors.data
    assert (error.code, error.line, error.param) == (code, number, param)
    assert failed.failed_at is not None
    assert (failed.output_file_id, failed.error_file_id) == (None, None)
    assert (server.audit.calls, server.audit.batches[0]["status"]) == (0, "failed")


async def create(client: AsyncOpenAI, name: str) -> Any:
    return await client.batches.create(input_file_id=name, endpoint="/v1/chat/completions", completion_window="24h")


@pytest.mark.parametrize(
    ("changed", "param"),
    [
        ({"input_file_id": "nobody"}, "input_file_id"),
        ({"input_file_id": None}, "input_file_id"),
        ({"endpoint": "/v1/embeddings"}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
        ({"metadata": {"a": 5}}, "metadata"),
        ({"metadata": {"a": "x" * 513}}, "metadata"),
    ],
)
async def test_a_wrong_batch_is_refused(changed: dict[str, Any], param: str) -> None:
    async with openai_at() as (client, server):
        file = await client.files.create(file=("input.jsonl", jsonl(lines(1))), purpose="batch")
        right = {"input_file_id": file.id, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        answer = await call(server, "POST", OPENAI_BATCHES, right | changed)
    assert (answer.status, answer.json()["error"]["param"]) == (400, param)
    assert server.audit.batches == ()


async def test_the_output_of_a_batch_is_no_input() -> None:
    async with openai_at() as (client, _):
        done = await client.batches.retrieve((await submit(client, lines(1))).id)
        assert done.output_file_id is not None
        with pytest.raises(openai.BadRequestError):
            await create(client, done.output_file_id)


async def test_a_batch_does_not_need_its_file_any_more() -> None:
    async with openai_at() as (client, _):
        created = await submit(client, lines(2))
        await client.files.delete(created.input_file_id)
        done = await client.batches.retrieve(created.id)
        assert len(await content(client, done.output_file_id)) == 2


async def test_members_count_under_the_same_digest_as_live_and_cost_half() -> None:
    async with openai_at() as (client, server):
        await submit(client, [line("a", "1234"), line("b", "1234")])
        await client.chat.completions.create(**message("1234"))
        audit = server.audit
    assert audit.by_digest == {digest(message("1234")): 3}
    assert audit.cost == 6 + 2 * 3


async def test_the_audit_knows_the_metadata_and_the_model() -> None:
    async with openai_at() as (client, server):
        await submit(client, lines(1), ours="b7")
        [found] = server.audit.batches
    assert (found["provider"], found["status"], found["metadata"]) == ("openai", "completed", {"ours": "b7"})
    assert found["models"] == ["claude-haiku-5-5"]


@pytest.mark.parametrize("path", ["/nobody", "/nobody/cancel", "/a/b/c"])
async def test_an_unknown_batch_is_not_found(path: str) -> None:
    async with serve() as server:
        answer = await call(server, "POST" if path.endswith("cancel") else "GET", OPENAI_BATCHES + path)
    assert (answer.status, answer.json()["error"]["type"]) == (404, "invalid_request_error")
