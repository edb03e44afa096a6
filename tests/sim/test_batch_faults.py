"""What goes wrong with batches: their requests, their members, and they as a whole."""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest

from muster.sim.faults import Faults
from muster.sim.files import read_faults
from muster.sim.options import Options
from muster.sim.server import Server, serve

from .batch_wire import (
    ANTHROPIC_BATCHES,
    OPENAI_BATCHES,
    OPENAI_FILES,
    call,
    form,
    jsonl,
    line,
    lines,
    members,
    request,
)
from .wire import Answer, ask, dial, message, one_fault, spell

BRIEFLY = 1.0
FORM = "multipart/form-data; boundary=xyz"


async def create_at_anthropic(server: Server, body: Any = None) -> str:
    answer = await call(server, "POST", ANTHROPIC_BATCHES, body or members(4))
    assert answer.status == 200
    return f"{ANTHROPIC_BATCHES}/{answer.json()['id']}"


async def create_at_openai(server: Server, values: list[Any] | None = None) -> str:
    file = await upload(server, jsonl(values or lines(4)))
    answer = await create_from(server, file.json()["id"])
    return f"{OPENAI_BATCHES}/{answer.json()['id']}"


async def upload(server: Server, data: bytes, boundary: str = "xyz") -> Answer:
    kind = f"multipart/form-data; boundary={boundary}"
    return await call(server, "POST", OPENAI_FILES, form(data, boundary), content_type=kind)


async def create_from(server: Server, file: str) -> Answer:
    body = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
    return await call(server, "POST", OPENAI_BATCHES, body)


async def get(server: Server, path: str) -> Answer:
    return await call(server, "GET", path)


async def results(server: Server, path: str) -> list[Any]:
    return [json.loads(found) for found in (await get(server, f"{path}/results")).body.splitlines()]


async def file_lines(server: Server, path: str, name: str) -> list[Any]:
    file = (await get(server, path)).json()[name]
    answer = await get(server, f"{OPENAI_FILES}/{file}/content")
    return [json.loads(found) for found in answer.body.splitlines()]


# Requests.


async def every_operation(server: Server) -> dict[str, int]:
    """The status of one request to every operation, in the order of a life."""
    statuses = {"live": (await ask(server, message())).status}
    created = await call(server, "POST", ANTHROPIC_BATCHES, members(1))
    one = f"{ANTHROPIC_BATCHES}/msgbatch_sim_00000001"
    statuses["batch_create"] = created.status
    uploaded = await upload(server, jsonl(lines(1)))
    file = f"{OPENAI_FILES}/file-sim-00000001"
    statuses["file_upload"] = uploaded.status
    for op, method, path in (
        ("batch_list", "GET", ANTHROPIC_BATCHES),
        ("batch_retrieve", "GET", one),
        ("batch_results", "GET", f"{one}/results"),
        ("batch_cancel", "POST", f"{one}/cancel"),
        ("batch_delete", "DELETE", one),
        ("file_list", "GET", OPENAI_FILES),
        ("file_retrieve", "GET", file),
        ("file_content", "GET", f"{file}/content"),
        ("file_delete", "DELETE", file),
    ):
        statuses[op] = (await call(server, method, path)).status
    return statuses


SOUND = {
    "live": 200,
    "batch_create": 200,
    "file_upload": 200,
    "batch_list": 200,
    "batch_retrieve": 200,
    "batch_results": 200,
    "batch_cancel": 400,
    "batch_delete": 200,
    "file_list": 200,
    "file_retrieve": 200,
    "file_content": 200,
    "file_delete": 200,
}


@pytest.mark.parametrize("op", [op for op in SOUND if op not in ("batch_create", "file_upload")])
async def test_a_fault_strikes_only_the_operation_it_is_aimed_at(op: str) -> None:
    async with serve(Options(faults=one_fault("529", op=op))) as server:
        assert await every_operation(server) == SOUND | {op: 529}
        assert server.audit.faults == {"529" if op == "live" else f"{op}/529": 1}


async def test_a_fault_without_an_operation_is_of_live_requests() -> None:
    async with serve(Options(faults=read_faults({"rates": {"500": 1}}))) as server:
        assert await every_operation(server) == SOUND | {"live": 500}


