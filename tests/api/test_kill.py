"""kill -9 of the server in the middle of battles and scale tests: all finish, and nothing is lost or doubled."""

from .server import SETTINGS, Project, Server

BATTLE = {"agentId": "sim/slow", "counterpart": "sim/echo", "messageLimit": 3, "userMessage": "hello"}
MANY = SETTINGS.replace("[serve]", "[serve]\nruns = 30\nbattles = 12")


def until_some_have_begun(server: Server, runs: list[str], number: int) -> None:
    for run in runs[:number]:
        while not server.get(f"/api/battles/{run}/messages").json["messages"]:
            server.until(run, "running", "completed")


def test_after_a_kill_every_battle_finishes_with_every_message_once(project: Project) -> None:
    project.declare("", MANY)
    battles = [f"battle-{number}" for number in range(20)]
    scales = [f"scale-{number}" for number in range(3)]
    with project.serve() as server:
        for run in battles:
            assert server.post("/api/battles/start", {**BATTLE, "id": run}).status == 202
        for run in scales:
            body = {**BATTLE, "id": run, "runCount": 2, "concurrency": 2}
            assert server.post("/api/scale/start", body).status == 202
        until_some_have_begun(server, battles, 3)
        server.process.kill()
        server.process.wait()
    with project.serve() as server:
        for run in (*battles, *scales):
            assert server.until(run, "completed", "failed")["state"] == "completed"
        conversations = battles + [
            one for run in scales for one in server.get(f"/api/scale/{run}/status").json["conversationIds"]
        ]
        assert len(conversations) == 26
        for run in conversations:
            messages = server.get(f"/api/battles/{run}/messages").json["messages"]
            assert [one["seq"] for one in messages] == list(range(1, len(messages) + 1))
            assert [one["role"] for one in messages].count("assistant") == 3
