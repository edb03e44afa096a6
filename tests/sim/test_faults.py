"""Faults on the wire, and what of them is paid."""

import asyncio
import json

import pytest

from muster.sim.faults import Fault, FaultKind, FaultPlan, Faults
from muster.sim.files import read_faults
from muster.sim.options import Options
from muster.sim.server import serve

from .wire import OPENAI, Line, ask, dial, message, one_fault

BRIEFLY = 1.0


@pytest.mark.parametrize(("kind", "paid"), [("cut_before", 0), ("cut_after", 1)])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_connection_is_cut_without_a_byte(kind: str, paid: int, stream: bool) -> None:
    async with serve(Options(faults=one_fault(kind))) as server, dial(server) as line:
        line.send(message(stream=stream))
        assert await line.reader.read() == b""
        audit = server.audit
    assert (audit.calls, audit.requests, audit.statuses, audit.faults) == (paid, 1, {}, {kind: 1})


@pytest.mark.parametrize(("counted", "paid"), [(False, 0), (True, 1)])
async def test_a_timeout_never_answers(counted: bool, paid: int) -> None:
    async with serve(Options(faults=one_fault("timeout", counted=counted))) as server, dial(server) as line:
        line.send(message())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(line.reader.read(1), BRIEFLY)
        assert server.audit.calls == paid


async def test_a_truncated_answer_is_sound_http_and_half_json() -> None:
    async with serve(Options(faults=one_fault("truncated"))) as server:
        answer = await ask(server, message())
    assert answer.status == 200
    assert answer.body.startswith(b'{"id":"msg_sim_')
    with pytest.raises(json.JSONDecodeError):
        answer.json()
    assert server.audit.calls == 1


async def test_a_truncated_stream_ends_soundly_before_its_last_event() -> None:
    async with serve(Options(faults=one_fault("truncated"))) as server:
        answer = await ask(server, message(stream=True))
    assert b"message_start" in answer.body
    assert b"message_stop" not in answer.body


@pytest.mark.parametrize("stream", [False, True])
async def test_garbage_has_status_200_and_is_paid(stream: bool) -> None:
    async with serve(Options(faults=one_fault("garbage"))) as server:
        answer = await ask(server, message(stream=stream))
    assert (answer.status, answer.body[:6]) == (200, b"<html>")
    assert server.audit.calls == 1


@pytest.mark.parametrize("path", ["/anthropic/v1/messages", OPENAI])
async def test_a_stalled_stream_stops_in_the_middle_for_ever(path: str) -> None:
    async with serve(Options(faults=one_fault("stalled_stream"))) as server, dial(server) as line:
        line.send(message("a text of several pieces, long enough", stream=True), path)
        assert (await line.head())[0] == 200
        received: list[bytes] = []
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(gather(line, received), BRIEFLY)
        assert received
        assert not any(b"message_stop" in event or b"[DONE]" in event for event in received)
        assert server.audit.calls == 1


async def gather(line: Line, received: list[bytes]) -> None:
    async for event in line.chunks():
        received.append(event)  # noqa: PERF401 - what came must be kept when the time is over


async def test_a_cut_stream_ends_in_the_middle_and_is_paid() -> None:
    async with serve(Options(faults=one_fault("cut_stream"))) as server, dial(server) as line:
        line.send(message(stream=True))
        received = await line.reader.read()
    assert b"message_start" in received
    assert b"message_stop" not in received
    assert not received.endswith(b"0\r\n\r\n")
    assert server.audit.calls == 1