@pytest.mark.parametrize("kind", ["429", "500", "529"])
async def test_an_honest_error_tells_when_to_come_again(kind: str) -> None:
    async with serve(Options(faults=one_fault(kind, op="batch_create", retry_after=7))) as server:
        anthropic_says = await call(server, "POST", ANTHROPIC_BATCHES, members(1))
        openai_says = await create_from(server, (await upload(server, jsonl(lines(1)))).json()["id"])
    assert (anthropic_says.status, openai_says.status) == (int(kind), int(kind))
    assert (anthropic_says.headers["retry-after"], openai_says.headers["retry-after"]) == ("7", "7")
    assert server.audit.batches == ()


@pytest.mark.parametrize(("kind", "made"), [("cut_before", 0), ("cut_after", 1)])
async def test_a_create_is_cut_before_or_after_the_batch_exists(kind: str, made: int) -> None:
    async with serve(Options(faults=one_fault(kind, op="batch_create"))) as server:
        assert await cut(server, ANTHROPIC_BATCHES, json.dumps(members(2)).encode()) == b""
        assert len((await get(server, ANTHROPIC_BATCHES)).json()["data"]) == made
        file = (await upload(server, jsonl(lines(2)))).json()["id"]
        body = {"input_file_id": file, "endpoint": "/v1/chat/completions", "completion_window": "24h"}
        assert await cut(server, OPENAI_BATCHES, json.dumps(body).encode()) == b""
        assert len((await get(server, OPENAI_BATCHES)).json()["data"]) == made
        assert server.audit.calls == 4 * made


@pytest.mark.parametrize(("kind", "made"), [("cut_before", 0), ("cut_after", 1)])
async def test_an_upload_is_cut_before_or_after_the_file_exists(kind: str, made: int) -> None:
    async with serve(Options(faults=one_fault(kind, op="file_upload"))) as server:
        assert await cut(server, OPENAI_FILES, form(b"x"), content_type=FORM) == b""
        assert len((await get(server, OPENAI_FILES)).json()["data"]) == made


@pytest.mark.parametrize(("kind", "status"), [("cut_before", "in_progress"), ("cut_after", "ended")])
async def test_a_cancel_is_cut_before_or_after_it_is_done(kind: str, status: str) -> None:
    async with serve(Options(batch_ms=1e9, faults=one_fault(kind, op="batch_cancel"))) as server:
        path = await create_at_anthropic(server)
        assert await cut(server, f"{path}/cancel", b"") == b""
        assert (await get(server, path)).json()["processing_status"] == status


async def cut(server: Server, path: str, body: bytes, **headers: str) -> bytes:
    async with dial(server) as connection:
        connection.writer.write(spell(body, path, **headers))
        return await connection.reader.read()


@pytest.mark.parametrize(("counted", "made"), [(False, 0), (True, 1)])
async def test_a_create_that_times_out_may_have_made_a_batch(counted: bool, made: int) -> None:
    faults = one_fault("timeout", op="batch_create", counted=counted)
    async with serve(Options(faults=faults)) as server, dial(server) as connection:
        connection.send(members(1), ANTHROPIC_BATCHES)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(connection.reader.read(1), BRIEFLY)
        assert len(server.audit.batches) == made


async def test_a_scripted_fault_counts_the_requests_of_its_own_operation() -> None:
    faults = read_faults({"script": [{"fault": "500", "op": "batch_retrieve", "nth": 2, "times": 2}]})
    async with serve(Options(faults=faults)) as server:
        path = await create_at_anthropic(server)
        statuses = [(await get(server, path)).status for _ in range(4)]
        assert (await get(server, ANTHROPIC_BATCHES)).status == 200
    assert statuses == [200, 500, 500, 200]


async def test_by_rate_the_same_upload_meets_the_same_fault_whatever_its_boundary() -> None:
    faults = read_faults({"seed": 3, "rates": {"file_upload/500": 0.5}})
    found = []
    for boundary in ("xyz", "another"):
        async with serve(Options(faults=faults)) as server:
            found.append([(await upload(server, b"%d" % n, boundary)).status for n in range(20)])
    assert found[0] == found[1]
    assert set(found[0]) == {200, 500}


