"""The official SDK, with strict validation, is the oracle of our Message Batches."""

from collections import Counter
from typing import Any

import anthropic
import pytest
from anthropic.types.messages import MessageBatchIndividualResponse, MessageBatchSucceededResult

from muster.domain.canonical import digest
from muster.domain.script import Line, Rule, Script
from muster.sim.options import Options
from muster.sim.server import serve
from muster.testing.clock import FakeClock
from tests.sim.batch_wire import ANTHROPIC_BATCHES, anthropic_at, anthropic_of, call, members, request, requests
from tests.sim.wire import ask, message

SLOW = Options(batch_ms=10_000)


async def results(client: anthropic.AsyncAnthropic, name: str) -> dict[str, MessageBatchIndividualResponse]:
    decoder = await client.messages.batches.results(name)
    found = [item async for item in decoder]
    assert len({item.custom_id for item in found}) == len(found)
    return {item.custom_id: item for item in found}


def text_of(item: MessageBatchIndividualResponse) -> str:
    assert isinstance(item.result, MessageBatchSucceededResult)
    block = item.result.message.content[0]
    assert block.type == "text"
    return block.text


def types(found: dict[str, MessageBatchIndividualResponse]) -> Counter[str]:
    return Counter(item.result.type for item in found.values())


async def test_a_batch_lives_from_creation_to_deletion() -> None:
    async with anthropic_at() as (client, server):
        created = await client.messages.batches.create(requests=requests(5))
        assert (created.processing_status, created.results_url) == ("in_progress", None)
        assert created.request_counts.processing == 5
        ended = await client.messages.batches.retrieve(created.id)
        assert (ended.processing_status, ended.request_counts.succeeded) == ("ended", 5)
        assert ended.results_url == f"{server.anthropic}/v1/messages/batches/{created.id}/results"
        found = await results(client, created.id)
        assert {name: text_of(item) for name, item in found.items()} == {f"r{n}": f"r{n}" for n in range(5)}
        deleted = await client.messages.batches.delete(created.id)
        assert (deleted.id, deleted.type) == (created.id, "message_batch_deleted")
        with pytest.raises(anthropic.NotFoundError):
            await client.messages.batches.retrieve(created.id)
    assert server.audit.batches[0]["succeeded"] == 5


async def test_a_batch_ends_when_its_time_has_come_and_expires_a_day_after_its_creation() -> None:
    clock = FakeClock()
    async with anthropic_at(SLOW, clock) as (client, _):
        created = await client.messages.batches.create(requests=requests(4))
        assert (created.expires_at - created.created_at).total_seconds() == 24 * 60 * 60
        clock.advance(9.99)
        running = await client.messages.batches.retrieve(created.id)
        assert (running.processing_status, running.ended_at, running.results_url) == ("in_progress", None, None)
        clock.advance(0.01)
        ended = await client.messages.batches.retrieve(created.id)
    assert ended.processing_status == "ended"
    assert ended.ended_at is not None
    assert (ended.ended_at - ended.created_at).total_seconds() == 10


@pytest.mark.parametrize(("live", "told"), [(None, 0), (False, 0), (True, 2)])
async def test_counts_stay_zero_until_the_end_unless_they_are_live(live: bool | None, told: int) -> None:
    clock = FakeClock()
    async with anthropic_at(Options(batch_ms=10_000, live_counts=live), clock) as (client, _):
        created = await client.messages.batches.create(requests=requests(4))
        clock.advance(5)
        counts = (await client.messages.batches.retrieve(created.id)).request_counts
        assert (counts.processing, counts.succeeded) == (4 - told, told)
        clock.advance(5)
        counts = (await client.messages.batches.retrieve(created.id)).request_counts
        assert (counts.processing, counts.succeeded) == (0, 4)


async def test_before_the_end_there_are_no_results_and_nothing_can_be_deleted() -> None:
    async with anthropic_at(SLOW) as (client, server):
        created = await client.messages.batches.create(requests=requests(1))
        answer = await call(server, "GET", f"{ANTHROPIC_BATCHES}/{created.id}/results")
        assert (answer.status, answer.json()["error"]["type"]) == (404, "not_found_error")
        with pytest.raises(anthropic.BadRequestError, match="has not ended"):
            await client.messages.batches.delete(created.id)


