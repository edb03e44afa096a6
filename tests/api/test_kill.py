"""kill -9 of the server in the middle of battles and scale tests: all finish, and nothing is lost or doubled."""

import asyncio
import json
from contextlib import aclosing
from itertools import count

import pytest

from muster.client import ServiceClient, ServiceUpdate

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


async def watched(client: ServiceClient, run: str) -> list[ServiceUpdate]:
    """Follow a run to its end, through restarts, each time after the last event that was seen."""
    return [update async for update in client.follow(run)]


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


def require_once(server: Server, run: str, seen: list[ServiceUpdate]) -> None:
    """What a watcher saw has every number once and in order, to the end, and every message that is stored."""
    events = [update for update in seen if update.seq is not None]
    assert events.pop().name == "end"
    assert [update.seq for update in events] == list(range(1, len(events) + 1))
    if run in BATTLES:
        stored = server.get(f"/api/battles/{run}/messages").json["messages"]
        assert [update.data for update in events if update.name == "message"] == stored


@pytest.mark.parametrize("kills", [(2,), pytest.param((1, 2, 4, 5), marks=pytest.mark.chaos)], ids=["once", "often"])
async def test_after_a_kill_all_finish_and_a_watcher_sees_everything_once(
    project: Project, kills: tuple[int, ...]
) -> None:
    (project.folder / "judge.yaml").write_text(json.dumps(SCRIPT))
    project.declare(JUDGE, MANY)
    begins, port = count(), 0
    following: dict[str, asyncio.Task[list[ServiceUpdate]]] = {}
    client: ServiceClient | None = None
    for kill in (*kills, None):
        with project.serve("--port", str(port)) as server:
            port = server.address[1]
            if client is None:
                client = ServiceClient(server.url)
            if next(begins) == 0:
                await asyncio.to_thread(start_all, server)
                following = {run: asyncio.create_task(watched(client, run)) for run in (*BATTLES, *SCALES)}
            if kill is not None:
                await until_one_says(client, kill)
                server.process.kill()
                await asyncio.to_thread(server.process.wait)
                continue
            for run, seen in following.items():
                assert (await seen)[-1].data["state"] == "completed"
                await asyncio.to_thread(require_once, server, run, await seen)
            for run in SCALES:
                status = (await asyncio.to_thread(server.get, f"/api/scale/{run}/status")).json
                assert (status["completed"], status["counts"]["limit"]) == (2, 2)
                for conversation in status["conversationIds"]:
                    await asyncio.to_thread(require_whole, server, conversation)
            for run in BATTLES:
                await asyncio.to_thread(require_whole, server, run)
            await client.close()
