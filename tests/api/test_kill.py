"""kill -9 of the server in the middle of battles and scale tests: all finish, and nothing is lost or doubled."""

import asyncio
import json
from contextlib import aclosing

import pytest

from muster.client import ServiceClient

from .raw import RawWatcher
from .server import SETTINGS, Project, Server

JUDGE = '[agents.judge]\nkind = "scripted"\nscript = "judge.yaml"\n'
SCRIPT = {"otherwise": json.dumps({"verdict": "no", "confidence": 0.1, "criteria": ["said"], "reason": "not yet"})}
BATTLE = {
    "agentId": "sim/slow",
    "counterpart": "sim/echo",
    "messageLimit": 3,
    "userMessage": "hello",
    "goal": "say goodbye",
    "judge": "judge",
}
MANY = SETTINGS.replace("[serve]", "[serve]\nruns = 40\nbattles = 26")
BATTLES = [f"battle-{number}" for number in range(20)]
SCALES = [f"scale-{number}" for number in range(3)]


def start_all(server: Server) -> None:
    for run in BATTLES:
        assert server.post("/api/battles/start", {**BATTLE, "id": run}).status == 202
    for run in SCALES:
        body = {**BATTLE, "id": run, "runCount": 2, "concurrency": 2, "reviser": None}
        assert server.post("/api/scale/start", body).status == 202


async def until_one_says(client: ServiceClient, messages: int) -> None:
    """Wait until the first battle has so many messages."""
    async with aclosing(client.follow(BATTLES[0])) as updates:
        async for update in updates:
            messages -= update.name == "message"
            if not messages:
                return


def require_whole(server: Server, run: str) -> None:
    messages = server.get(f"/api/battles/{run}/messages").json["messages"]
    assert [one["seq"] for one in messages] == [1, 2, 3, 4, 5, 6]
    assert [one["role"] for one in messages] == ["user", "assistant"] * 3
    decisions = server.get(f"/api/battles/{run}/decisions").json
    assert [(one["turn"], one["stage"], one["verdict"]) for one in decisions] == [(n, "judge", "no") for n in (1, 2, 3)]


def require_once(server: Server, seen: RawWatcher) -> None:
    """What stood on the wire has every number once and in order, to the end, and every message that is stored."""
    assert seen.ids == list(range(1, len(seen.ids) + 1))
    assert seen.events[-1].name == "end"
    assert json.loads(seen.events[-1].data)["state"] == "completed"
    if seen.run in BATTLES:
        stored = server.get(f"/api/battles/{seen.run}/messages").json["messages"]
        assert [json.loads(one.data) for one in seen.events if one.name == "message"] == stored


def require_all(server: Server, watchers: list[RawWatcher]) -> None:
    for watcher in watchers:
        require_once(server, watcher)
    for run in SCALES:
        status = server.get(f"/api/scale/{run}/status").json
        assert (status["completed"], status["counts"]["limit"]) == (2, 2)
        for conversation in status["conversationIds"]:
            require_whole(server, conversation)
    for run in BATTLES:
        require_whole(server, run)


@pytest.mark.parametrize("kills", [(2,), pytest.param((1, 2, 4, 5), marks=pytest.mark.chaos)], ids=["once", "often"])
async def test_after_a_kill_all_finish_and_a_watcher_sees_everything_once(
    project: Project, kills: tuple[int, ...]
) -> None:
    (project.folder / "judge.yaml").write_text(json.dumps(SCRIPT))
    project.declare(JUDGE, MANY)
    port, up = 0, asyncio.Event()
    client: ServiceClient | None = None
    watchers: list[RawWatcher] = []
    cut: dict[RawWatcher, int] = {}  # who lost a connection by a kill, and how many they had by then
    async with asyncio.TaskGroup() as following:
        for kill in (*kills, None):
            with project.serve("--port", str(port)) as server:
                up.set()
                if client is None:
                    port, client = server.address[1], ServiceClient(server.url)
                    await asyncio.to_thread(start_all, server)
                    watchers = [RawWatcher(port, run, up) for run in (*BATTLES, *SCALES)]
                    ends = [following.create_task(watcher.follow()) for watcher in watchers]
                if kill is not None:
                    await until_one_says(client, kill)
                    await asyncio.gather(*(watcher.attached.wait() for watcher in watchers))
                    cut |= {watcher: watcher.connections for watcher in watchers if not watcher.over}
                    up.clear()
                    server.process.kill()
                    await asyncio.to_thread(server.process.wait)
                    continue
                await asyncio.gather(*ends)
                assert cut
                assert all(watcher.connections > before for watcher, before in cut.items())
                await asyncio.to_thread(require_all, server, watchers)
                await client.close()