async def test_every_line_is_what_the_sdk_takes_for_a_result() -> None:
    body = {"requests": [*requests(1), {"custom_id": "bad", "params": {"model": "m"}}]}
    async with serve() as server:
        name = (await call(server, "POST", ANTHROPIC_BATCHES, body)).json()["id"]
        answer = await call(server, "GET", f"{ANTHROPIC_BATCHES}/{name}/results")
    found = [
        MessageBatchIndividualResponse.model_validate_json(item, strict=False) for item in answer.body.splitlines()
    ]
    assert sorted(item.result.type for item in found) == ["errored", "succeeded"]
    assert answer.headers["content-type"] == "application/x-jsonl"


async def test_an_invalid_member_is_an_error_of_its_own() -> None:
    batch: Any = [
        request("good"),
        {"custom_id": "bad", "params": {"model": "m", "messages": []}},
        {"custom_id": "worse", "params": 7},
        {"custom_id": "other", "params": message(model="x")},
    ]
    async with anthropic_at(Options(models=("claude-*", "m"))) as (client, server):
        created = await client.messages.batches.create(requests=batch)
        ended = await client.messages.batches.retrieve(created.id)
        found = await results(client, created.id)
    assert (ended.request_counts.succeeded, ended.request_counts.errored) == (1, 3)
    assert error_of(found["bad"]) == ("invalid_request_error", "max_tokens: Field required")
    assert error_of(found["worse"]) == ("invalid_request_error", "the request body is not a JSON object")
    assert error_of(found["other"]) == ("not_found_error", "model: x does not exist")
    assert server.audit.calls == 1


def error_of(item: MessageBatchIndividualResponse) -> tuple[str, str]:
    assert item.result.type == "errored"
    return item.result.error.error.type, item.result.error.error.message


async def test_answers_come_by_the_same_rules_as_live() -> None:
    script = Script(rules=(Rule(line=Line(text="Rain."), text="weather"),), otherwise=Line(text="Hm."))
    async with anthropic_at(Options(script=script)) as (client, _):
        created = await client.messages.batches.create(requests=[request("a", "weather?"), request("b")])
        found = await results(client, created.id)
    assert {name: text_of(item) for name, item in found.items()} == {"a": "Rain.", "b": "Hm."}


async def test_members_share_the_prompt_cache_with_live_requests() -> None:
    system = [{"type": "text", "text": "A shared prefix", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    batch = {"requests": [{"custom_id": f"c{n}", "params": message(f"q{n}", system=system)} for n in range(3)]}
    async with serve() as server:
        await ask(server, message("live", system=system))
        name = (await call(server, "POST", ANTHROPIC_BATCHES, batch)).json()["id"]
        answer = await call(server, "GET", f"{ANTHROPIC_BATCHES}/{name}/results")
    assert answer.body.count(b'"cache_read_input_tokens":4') == 3
    assert answer.body.count(b'"service_tier":"batch"') == 3
    assert (server.audit.tokens.cache_read, server.audit.tokens.cache_write) == (12, 4)


async def test_results_come_in_an_order_of_their_own_that_is_always_the_same() -> None:
    orders = []
    for _ in range(2):
        async with anthropic_at() as (client, _server):
            created = await client.messages.batches.create(requests=requests(50))
            orders.append(list(await results(client, created.id)))
    assert orders[0] == orders[1]
    assert orders[0] != sorted(orders[0])
    assert set(orders[0]) == {f"r{n}" for n in range(50)}


async def test_a_list_is_newest_first_and_is_paged_through() -> None:
    async with anthropic_at() as (client, _):
        names = [(await client.messages.batches.create(requests=requests(1))).id for _ in range(25)]
        newest = names[::-1]
        first = await client.messages.batches.list()
        assert ([batch.id for batch in first.data], first.has_more) == (newest[:20], True)
        assert (first.first_id, first.last_id) == (newest[0], newest[19])
        assert [batch.id async for batch in client.messages.batches.list(limit=4)] == newest
        later = await client.messages.batches.list(limit=3, before_id=newest[5])
        assert ([batch.id for batch in later.data], later.has_more) == (newest[2:5], True)
        rest = await client.messages.batches.list(limit=1000, after_id=newest[20])
        assert ([batch.id for batch in rest.data], rest.has_more) == (newest[21:], False)


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "after_id=nobody", "before_id=nobody"])
async def test_a_list_that_makes_no_sense_is_refused(query: str) -> None:
    async with serve() as server:
        answer = await call(server, "GET", f"{ANTHROPIC_BATCHES}?{query}")
    assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_an_empty_list_has_no_ends() -> None:
    async with serve() as server:
        answer = await call(server, "GET", ANTHROPIC_BATCHES)
    assert answer.json() == {"data": [], "has_more": False, "first_id": None, "last_id": None}