@pytest.mark.parametrize("kind", ["cut_stream", "stalled_stream"])
async def test_faults_of_streams_disturb_plain_answers_too(kind: str) -> None:
    async with serve(Options(faults=one_fault(kind))) as server, dial(server) as line:
        line.send(message())
        status, headers = await line.head()
        assert status == 200
        with pytest.raises((TimeoutError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(line.reader.readexactly(int(headers["content-length"])), BRIEFLY)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_slow_answer_comes_whole(stream: bool) -> None:
    slow = one_fault("slow_stream", gap_ms=1)
    async with serve(Options(faults=slow)) as server, serve() as quick:
        assert (await ask(server, message(stream=stream))).body == (await ask(quick, message(stream=stream))).body


async def test_a_request_beyond_the_capacity_gets_429() -> None:
    faults = read_faults({"capacity": 2, "retry_after": 2, "script": [{"fault": "timeout", "times": 2}]})
    async with serve(Options(capacity=9, faults=faults)) as server, dial(server) as one, dial(server) as two:
        one.send(message("one"))
        two.send(message("two"))
        while server.audit.max_in_flight < 2:
            await ask(server, b"", "/anthropic/other")
        refused = await ask(server, message("three"))
        assert (refused.status, refused.headers["retry-after"]) == (429, "2")
        assert (server.audit.calls, server.audit.max_in_flight) == (2, 2)


async def test_without_retry_after_no_such_header_is_sent() -> None:
    async with serve(Options(faults=one_fault("429"))) as server:
        assert "retry-after" not in (await ask(server, message())).headers


@pytest.mark.parametrize(("given", "sent"), [(604800, "604800"), (1.5, "1.5"), (0, "0"), (1e9, "1000000000")])
async def test_retry_after_is_sent_as_given(given: float, sent: str) -> None:
    async with serve(Options(faults=one_fault("529", retry_after=given))) as server:
        assert (await ask(server, message())).headers["retry-after"] == sent


async def test_a_scripted_fault_waits_for_its_request() -> None:
    faults = read_faults({"script": [{"fault": 429, "nth": 3}, {"fault": 500, "text": "boom", "times": 2}]})
    async with serve(Options(faults=faults)) as server:
        statuses = [(await ask(server, message(text))).status for text in ("boom", "a", "b", "boom", "boom", "c")]
    assert statuses == [500, 200, 429, 500, 200, 200]


async def test_a_scripted_fault_may_wait_for_a_model() -> None:
    async with serve(Options(faults=one_fault("529", model="claude-*"))) as server:
        assert (await ask(server, message())).status == 529
        assert (await ask(server, message(model="other"))).status == 200


def test_faults_by_rate_do_not_depend_on_the_order_of_arrival() -> None:
    faults = read_faults({"seed": 7, "rates": {"429": 0.2, "cut_after": 0.2, "500": 0.1}})
    sent = [f"digest{number % 100}" for number in range(300)]
    assert picks(faults, sent) == picks(faults, sorted(sent, reverse=True))


def picks(faults: Faults, sent: list[str]) -> dict[str, list[Fault | None]]:
    plan, found = FaultPlan(faults), dict[str, list[Fault | None]]()
    for digest in sent:
        found.setdefault(digest, []).append(plan.pick(digest, "m", "t"))
    return found


def test_another_seed_picks_other_faults() -> None:
    sent = [f"digest{number}" for number in range(100)]
    one, two = (read_faults({"seed": seed, "rates": {"429": 0.5}}) for seed in (1, 2))
    assert picks(one, sent) != picks(two, sent)


def test_rates_are_kept() -> None:
    plan = FaultPlan(read_faults({"rates": {"429": 0.1, "500": 0.2}}))
    found = [plan.pick(f"digest{number}", "m", "t") for number in range(5000)]
    kinds = [fault.kind for fault in found if fault]
    assert 400 < kinds.count(FaultKind.RATE_LIMITED) < 600
    assert 850 < kinds.count(FaultKind.BROKEN) < 1150


def test_one_request_meets_at_most_so_many_faults() -> None:
    plan = FaultPlan(read_faults({"rates": {"500": 1}, "at_most_per_digest": 2}))
    assert [plan.pick("d", "m", "t") is None for _ in range(4)] == [False, False, True, True]
    assert plan.pick("other", "m", "t") is not None
