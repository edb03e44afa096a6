"""A message reaches an agent at work, once and in order, whatever happens to its attempt."""

import asyncio
from pathlib import Path

import pytest

from muster.domain.task import TaskState
from muster.pool.tasks import TaskSpec
from tests.pool.test_slot_server import TELL, WAIT, Stage, done, mcp, write
from tests.pool.waiting import until_exists

AGENT = """
message = { type = "user", uuid = "{{id}}", message = { role = "user", content = "{{message}}" } }
message_taken = "$.uuid"
""".replace("{{", "{").replace("}}", "}")
HEAR = {"hear": True}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path, agent=AGENT)
    toml = tmp_path / "muster.toml"
    toml.write_text(toml.read_text().replace('"script.json"]', '"script.json", "--", "{prompt}"]'))
    return stage


async def test_messages_reach_an_agent_at_work_in_order(stage: Stage) -> None:
    stage.play(
        begin=[write("ready"), HEAR, {"say": "{message}"}, write("first"), HEAR, {"say": "{message}"}], after=[TELL]
    )
    async with stage.open() as m:
        running = asyncio.create_task(done(m, "begin"))
        await stage.ready()
        await m.pool.send("coder", "one", sender="critic")
        await until_exists(stage.folder / "first")
        await m.pool.send("coder", "two")
        assert await running == "Message from the operator:\ntwo"
        assert not await m.pool.unread("coder")
        assert (await done(m, "after")).endswith("\n\nafter")
        (task,) = [task for task in await m.pool.tasks.list() if task.spec.prompt == "begin"]
        events = [event for event in await m.runs.events(task.run.id) if event.kind == "signal.received"]
        assert [event.data["key"] for event in events] == ["work/000/inbox/001", "work/000/inbox/002"]


async def test_what_an_agent_did_not_take_in_is_in_the_next_prompt(stage: Stage) -> None:
    stage.play(begin=[*WAIT, {"say": "done"}], next=[TELL])
    async with stage.open() as m:
        running = asyncio.create_task(done(m, "begin"))
        await stage.ready()
        await m.pool.send("coder", "too late")
        await stage.go()
        assert await running == "done"
        assert (await done(m, "next")).endswith("\n\nnext\n\nMessage from the operator:\ntoo late")
        assert not await m.pool.unread("coder")


async def test_a_message_that_was_handed_over_is_not_read_a_second_time(stage: Stage) -> None:
    stage.play(begin=[write("ready"), HEAR, mcp("read_messages"), {"say": "{message}, then {result}"}])
    async with stage.open() as m:
        running = asyncio.create_task(done(m, "begin"))
        await stage.ready()
        await m.pool.send("coder", "once")
        assert await running == "Message from the operator:\nonce, then []"


@pytest.mark.parametrize("point", ["signal.before_take:2", "signal.taken:2", "call.answered:1"])
async def test_a_driver_killed_around_a_delivery_loses_and_repeats_nothing(stage: Stage, point: str) -> None:
    stage.play(Message_from=[TELL], begin=[write("ready"), HEAR, {"say": "{prompt}\n\n{message}"}])
    async with stage.open() as m:
        task = await m.pool.tasks.submit(TaskSpec(prompt="begin", slot="coder"))
        await m.pool.scale(2)
    stage.environment["MUSTER_CRASH_AT"] = point
    driver = await stage.start()
    await stage.ready()
    async with stage.open() as m:
        await m.pool.send("coder", "in between", sender="critic")
    assert await asyncio.wait_for(driver.wait(), 60) == -9
    del stage.environment["MUSTER_CRASH_AT"]
    (stage.folder / "ready").unlink()
    async with stage.open() as m:
        await m.pool.driver().serve(until_idle=True)
        found = await m.pool.tasks.get(task.id)
        assert (found.state, found.reply is None) == (TaskState.COMPLETED, False)
        assert found.reply is not None
        assert found.reply.text.endswith("\n\nbegin\n\nMessage from critic:\nin between")
        assert found.reply.text.count("in between") == 1
        assert not await m.pool.unread("coder")


async def test_a_task_that_is_tried_again_is_told_what_the_failed_one_had_taken_in(stage: Stage) -> None:
    stage.play(Message_from=[TELL], begin=[write("ready"), HEAR, {"crash": 3}])
    async with stage.open() as m:
        running = asyncio.create_task(m.pool.run(TaskSpec(prompt="begin", slot="coder")))
        await stage.ready()
        await m.pool.send("coder", "mind the gap")
        failed = await running
        assert (failed.state, await m.pool.unread("coder")) == (TaskState.FAILED, [])
        await m.pool.tasks.retry(failed.id)
        await m.pool.driver().serve(until_idle=True)
        found = await m.pool.tasks.get(failed.id)
        assert found.reply is not None
        assert found.reply.text.endswith("\n\nbegin\n\nMessage from the operator:\nmind the gap")


async def test_one_driver_may_serve_twice(stage: Stage) -> None:
    stage.play(go=[mcp("list_context"), {"say": "{result}"}])
    async with stage.open() as m:
        driver = m.pool.driver()
        for _ in range(2):
            task = await m.pool.tasks.submit(TaskSpec(prompt="go"))
            await driver.serve(until_idle=True)
            found = await m.pool.tasks.get(task.id)
            assert found.reply is not None
            assert found.reply.text == "{}"