async def test_one_key_does_not_see_the_batches_of_another() -> None:
    async with serve() as server, anthropic_of(server, "one") as one, anthropic_of(server, "two") as two:
        mine = await one.messages.batches.create(requests=requests(1))
        async with anthropic_of(server, "one") as again:
            assert [batch.id async for batch in again.messages.batches.list()] == [mine.id]
        assert [batch.id async for batch in two.messages.batches.list()] == []
        with pytest.raises(anthropic.NotFoundError):
            await two.messages.batches.retrieve(mine.id)
        with pytest.raises(anthropic.NotFoundError):
            await two.messages.batches.cancel(mine.id)


@pytest.mark.parametrize(("after", "done"), [(0.0, 0), (4.0, 4), (9.9, 9)])
async def test_a_cancel_keeps_what_was_processed_by_then(after: float, done: int) -> None:
    clock = FakeClock()
    async with anthropic_at(SLOW, clock) as (client, server):
        created = await client.messages.batches.create(requests=requests(10))
        clock.advance(after)
        canceling = await client.messages.batches.cancel(created.id)
        assert (canceling.processing_status, canceling.request_counts.processing) == ("canceling", 10)
        assert canceling.cancel_initiated_at is not None
        ended = await client.messages.batches.retrieve(created.id)
        assert ended.processing_status == "ended"
        assert (ended.request_counts.succeeded, ended.request_counts.canceled) == (done, 10 - done)
        assert types(await results(client, created.id)) == +Counter(succeeded=done, canceled=10 - done)
        clock.advance(60)
        assert (server.audit.calls, server.audit.batches[0]["canceled"]) == (done, 10 - done)


async def test_an_ended_batch_cannot_be_canceled() -> None:
    async with anthropic_at() as (client, _):
        created = await client.messages.batches.create(requests=requests(1))
        with pytest.raises(anthropic.BadRequestError, match="has ended"):
            await client.messages.batches.cancel(created.id)