async def test_one_batch_meets_at_most_so_many_faults_of_an_operation() -> None:
    faults = read_faults({"rates": {"batch_retrieve/500": 1}, "at_most_per_digest": 2})
    async with serve(Options(faults=faults)) as server:
        for path in (await create_at_anthropic(server), await create_at_anthropic(server)):
            assert [(await get(server, path)).status for _ in range(4)] == [500, 500, 200, 200]


@pytest.mark.parametrize("kind", ["truncated", "garbage"])
async def test_a_retrieve_may_be_sound_http_and_no_json(kind: str) -> None:
    async with serve(Options(faults=one_fault(kind, op="batch_retrieve"))) as server:
        answer = await get(server, await create_at_anthropic(server))
    assert answer.status == 200
    with pytest.raises(json.JSONDecodeError):
        answer.json()


# The results as they are sent.


async def paths_of_results(server: Server, count: int = 6) -> tuple[str, str]:
    batch = await get(server, await create_at_openai(server, lines(count)))
    anthropic_path = await create_at_anthropic(server, members(count))
    return f"{anthropic_path}/results", f"{OPENAI_FILES}/{batch.json()['output_file_id']}/content"


def of_results(kind: str, **more: Any) -> Faults:
    cues = [{"fault": kind, "op": op, "times": "always", **more} for op in ("batch_results", "file_content")]
    return read_faults({"script": cues})


async def test_truncated_results_end_soundly_in_the_middle_of_a_line() -> None:
    async with serve(Options(faults=of_results("truncated"))) as server:
        answers = [await get(server, path) for path in await paths_of_results(server)]
    for answer in answers:
        *whole, last = answer.body.splitlines()
        assert [type(json.loads(found)) for found in whole] == [dict] * 3
        with pytest.raises(json.JSONDecodeError):
            json.loads(last)


async def test_slow_results_come_whole() -> None:
    async with serve(Options(faults=of_results("slow_stream", gap_ms=1))) as server, serve() as quick:
        slow = [(await get(server, path)).body for path in await paths_of_results(server)]
        assert slow == [(await get(quick, path)).body for path in await paths_of_results(quick)]


async def test_stalled_results_stop_in_the_middle_for_ever() -> None:
    async with serve(Options(faults=of_results("stalled_stream"))) as server:
        for path in await paths_of_results(server):
            async with dial(server) as connection:
                connection.writer.write(spell(b"", path, "GET"))
                assert (await connection.head())[0] == 200
                chunks = connection.chunks()
                assert (await anext(chunks)).count(b"\n") == 3
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(chunks), BRIEFLY)


async def test_cut_results_end_without_their_last_chunk() -> None:
    async with serve(Options(faults=of_results("cut_stream"))) as server:
        for path in await paths_of_results(server):
            async with dial(server) as connection:
                connection.writer.write(spell(b"", path, "GET"))
                received = await connection.reader.read()
            assert received.count(b'"custom_id"') == 4
            assert not received.endswith(b"0\r\n\r\n")


async def test_garbage_comes_instead_of_results() -> None:
    async with serve(Options(faults=of_results("garbage"))) as server:
        answers = [await get(server, path) for path in await paths_of_results(server)]
    assert [(answer.status, answer.body[:6]) for answer in answers] == [(200, b"<html>")] * 2


# Members.


def of_member(kind: str, text: str = "^r1$") -> Options:
    return Options(faults=one_fault(kind, op="member", text=text))


@pytest.mark.parametrize(
    ("kind", "kind_at_anthropic"),
    [
        ("500", "api_error"),
        ("529", "overloaded_error"),
        ("429", "rate_limit_error"),
        ("400", "invalid_request_error"),
        ("404", "not_found_error"),
    ],
)
async def test_a_member_may_fail_and_is_not_paid(kind: str, kind_at_anthropic: str) -> None:
    async with serve(of_member(kind)) as server:
        found = {item["custom_id"]: item for item in await results(server, await create_at_anthropic(server))}
        path = await create_at_openai(server)
        [failed] = await file_lines(server, path, "error_file_id")
        counts = (await get(server, path)).json()["request_counts"]
    assert found["r1"]["result"]["error"]["error"]["type"] == kind_at_anthropic
    assert Counter(item["result"]["type"] for item in found.values()) == Counter(succeeded=3, errored=1)
    assert (failed["custom_id"], failed["response"]["status_code"]) == ("r1", int(kind))
    assert failed["response"]["body"]["error"]["message"]
    assert counts == {"total": 4, "completed": 3, "failed": 1}
    assert (server.audit.calls, server.audit.faults) == (6, {f"member/{kind}": 2})


