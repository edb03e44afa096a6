"""What a chain does with its steps: every rule of the format, with scripted agents and real commands."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any, cast

import pytest

from muster.domain.errors import BadConfiguration, BadFile
from muster.domain.run import RunState
from muster.pool.chains.chain import StepStatus
from tests.pool.chains.home import MODEL, chain_home, command, prompt

PYTHON = (sys.executable, "-I", "-S", "-c")


async def test_each_step_gets_what_the_steps_before_it_gave(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt(
                "plan", '{{"items": [{{"title": "{input.topic}"}}, {{"title": "x"}}]}}', extract={"t": "items[0].title"}
            ),
            prompt("write", "{steps.plan.t}; {previous_output}"),
            command("count", "printf", "%s|%s", "{steps.write.output}", "{input.topic}"),
            given={"topic": "bees"},
            inputs={"topic": {"required": True}},
        )
        assert run.state is RunState.COMPLETED, run.error
        plan = '{"items": [{"title": "bees"}, {"title": "x"}]}'
        assert await home.outputs(run) == {
            "plan": plan,
            "write": f"bees; {plan}",
            "count": f"bees; {plan}|bees",
        }
        assert [call.key for call in await home.calls(run)] == [
            f"step/{name}/try/1" for name in ("plan", "write", "count")
        ]


async def test_an_output_that_looks_like_a_template_stays_as_it_is(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt("a", "{{steps.a.b}} {{input.x}} {{{{"),
            prompt("b", "{previous_output}"),
            command("c", "printf", "%s", "{steps.b.output}"),
        )
        assert set((await home.outputs(run)).values()) == {"{steps.a.b} {input.x} {{"}


async def test_a_value_reaches_a_command_as_one_argument_without_a_shell(tmp_path: Path) -> None:
    nasty = "a b; touch pwned $(touch pwned) `touch pwned` \n '\""
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt("a", "{input.x}"),
            command("c", *PYTHON, "import sys; print(repr(sys.argv[1:]))", "{previous_output}", "end"),
            given={"x": nasty},
            inputs={"x": {}},
        )
        assert (await home.outputs(run))["c"] == repr([nasty, "end"])
        assert not (tmp_path / "pwned").exists()


async def test_a_condition_that_does_not_hold_skips_the_step_and_leaves_the_output_before_it(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt("a", "first"),
            prompt("b", "second", when="steps.a.output contains 'second'"),
            prompt("c", "{previous_output}|{steps.b.output}", when="not steps.b.output"),
        )
        assert await home.statuses(run) == {"a": "completed", "b": "skipped", "c": "completed"}
        assert (await home.outputs(run))["c"] == "first|"
        assert (await home.progress(run)).steps[1].skipped == "when: steps.a.output contains 'second'"
        assert len(await home.calls(run)) == 2


async def test_a_step_over_a_list_asks_once_for_each_item_in_order(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt("plan", '[{{"n": "x"}}, {{"n": "y"}}]', extract={"all": "$"}),
            prompt("write", '{{"v": "{index}{item.n}"}}', for_each="{steps.plan.all}", extract={"v": "v"}),
            prompt("end", "{steps.write.v} {steps.write.output}"),
        )
        assert run.state is RunState.COMPLETED, run.error
        assert (await home.outputs(run))["end"] == '["0x", "1y"] {"v": "0x"}\n\n{"v": "1y"}'
        keys = [call.key for call in await home.calls(run)]
        assert keys[1:3] == ["step/write/item/0/try/1", "step/write/item/1/try/1"]
        assert (await home.progress(run)).steps[1].items == 2


@pytest.mark.parametrize(
    ("plan", "words"),
    [('{{"a": "text"}}', "is not a list"), ('{{"a": [' + "1," * 1000 + "1]}}", "1,001 items, more than 1,000")],
)
async def test_a_step_over_what_is_no_list_or_too_long_fails(tmp_path: Path, plan: str, words: str) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(prompt("plan", plan, extract={"a": "a"}), prompt("write", for_each="{steps.plan.a}"))
        assert run.state is RunState.FAILED
        assert words in str(run.error)


async def test_the_steps_of_a_group_see_what_was_before_it_and_come_together_after_it(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        group = {"parallel": [prompt("b", "B {previous_output}"), prompt("c", "C {previous_output}")]}
        run = await home.run(prompt("a", "A"), group, prompt("d", "{previous_output}|{steps.c.output}"))
        assert (await home.outputs(run))["d"] == "B A\n\nC A|C A"


async def test_of_a_group_the_others_finish_when_one_fails(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        group = {"parallel": [command("bad", "false"), command("good", "sleep", "0.2"), prompt("also")]}
        run = await home.run(group, prompt("after"))
        assert run.state is RunState.FAILED
        assert run.ended_reason == "step_failed"
        expected = {"bad": "failed", "good": "completed", "also": "completed", "after": "skipped"}
        assert await home.statuses(run) == expected


async def test_a_failing_check_fails_the_step_and_a_passing_one_proves_it(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        good = await home.run(prompt("a", "yes", check=["test", "{output}", "=", "yes"]))
        assert good.state is RunState.COMPLETED
        bad = await home.run(prompt("a", "no", check=["sh", "-c", "echo it is bad >&2; exit 3"]), prompt("b"))
        assert bad.state is RunState.FAILED
        assert str((bad.error or {})["message"]) == "step 'a' failed: the check exited with code 3: it is bad"
        assert await home.statuses(bad) == {"a": "failed", "b": "skipped"}


async def test_a_command_that_fails_says_its_code_and_its_last_words(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(command("c", "sh", "-c", "echo out; echo why >&2; exit 7"))
        (step,) = (await home.progress(run)).steps
        assert step.error == "the command exited with code 7: why"
        assert step.output == "out"


async def test_a_retry_shows_the_agent_its_output_and_the_error(tmp_path: Path) -> None:
    rules = [
        {"text": "That failed: extract v", "answer": '{"v": 1}'},
        {"text": "Give", "answer": "I will not be JSON"},
    ]
    async with chain_home(tmp_path, *rules) as home:
        step = prompt("a", "Give JSON", agent=MODEL, extract={"v": "v"}, retries=2, backoff_secs=0.01)
        run = await home.run(step)
        assert run.state is RunState.FAILED  # the first error is that there is no JSON at all, which no rule is about
        first, second, third = await home.calls(run)
        messages = second.request["messages"]
        assert [one["role"] for one in messages] == ["user", "assistant", "user"]
        assert messages[1]["text"] == "I will not be JSON"
        assert "holds no JSON" in messages[2]["text"]
        assert [first.key, third.key] == ["step/a/try/1", "step/a/try/3"]
        assert (await home.progress(run)).steps[0].retries_used == 2


async def test_a_retry_that_succeeds_completes_the_step_and_counts_all_tries(tmp_path: Path) -> None:
    rules = [{"text": "That failed", "answer": '{"v": 5}'}, {"text": "Give", "answer": "no"}]
    async with chain_home(tmp_path, *rules) as home:
        step = prompt("a", "Give JSON", agent=MODEL, extract={"v": "v"}, retries=1, backoff_secs=0.01)
        run = await home.run(step, prompt("b", "{steps.a.v}"))
        assert (await home.outputs(run))["b"] == "5"
        found = (await home.progress(run)).steps[0]
        assert found.retries_used == 1
        assert found.cost == run.spent.billed > 0


async def test_without_retries_a_failure_is_the_end(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(prompt("a", "no json", extract={"v": "v"}))
        assert run.state is RunState.FAILED
        assert len(await home.calls(run)) == 1


async def test_the_recovery_is_the_last_try_with_the_error_in_it(tmp_path: Path) -> None:
    rules = [{"text": "^Recover: ", "answer": '{"v": "saved"}'}]
    async with chain_home(tmp_path, *rules) as home:
        step = prompt("a", "no json", agent=MODEL, extract={"v": "v"}, retries=1, backoff_secs=0)
        run = await home.run(step | {"recovery": "Recover: {error}"}, prompt("b", "{steps.a.v}"))
        assert (await home.outputs(run))["b"] == "saved"
        *_, last = await home.calls(run)
        third = (await home.calls(run))[2]
        assert third.key == "step/a/try/3"
        assert third.request["messages"][2]["text"].startswith("Recover: its answer holds no JSON")
        assert last.key == "step/b/try/1"


async def test_the_recovery_of_a_command_asks_the_agent_and_runs_it_once_more(tmp_path: Path) -> None:
    words = json.dumps(["sh", "-c", "cat > told; touch fixed; echo ok"])
    toml = f'[agents.fixer]\nkind = "program"\nmode = "plain"\ncommand = {words}\n'
    async with chain_home(tmp_path, toml=toml) as home:
        step = command("test", "sh", "-c", "test -e fixed || {{ echo missing >&2; exit 1; }}", agent="fixer")
        run = await home.run(step | {"recovery": "Fix it: {error}"}, prompt("b", "done"))
        assert run.state is RunState.COMPLETED, run.error
        assert (tmp_path / "told").read_text() == "Fix it: the command exited with code 1: missing"
        keys = [call.key for call in await home.calls(run)]
        assert keys == ["step/test/try/1", "step/test/try/2/recovery", "step/test/try/2", "step/b/try/1"]


@pytest.mark.parametrize("agent", ["sim/refuse", "sim/empty", "sim/cut", "sim/fail"])
async def test_an_answer_that_is_none_fails_the_step(tmp_path: Path, agent: str) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(prompt("a", agent=agent), prompt("b"))
        assert await home.statuses(run) == {"a": "failed", "b": "skipped"}


async def test_a_schema_is_checked(tmp_path: Path) -> None:
    (tmp_path / "shape.json").write_text('{"type": "object", "required": ["a"]}', encoding="utf-8")
    async with chain_home(tmp_path) as home:
        good = await home.run(prompt("a", '{{"a": 1}}', schema="shape.json"))
        assert good.state is RunState.COMPLETED
        bad = await home.run(prompt("a", '{{"b": 1}}', schema="shape.json"))
        assert "does not fit the schema" in str(bad.error)
        with pytest.raises(BadFile, match="not allowed"):
            await home.run(prompt("a", schema="../shape.json"))


async def test_the_time_of_a_step_is_bounded(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(command("a", "sleep", "60", timeout_secs=0.2))
        assert run.state is RunState.FAILED
        assert "0.2" in str(run.error)


async def test_the_budget_of_a_step_is_a_hard_cap_of_its_own(tmp_path: Path) -> None:
    toml = '[agents.priced]\nkind = "scripted"\nprice = { input = 1000, output = 5000 }\nmax_tokens = 100\n'
    async with chain_home(tmp_path, toml=toml) as home:
        poor = await home.run(prompt("a", agent="priced", budget_usd=0.01), prompt("b", agent="priced"))
        assert await home.statuses(poor) == {"a": "failed", "b": "skipped"}
        assert poor.spent.settled == 0
        rich = await home.run(prompt("a", "first", agent="priced", budget_usd=5), prompt("b", "{steps.a.output}"))
        assert (await home.outputs(rich))["b"] == "first"
        assert (await home.progress(rich)).steps[0].cost > 0


async def test_a_step_with_a_budget_knows_what_was_before_it_also_what_was_skipped(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt("a", "A", when="false", extract={"v": "v"}),
            prompt("b", "[{previous_output}{steps.a.v}{steps.a.output}]", budget_usd=1),
            prompt("c", "{steps.b.output} {previous_output}", budget_usd=1, when="steps.b.output"),
        )
        assert run.state is RunState.COMPLETED, run.error
        assert await home.outputs(run) == {"b": "[]", "c": "[] []"}


async def test_events_tell_of_steps_and_partial_output_of_the_one_that_is_running(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        seen: list[tuple[str, str]] = []
        chain = home.muster.chains.load(home.write(prompt("a", "one two"), command("b", "sleep", "30")))
        spec = home.muster.chains.spec(chain, folder=tmp_path)
        handle = await home.muster.chains.start(spec, on_delta=lambda key, delta: seen.append((key, delta)))
        async for event in handle.events():
            if event.kind == "chain.step.started" and event.data["name"] == "b":
                break
        found = await home.muster.chains.progress(handle.id)
        assert found.current == (2, "b")
        assert found.completed == 1
        await handle.cancel()
        assert "".join(delta for key, delta in seen if key == "step/a/try/1") == "one two"
        run = await handle.run()
        assert run.state is RunState.CANCELED
        assert await home.statuses(run) == {"a": "completed", "b": "skipped"}
        assert (await home.outputs(run)) == {"a": "one two"}
        kinds = [event.kind for event in await home.events(run) if event.kind.startswith("chain.")]
        assert kinds == ["chain.step.started", "chain.step.ended", "chain.step.started"]


async def test_many_chains_run_at_once(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        runs = await asyncio.gather(*(home.run(prompt("a", f"chain {n}"), name=f"chain-{n}.yaml") for n in range(8)))
        assert {run.state for run in runs} == {RunState.COMPLETED}
        assert {run.result["output"] for run in runs} == {f"chain {n}" for n in range(8)}


async def test_what_could_not_be_done_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        refused = [
            (prompt("a", agent="sim/nobody"), "unknown scripted agent"),
            (command("b", "no-such-program-here"), "'no-such-program-here' not found"),
            (prompt("a", dispatch="batch"), "cannot be asked in batches"),
        ]
        for step, words in refused:
            with pytest.raises(BadConfiguration, match=words):
                await home.run(prompt("first"), step | {"name": "second"})
        assert await home.muster.runs.list() == []


async def test_one_failed_item_is_told_and_the_others_are_kept(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(
            prompt("plan", json.dumps(["0", "1", "0"]), extract={"all": "$"}),
            command("each", "test", "{item}", "=", "0", for_each="{steps.plan.all}"),
        )
        assert "item 1: the command exited with code 1" in str(run.error)
        assert len(await home.calls(run)) == 4


async def test_the_statuses_are_told_in_the_result(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        run = await home.run(prompt("a", "x"), prompt("b", "y", when="false"))
        assert run.result["output"] == "x"
        assert [step["status"] for step in run.result["steps"]] == [StepStatus.COMPLETED, StepStatus.SKIPPED]


async def test_what_an_agent_is_writing_is_seen_before_it_is_done(tmp_path: Path) -> None:
    script = """echo '{"d": "half"}'; until test -e go; do sleep 0.05; done; echo '{"a": "whole"}'"""
    words = json.dumps(["sh", "-c", script, "{prompt}"])
    answer = 'output = "jsonl"\ndelta = "$.d"\nanswer = "$.a"\nends = "$.a"\nbudget_usd = 1\n'
    async with chain_home(tmp_path, toml=f'[agents.writer]\nkind = "cli"\ncommand = {words}\n{answer}') as home:
        chain = home.muster.chains.load(home.write(prompt("a", "write", agent="writer")))
        handle = await home.muster.chains.start(home.muster.chains.spec(chain, folder=tmp_path))
        async with asyncio.timeout(60):
            while not (found := await home.muster.chains.progress(handle.id)).partial_output:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (found.partial_output, found.current) == ("half", (1, "a"))
        (tmp_path / "go").touch()
        assert cast(Any, await handle.result())["output"] == "whole"
        assert (await home.muster.chains.progress(handle.id)).partial_output == ""


async def test_an_agent_that_does_not_have_a_setting_refuses_the_chain_before_it_is_stored(tmp_path: Path) -> None:
    async with chain_home(tmp_path) as home:
        with pytest.raises(BadConfiguration, match="model cannot be set for agent 'sim/echo'"):
            await home.run(prompt("a", model="large"))
        assert not await home.muster.runs.list()
