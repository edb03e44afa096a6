"""Runs as they go on, from a real server: every number once, whoever is slow, killed or wrong."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest

from muster.agents.http.sse import EventParser
from muster.app.views.battles import battle_status_view, messages_view, scale_status_view
from muster.client import ServiceClient, ServiceUpdate
from muster.domain.errors import NotFound
from muster.text.views import plain

from .raw import RawStream, RawWatcher
from .served import ServedStore

TOKENS = """
[[tokens]]
name = "reader"
secret_env = "READER"
scopes = ["read", "admin"]  # so it sees runs that it did not start

[[tokens]]
name = "starter"
secret_env = "STARTER"
scopes = ["start"]
"""
READER, STARTER = "reader-secret-0123456789", "starter-secret-0123456789"


@asynccontextmanager
async def served(folder: Path, **rest: object) -> AsyncIterator[tuple[ServedStore, ServiceClient]]:
    async with ServedStore(folder, **rest) as server, ServiceClient(server.url) as client:  # type: ignore[arg-type]
        yield server, client


async def everything(client: ServiceClient, run: str, after: int = 0) -> list[ServiceUpdate]:
    return [update async for update in client.follow(run, after=after)]


def numbers(updates: list[ServiceUpdate]) -> list[int | None]:
    return [update.seq for update in updates if update.name in ("event", "status")]


async def test_a_stream_gives_every_event_and_ends_with_the_run(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("ticks", {"count": 30, "pause": 0.01})
        updates = await everything(client, run)
        assert numbers(updates) == list(range(1, len(updates)))
        assert [update.name for update in updates][-2:] == ["status", "end"]
        assert updates[-1].data["state"] == "completed"
        assert (await client.get(run)).data["result"] == {"ticks": 30}


async def test_polling_gives_the_same_facts(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("ticks", {"count": 25})
        streamed = await everything(client, run)
        polled: list[ServiceUpdate] = []
        while page := await client.events(run, after=len(polled), limit=7):
            polled += page
        told = [update.data for update in streamed if not update.is_end]
        assert [update.data for update in polled] == told
        assert [one["state"] for one in told if "state" in one] == ["queued", "running", "completed"]
        whole = (await client.get(run)).data
        end = streamed[-1].data
        assert {name: whole[name] for name in end if name in whole} == {
            name: end[name] for name in end if name in whole
        }


async def test_the_head_of_a_stream_forbids_buffering_and_its_body_says_when_to_connect_again(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("ticks", {"count": 1})
        await client.wait(run)
        for path, headers in (
            (f"/api/stream/{run}", ()),
            (f"/api/battles/{run}/stream", ()),
            (f"/api/runs/{run}/events", ("Accept: text/event-stream",)),
        ):
            head, body = await asyncio.to_thread(RawStream(server.port, path, *headers).read)
            assert b"200 OK" in head
            assert b"content-type: text/event-stream" in head
            assert b"cache-control: no-store, no-transform" in head
            assert b"x-accel-buffering: no" in head
            assert body.startswith(b"retry: 2000\n\n")
            assert [one.name for one in EventParser().feed(body)] == ["status", "status", "event", "status", "end"]


async def test_a_client_goes_on_after_its_last_event(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("ticks", {"count": 5})
        await client.wait(run)
        for path, *headers in (
            (f"/api/stream/{run}", "Last-Event-ID: 6"),
            (f"/api/stream/{run}?lastEventId=6",),
            (f"/api/stream/{run}?lastEventId=2", "Last-Event-ID: 6"),
            (f"/api/runs/{run}/events?after=6", "Accept: text/event-stream"),
        ):
            events = await asyncio.to_thread(RawStream(server.port, path, *headers).events)
            assert [one.id for one in events] == ["7", "8", "8"]
        events = await asyncio.to_thread(RawStream(server.port, f"/api/stream/{run}", "Last-Event-ID: 8").events)
        assert [(one.name, one.id) for one in events] == [("end", "8")]


@pytest.mark.parametrize("given", ["abc", "-1", "1.5"])
async def test_a_last_event_id_that_is_not_a_number_is_refused(tmp_path: Path, given: str) -> None:
    async with served(tmp_path) as (server, _):
        run = await server.submit("ticks", {"count": 1})
        stream = RawStream(server.port, f"/api/stream/{run}", f"Last-Event-ID: {given}")
        head, body = await asyncio.to_thread(stream.read)
        assert b"400 Bad Request" in head
        assert json.loads(body)["error"]["code"] == "bad_argument"


async def test_a_last_event_id_from_the_future_is_told_and_everything_begins_anew(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("ticks", {"count": 1})
        await client.wait(run)
        events = await asyncio.to_thread(RawStream(server.port, f"/api/stream/{run}", "Last-Event-ID: 99999").events)
        assert [(one.name, one.id) for one in events[:2]] == [("resync", "0"), ("status", "1")]
        assert json.loads(events[0].data)["reason"] == "ahead"
        assert events[-1].name == "end"


async def test_a_stream_is_refused_before_it_begins(tmp_path: Path) -> None:
    variables = {"READER": READER, "STARTER": STARTER}
    async with served(tmp_path, toml=TOKENS, variables=variables) as (server, _):
        run = await server.submit("ticks", {"count": 1})

        async def status(path: str, *headers: str) -> bytes:
            head, body = await asyncio.to_thread(RawStream(server.port, path, *headers).read)
            assert b"application/json" in head
            assert json.loads(body)["error"]["request_id"]
            return head.split(b" ", 2)[1]

        reader = f"Authorization: Bearer {READER}"
        assert await status(f"/api/stream/{run}") == b"401"
        assert await status("/api/stream/nobody") == b"401"
        assert await status(f"/api/stream/{run}", "Authorization: Bearer wrong-secret-0123456") == b"401"
        assert await status(f"/api/stream/{run}", f"Authorization: Bearer {STARTER}") == b"403"
        assert await status("/api/stream/nobody", reader) == b"404"
        async with ServiceClient(server.url, token=READER) as client:
            assert (await client.wait(run)).state == "completed"


async def test_a_hundred_watchers_see_the_same(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("ticks", {"count": 60, "pause": 0.01})
        found = await asyncio.gather(*(everything(client, run) for _ in range(100)))
        assert numbers(found[0]) == list(range(1, 64))
        assert all(updates == found[0] for updates in found)


async def test_a_server_that_is_killed_and_started_again_loses_and_repeats_no_event(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("ticks", {"count": 150, "pause": 0.02})
        up = asyncio.Event()
        up.set()
        raw = RawWatcher(server.port, run, up)
        watching = asyncio.create_task(raw.follow())
        seen: list[ServiceUpdate] = []
        async with aclosing(client.follow(run)) as updates:
            async for update in updates:
                seen.append(update)
                if update.seq in (30, 90) and update.name == "event":
                    up.clear()
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
                    up.set()
        kinds = [update.data.get("kind") for update in seen]
        assert kinds.count("run.interrupted") == kinds.count("run.resumed") == 2
        assert numbers(seen) == list(range(1, len(seen)))
        assert kinds.count("tick") == 150
        assert seen[-1].data["state"] == "completed"
        await watching
        assert raw.ids == numbers(seen)
        assert raw.connections == 3


async def test_a_server_that_stops_ends_its_streams_and_another_goes_on_with_them(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("waits", {})
        raw = RawStream(server.port, f"/api/stream/{run}")
        seen: list[ServiceUpdate] = []
        async with aclosing(client.follow(run)) as updates:
            async for update in updates:
                seen.append(update)
                if update.data.get("kind") == "run.waiting":
                    break
            assert await asyncio.to_thread(server.stop) == 0
            events = await asyncio.to_thread(raw.events)  # to its last chunk
            assert [one.id for one in events] == [str(update.seq) for update in seen]
            await asyncio.to_thread(server.start)
            await server.send(run, "go")
            seen += [update async for update in updates]
        assert numbers(seen) == list(range(1, len(seen)))
        assert seen[-1].is_end


async def test_a_client_that_does_not_read_is_dropped_and_slows_nobody(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("flood", {"pages": 30, "bytes": 8_000})
        stuck = RawStream(server.port, f"/api/stream/{run}", buffer=4096)
        following = [asyncio.ensure_future(everything(client, run)) for _ in range(2)]
        await server.send(run, "begin")
        for updates in await asyncio.gather(*following):  # while nobody reads from the other connection
            assert numbers(updates) == list(range(1, len(updates)))
            assert len(updates) > 3_000
        events = await asyncio.to_thread(stuck.events)
        *stored, last = events
        assert last.name == "resync"
        told = json.loads(last.data)
        assert (told["reason"], told["after"]) == ("slow", len(stored))
        assert [one.id for one in stored] == [str(number) for number in range(1, len(stored) + 1)]
        rest = await everything(client, run, after=len(stored))
        assert numbers(rest)[0] == len(stored) + 1
        assert rest[-1].is_end


WRITER = """
[agents.writer]
kind = "cli"
command = ["sh", "-c", '''
  echo '{"d": "once "}'
  while ! test -e seen; do sleep 0.1; done
  echo '{"d": "upon"}'
  echo '{"a": "once upon"}'
''']
output = "jsonl"
delta = "$.d"
answer = "$.a"
ends = "$.a"
budget_usd = 1.00
"""


async def test_a_reply_is_told_while_it_is_written_without_an_id(tmp_path: Path) -> None:
    async with served(tmp_path, toml=WRITER) as (server, client):
        run = await server.submit("ask", {"agent": "writer", "prompt": "tell me", "stream": True})
        updates: list[ServiceUpdate] = []
        async for update in client.follow(run):
            updates.append(update)
            if update.name == "delta":
                (tmp_path / "seen").touch()  # only now the agent goes on
        delta = next(update for update in updates if update.name == "delta")
        assert delta.seq is None
        assert delta.data == {"run": run, "key": "ask", "offset": 0, "text": "once "}
        assert numbers(updates) == list(range(1, (updates[-1].seq or 0) + 1))
        assert updates[-1].data["state"] == "completed"


async def test_the_last_events_of_a_stopping_server_are_in_its_streams(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("ticks", {"count": 10_000, "pause": 0.01})
        raw = RawStream(server.port, f"/api/stream/{run}")
        async with aclosing(client.follow(run)) as updates:
            async for update in updates:
                if update.name == "event":
                    break
        assert await asyncio.to_thread(server.stop) == 0
        events = await asyncio.to_thread(raw.events)
        assert json.loads(events[-1].data)["kind"] == "run.interrupted"
        assert [one.id for one in events] == [str(number) for number in range(1, len(events) + 1)]


async def test_a_server_with_a_low_limit_of_files_takes_more_connections_than_that(tmp_path: Path) -> None:
    async with served(tmp_path, files=150) as (server, client):
        run = await server.submit("waits", {})
        following = [asyncio.ensure_future(everything(client, run)) for _ in range(200)]
        await server.send(run, "go")
        for updates in await asyncio.gather(*following):
            assert updates[-1].is_end


async def test_a_run_that_is_deleted_ends_its_streams_and_is_not_found_again(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        run = await server.submit("waits", {})
        async with aclosing(client.follow(run)) as updates:
            async for update in updates:
                if update.data.get("kind") == "run.waiting":
                    break
            async with server.opened() as m:
                await m.runs.cancel(run)
                await m.runs.delete([run])
            with suppress(NotFound):  # when it was gone before its end was told
                assert [update async for update in updates][-1].is_end
        with pytest.raises(NotFound):
            await client.get(run)


async def test_the_messages_of_a_battle_are_told_as_polling_gives_them(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client):
        async with server.opened() as m:
            spec = m.battles.spec("sim/echo", "sim/echo", user_message="hello", message_limit=2)
            run = (await m.battles.submit(spec)).id
            updates = await everything(client, run)
            polled = plain(messages_view(await m.battles.messages(run)))
        assert [update.data for update in updates if update.name == "message"] == polled["messages"]
        assert len(polled["messages"]) == 4
        assert [update.seq for update in updates] == [*range(1, len(updates)), len(updates) - 1]


async def test_the_status_of_battles_and_scale_tests_is_told_as_polling_gives_it(tmp_path: Path) -> None:
    async with served(tmp_path) as (server, client), server.opened() as m:
        battle = m.battles.spec("sim/echo", "sim/echo", user_message="hello", message_limit=2)
        for run, view, poll in (
            ((await m.battles.submit(battle)).id, battle_status_view, m.battles.status),
            ((await m.battles.scales.submit(m.battles.scales.spec(battle, runs=3, concurrency=1))).id,
             scale_status_view, m.battles.scales.status),
        ):  # fmt: skip
            live = await everything(client, run)
            wanted = plain(view(await poll(run)))
            told = [update.data for update in live if update.name in ("status", "end")]
            assert {name: told[-1][name] for name in wanted} == wanted  # of `end`
            assert {name: told[-2][name] for name in wanted} == wanted
            assert all(set(wanted) <= set(one) for one in told)
            assert told[0]["progress"] == 0
            assert [one["progress"] for one in told] == sorted(one["progress"] for one in told)
            again = [update.data for update in await everything(client, run) if update.name in ("status", "end")]
            assert again == told
            polled = [update.data for update in await client.events(run) if "state" in update.data]
            assert polled == told[:-1]
        assert [one["completed"] for one in told] == [0, 0, 1, 2, 3, 3, 3]
        assert [len(one["conversationIds"]) for one in told][0::6] == [0, 3]