async def test_a_member_may_expire_and_is_not_paid() -> None:
    async with serve(of_member("expired")) as server:
        found = {item["custom_id"]: item["result"] for item in await results(server, await create_at_anthropic(server))}
        path = await create_at_openai(server)
        [failed] = await file_lines(server, path, "error_file_id")
        assert (await get(server, path)).json()["status"] == "completed"
    assert found["r1"] == {"type": "expired"}
    assert (failed["custom_id"], failed["error"]["code"]) == ("r1", "batch_expired")
    assert [batch["expired"] for batch in server.audit.batches] == [1, 1]
    assert server.audit.calls == 6


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("duplicate", ["r0", "r1", "r1", "r2", "r3"]),
        ("missing", ["r0", "r2", "r3"]),
        ("unknown_id", ["nobody-sent-this", "r0", "r1", "r2", "r3"]),
    ],
)
async def test_lines_may_be_too_many_or_too_few_and_all_are_paid(kind: str, expected: list[str]) -> None:
    async with serve(of_member(kind)) as server:
        anthropic_says = await results(server, await create_at_anthropic(server))
        openai_says = await file_lines(server, await create_at_openai(server), "output_file_id")
    assert sorted(item["custom_id"] for item in anthropic_says) == expected
    assert sorted(item["custom_id"] for item in openai_says) == expected
    assert [batch["succeeded"] for batch in server.audit.batches] == [4, 4]
    assert server.audit.calls == 8


async def test_a_line_may_be_cut_in_the_middle_of_the_others() -> None:
    async with serve(of_member("truncated")) as server:
        path = await create_at_anthropic(server)
        found = (await get(server, f"{path}/results")).body.splitlines()
    sound = [item for item in found if item.endswith(b"}}")]
    assert (len(found), len(sound)) == (4, 3)
    assert server.audit.calls == 4


async def test_member_faults_by_rate_depend_on_the_request_and_end() -> None:
    faults = read_faults({"seed": 1, "rates": {"member/500": 0.3, "missing": 0.2}, "at_most_per_digest": 1})
    texts = [request(f"r{number}", f"text {number}") for number in range(100)]
    async with serve(Options(faults=faults)) as one, serve(Options(faults=faults)) as two:
        first = await outcomes(one, texts)
        assert await outcomes(two, texts[::-1]) == first
        assert 15 < list(first.values()).count("errored") < 45
        assert 70 < len(first) < 90
        left = [item for item in texts if first.get(item["custom_id"]) != "succeeded"]
        assert set((await outcomes(one, left)).values()) == {"succeeded"}
        assert (await ask(one, message())).status == 200


async def outcomes(server: Server, batch: list[Any]) -> dict[str, str]:
    path = await create_at_anthropic(server, {"requests": batch})
    return {item["custom_id"]: item["result"]["type"] for item in await results(server, path)}


async def test_member_faults_may_wait_for_a_model() -> None:
    async with serve(Options(faults=one_fault("500", op="member", model="gpt-*"))) as server:
        path = await create_at_anthropic(server)
        assert (await get(server, path)).json()["request_counts"]["errored"] == 0


# Whole batches.


def of_batch(kind: str, **more: Any) -> Options:
    return Options(faults=one_fault(kind, **more))


async def test_a_batch_may_expire_half_done() -> None:
    async with serve(of_batch("expiry")) as server:
        path = await create_at_anthropic(server)
        assert (await get(server, path)).json()["processing_status"] == "ended"
        kinds = Counter(item["result"]["type"] for item in await results(server, path))
        other = await create_at_openai(server)
        assert (await get(server, other)).json()["status"] == "expired"
        assert len(await file_lines(server, other, "output_file_id")) == 2
        assert {item["error"]["code"] for item in await file_lines(server, other, "error_file_id")} == {"batch_expired"}
    assert kinds == Counter(succeeded=2, expired=2)
    assert server.audit.calls == 4