async def test_a_batch_that_takes_longer_than_a_day_expires_in_part() -> None:
    clock = FakeClock()
    async with anthropic_at(Options(batch_ms=4 * 24 * 60 * 60 * 1000), clock) as (client, server):
        created = await client.messages.batches.create(requests=requests(8))
        clock.advance(24 * 60 * 60)
        ended = await client.messages.batches.retrieve(created.id)
        assert (ended.request_counts.succeeded, ended.request_counts.expired) == (2, 6)
        assert types(await results(client, created.id)) == Counter(succeeded=2, expired=6)
    assert server.audit.calls == 2


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"{", "not valid JSON"),
        (b"[]", "Expected"),
        ({}, "requests"),
        ({"requests": []}, "between 1 and"),
        ({"requests": 5}, "requests"),
        ({"requests": [{"params": {}}]}, "custom_id"),
        ({"requests": [{"custom_id": "a"}]}, "params"),
        ({"requests": [{"custom_id": 5, "params": {}}]}, "requests[0].custom_id"),
        ({"requests": [{"custom_id": "", "params": {}}]}, "requests.0.custom_id"),
        ({"requests": [{"custom_id": "a b", "params": {}}]}, "requests.0.custom_id"),
        ({"requests": [{"custom_id": "a" * 65, "params": {}}]}, "requests.0.custom_id"),
        ({"requests": [{"custom_id": "a\n", "params": {}}]}, "requests.0.custom_id"),
        ({"requests": [request("a"), request("a")]}, "requests.1.custom_id: a is there twice"),
        (members(4), "between 1 and 3"),
    ],
)
async def test_a_wrong_batch_is_refused(body: Any, says: str) -> None:
    async with serve(Options(batch_requests=3)) as server:
        answer = await call(server, "POST", ANTHROPIC_BATCHES, body)
    assert (answer.status, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert says in answer.json()["error"]["message"]
    assert server.audit.batches == ()


async def test_a_batch_that_is_too_large_is_refused() -> None:
    async with anthropic_at(Options(batch_bytes=2000)) as (client, _):
        await client.messages.batches.create(requests=[request("small", "x" * 1000)])
        with pytest.raises(anthropic.ContentTooLargeError) as caught:
            await client.messages.batches.create(requests=[request("large", "x" * 2000)])
    assert str(caught.value.type) == "request_too_large"


async def test_a_batch_may_be_larger_than_other_requests() -> None:
    large = "x" * 5000
    async with serve(Options(max_body_bytes=3000)) as server:
        assert (await ask(server, message(large))).status == 413
        body = {"requests": [request("large", large)]}
        assert (await call(server, "POST", ANTHROPIC_BATCHES, body)).status == 200


async def test_members_are_paid_once_at_half_price_whether_or_not_they_are_fetched() -> None:
    clock = FakeClock()
    async with serve(SLOW, clock.now) as server:
        await call(server, "POST", ANTHROPIC_BATCHES, {"requests": [request("a", "1234"), request("b", "1234")]})
        assert (server.audit.calls, server.audit.batches[0]["status"]) == (0, "in_progress")
        clock.advance(5)
        assert server.audit.calls == 1
        clock.advance(5)
        assert server.audit.by_digest == {digest(message("1234")): 2}
        assert (await call(server, "GET", ANTHROPIC_BATCHES)).json()["data"][0]["request_counts"]["succeeded"] == 2
        assert server.audit.calls == 2
        assert server.audit.cost == 2 * 3  # live: 1 + 5 of play money


async def test_the_audit_lists_batches_in_the_order_of_creation_without_keys() -> None:
    clock = FakeClock(1_800_000_000)
    async with serve(SLOW, clock.now) as server:
        for key in ("secret-one", "secret-two"):
            await call(server, "POST", ANTHROPIC_BATCHES, members(2), x_api_key=key)
        clock.advance(10)
        found = (await call(server, "GET", "/_sim/audit")).json()["batches"]
    assert "secret" not in str(found)
    assert found[0]["account"] != found[1]["account"]
    assert found[0] == {
        "id": "msgbatch_sim_00000001",
        "provider": "anthropic",
        "account": found[0]["account"],
        "created_at": "2027-01-15T08:00:00Z",
        "status": "ended",
        "requests": 2,
        "succeeded": 2,
        "errored": 0,
        "canceled": 0,
        "expired": 0,
        "metadata": None,
        "models": ["claude-haiku-5-5"],
    }


async def test_a_reset_forgets_every_batch() -> None:
    async with anthropic_at() as (client, server):
        created = await client.messages.batches.create(requests=requests(1))
        assert (await call(server, "POST", "/_sim/reset")).status == 200
        assert [batch.id async for batch in client.messages.batches.list()] == []
        assert (server.audit.batches, server.audit.calls) == ((), 0)
        assert (await client.messages.batches.create(requests=requests(1))).id != created.id


@pytest.mark.parametrize("path", ["/nobody", "/nobody/results", "/a/b/c", "/"])
async def test_an_unknown_batch_is_not_found(path: str) -> None:
    async with serve() as server:
        answer = await call(server, "GET", ANTHROPIC_BATCHES + path)
    assert (answer.status, answer.json()["error"]["type"]) == (404, "not_found_error")


async def test_batches_need_a_key_too() -> None:
    async with serve(Options(key="right")) as server:
        assert (await call(server, "GET", ANTHROPIC_BATCHES, x_api_key="")).status == 401
        assert (await call(server, "GET", ANTHROPIC_BATCHES, x_api_key="wrong")).status == 401
        assert (await call(server, "GET", ANTHROPIC_BATCHES, x_api_key="right")).status == 200
    assert server.audit.statuses == {"401": 2, "200": 1}


async def test_the_results_are_where_the_client_reached_the_server() -> None:
    async with serve() as server:
        created = (await call(server, "POST", ANTHROPIC_BATCHES, members(1))).json()
        found = (await call(server, "GET", f"{ANTHROPIC_BATCHES}/{created['id']}", host="localhost:99")).json()
    assert found["results_url"].startswith("http://localhost:99/anthropic/")
