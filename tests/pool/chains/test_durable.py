"""Failed, stopped or killed, a chain goes on where it was: what is done is not paid again."""

import json
from pathlib import Path
from typing import Any

from muster.domain.entry import EntryKind
from muster.domain.run import RunState
from tests.pool.chains.home import MODEL, OPENAI, chain_home, command, prompt

AGAIN = "That failed: the check exited with code 1\n\nDo it again so that it does not fail."


async def test_a_chain_that_failed_at_step_3_pays_only_for_3_and_4_when_it_is_resumed(tmp_path: Path) -> None:
    rules = [{"text": "That failed", "answer": '{"v": "right"}'}]
    async with chain_home(tmp_path, *rules) as home:
        steps = [
            prompt("one", "1", agent=MODEL),
            prompt("two", "2 {previous_output}", agent=MODEL),
            prompt("three", "3 {previous_output}", agent=MODEL, extract={"v": "v"}),
            prompt("four", "4 {steps.three.v}", agent=MODEL),
        ]
        failed = await home.run(*steps)
        assert failed.state is RunState.FAILED
        assert home.audit.calls == 3
        before = home.audit.by_digest
        resumed = await home.go_on(failed)
        assert resumed.state is RunState.COMPLETED, resumed.error
        assert resumed.id != failed.id
        paid = {digest: n - before.get(digest, 0) for digest, n in home.audit.by_digest.items()}
        assert sum(paid.values()) == 2
        assert all(paid[digest] == 0 for digest in before)
        keys = [call.key for call in await home.calls(resumed)]
        assert keys == ["step/three/try/2", "step/four/try/1"]
        asked = (await home.calls(resumed))[0].request["messages"]
        assert "That failed: its answer holds no JSON" in asked[-1]["text"]
        assert await home.outputs(resumed) == {
            "one": "1",
            "two": "2 1",
            "three": '{"v": "right"}',
            "four": "4 right",
        }


async def test_a_canceled_chain_goes_on_with_what_was_done(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        path = home.write(
            prompt("a", "A", agent=MODEL), command("b", "sh", "-c", "test -e go || sleep 60"), prompt("c")
        )
        spec = home.muster.chains.spec(home.muster.chains.load(path), folder=tmp_path)
        handle = await home.muster.chains.start(spec)
        async for event in handle.events():
            if event.kind == "chain.step.started" and event.data["name"] == "b":
                break
        await handle.cancel()
        canceled = await handle.run()
        assert await home.statuses(canceled) == {"a": "completed", "b": "skipped", "c": "skipped"}
        (tmp_path / "go").touch()
        resumed = await home.go_on(canceled)
        assert resumed.state is RunState.COMPLETED
        assert home.audit.calls == 1


async def test_only_the_items_that_failed_are_done_again(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        steps = [
            prompt("plan", json.dumps(["a", "b", "c"]), extract={"all": "$"}),
            prompt("each", "{item}", for_each="{steps.plan.all}", agent=MODEL, check=["test", "-e", "{item}"]),
        ]
        (tmp_path / "a").touch()
        (tmp_path / "c").touch()
        failed = await home.run(*steps)
        assert failed.state is RunState.FAILED
        (tmp_path / "b").touch()
        resumed = await home.go_on(failed)
        assert resumed.state is RunState.COMPLETED, resumed.error
        assert home.audit.calls == 4


async def test_a_step_with_a_budget_that_failed_is_resumed_with_its_replies(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        step = prompt("a", "hello", agent=MODEL, budget_usd=1, for_each="{input.list}", check=["test", "-e", "{item}"])
        top: dict[str, Any] = {"inputs": {"list": {"required": True}}, "given": {"list": ["x", "y"]}}
        (tmp_path / "x").touch()
        failed = await home.run(step, **top)
        assert failed.state is RunState.FAILED
        assert home.audit.calls == 2
        (tmp_path / "y").touch()
        resumed = await home.go_on(failed)
        assert resumed.state is RunState.COMPLETED, resumed.error
        assert home.audit.calls == 3


async def test_a_replay_asks_nobody(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(prompt("a", "A", agent=MODEL), command("b", "sh", "-c", "echo x >> ran; cat ran"))
        replayed = await home.muster.runs.drive(await home.muster.runs.replay(run.id)).wait()
        assert replayed.result == run.result
        assert home.audit.calls == 1
        assert (tmp_path / "ran").read_text() == "x\n"


async def test_a_fork_asks_again_from_its_key_on(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(*(prompt(name, f"{name}", agent=MODEL) for name in "abc"))
        forked = await home.muster.runs.drive(await home.muster.runs.fork(run.id, "step/b/try/1")).wait()
        assert forked.state is RunState.COMPLETED
        assert home.audit.calls == 5


async def test_the_wait_before_a_retry_is_remembered(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(command("a", "false", retries=1, backoff_secs=0.05))
        store = home.muster._backend.store
        entry = await store.journal.find(run.id, "step/a/try/2/backoff")
        since = await store.journal.find(run.id, "step/a/try/2/backoff/since")
        assert entry is not None
        assert entry.kind is EntryKind.SIGNAL
        assert since is not None
        assert entry.opened_at - since.value >= 0.05


async def test_100_inputs_share_one_batch_for_each_step_and_provider(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        rows = [{"n": n} for n in range(100)]
        run = await home.run(
            prompt("one", "first {input.n}", agent=MODEL, dispatch="batch"),
            prompt("two", "second {previous_output}", agent=OPENAI, dispatch="batch"),
            prompt("three", "third {previous_output}", agent=MODEL, dispatch="batch"),
            inputs={"n": {"required": True}},
            rows=rows,
        )
        assert run.state is RunState.COMPLETED, run.error
        assert len(home.audit.batches) == 3
        assert home.audit.calls == 300
        assert [row["output"] for row in run.result["rows"]] == [f"third second first {n}" for n in range(100)]
        found = await home.progress(run)
        assert (found.total, found.completed) == (100, 100)


async def test_a_row_that_failed_drops_no_other_and_is_the_only_one_done_again(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        step = prompt("a", "{input.n}", agent=MODEL, check=["test", "-e", "{input.n}"])
        for name in ("0", "2"):
            (tmp_path / name).touch()
        rows = [{"n": "0"}, {"n": "1"}, {"n": "2"}]
        failed = await home.run(step, inputs={"n": {}}, rows=rows)
        assert failed.state is RunState.FAILED
        assert "1 of 3 rows failed: row 2: " in str(failed.error)
        assert [str(row.status) for row in (await home.progress(failed)).rows] == ["completed", "failed", "completed"]
        assert home.audit.calls == 3
        (tmp_path / "1").touch()
        resumed = await home.go_on(failed)
        assert [row["output"] for row in resumed.result["rows"]] == ["0", AGAIN, "2"]
        assert home.audit.calls == 4