async def test_a_batch_may_not_be_valid() -> None:
    async with serve(of_batch("validation_failure")) as server:
        refused = await call(server, "POST", ANTHROPIC_BATCHES, members(1))
        failed = (await get(server, await create_at_openai(server))).json()
    assert (refused.status, refused.json()["error"]["type"]) == (400, "invalid_request_error")
    assert (failed["status"], failed["errors"]["data"][0]["code"]) == ("failed", "invalid_batch")
    assert [batch["provider"] for batch in server.audit.batches] == ["openai"]
    assert server.audit.calls == 0


async def test_a_batch_may_be_found_late_and_its_results_too() -> None:
    async with serve(of_batch("late_404", looks=2)) as server:
        path = await create_at_anthropic(server)
        assert [(await get(server, path)).status for _ in range(4)] == [404, 404, 200, 200]
        assert [(await get(server, f"{path}/results")).status for _ in range(4)] == [404, 404, 200, 200]
        other = await create_at_openai(server)
        assert [(await get(server, other)).status for _ in range(4)] == [404, 404, 200, 200]
        output = f"{OPENAI_FILES}/{(await get(server, other)).json()['output_file_id']}/content"
        assert [(await get(server, output)).status for _ in range(4)] == [404, 404, 200, 200]


async def test_a_status_may_be_a_new_word_for_a_while() -> None:
    async with serve(of_batch("unknown_status", looks=2)) as server:
        path, other = await create_at_anthropic(server), await create_at_openai(server)
        anthropic_says = [(await get(server, path)).json()["processing_status"] for _ in range(3)]
        openai_says = [(await get(server, other)).json()["status"] for _ in range(3)]
    assert anthropic_says == ["pondering", "pondering", "ended"]
    assert openai_says == ["pondering", "pondering", "completed"]


async def test_an_ended_batch_may_not_tell_where_its_results_are_for_a_while() -> None:
    async with serve(of_batch("no_results_url", looks=2)) as server:
        path, other = await create_at_anthropic(server), await create_at_openai(server)
        looks = [(await get(server, path)).json() for _ in range(3)]
        others = [(await get(server, other)).json() for _ in range(3)]
    assert [(look["processing_status"], look["results_url"] is None) for look in looks] == [
        ("ended", True),
        ("ended", True),
        ("ended", False),
    ]
    assert [(look["status"], look["output_file_id"] is None) for look in others] == [
        ("completed", True),
        ("completed", True),
        ("completed", False),
    ]


async def test_the_results_may_be_said_to_be_elsewhere() -> None:
    async with serve(of_batch("foreign_results_url")) as server:
        path = await create_at_anthropic(server)
        urls = [(await get(server, path)).json()["results_url"] for _ in range(2)]
        assert len(await results(server, path)) == 4
    assert urls == [f"http://127.0.0.2:9{path}/results", f"http://sim{path}/results"]


async def test_a_fault_of_a_batch_waits_for_its_batch() -> None:
    faults = read_faults({"script": [{"fault": "expiry", "nth": 2}]})
    async with serve(Options(faults=faults)) as server:
        for _ in range(3):
            await create_at_anthropic(server)
        assert [batch["expired"] for batch in server.audit.batches] == [0, 2, 0]
        assert server.audit.faults == {"batch/expiry": 1}


async def test_faults_of_batches_by_rate_depend_on_what_is_in_them() -> None:
    faults = read_faults({"seed": 2, "rates": {"expiry": 0.5}})
    found = []
    for order in (range(20), range(19, -1, -1)):
        async with serve(Options(faults=faults)) as server:
            expired = {}
            for number in order:
                path = await create_at_openai(server, [line("a", f"text {number}"), line("b")])
                expired[number] = (await get(server, path)).json()["status"]
            found.append(expired)
    assert found[0] == found[1]
    assert set(found[0].values()) == {"expired", "completed"}
