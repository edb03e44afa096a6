"""The budget of the server, which nothing that a client does exceeds, and budgets of tasks and runs."""

import asyncio
from pathlib import Path
from typing import Any

from muster.app.pool.values import TaskSpec
from tests.mcp.coordinated import AGENTS, Desk, coordinated

SECOND = """
[agents.other]
kind = "python"
function = "tests.mcp.agents:paid"
budget_usd = 0.10
"""
CHAIN = """
name: dear
agent: paid
steps:
  - { name: first, prompt: "one" }
  - { name: second, prompt: "two {previous_output}" }
"""


async def started(desk: Desk) -> str:
    return str((await desk.call("ask", agent="paid", prompt="again"))["id"])


async def test_no_number_of_calls_at_once_exceeds_the_budget_of_the_server(tmp_path: Path) -> None:
    async with coordinated(tmp_path, budget=0.55) as (desk, muster):
        ids = await asyncio.gather(*(started(desk) for _ in range(20)))
        runs = await desk.all_done(list(ids))
        assert sorted(run["state"] for run in runs) == ["completed"] * 5 + ["failed"] * 15
        refused = [run for run in runs if run["state"] == "failed"]
        assert all("budget of the mcp server (--budget) does not cover this call" in run["error"] for run in refused)
        assert all("no tool can raise the budget that the error names" in run["next"] for run in refused)
        assert (await muster.server_budgets.funds("mcp")).spent == 500_000
        assert (await desk.call("overview"))["budget"]["left_usd"] == 0.05


async def test_what_is_spent_is_refused_at_once_and_stays_spent(tmp_path: Path) -> None:
    async with coordinated(tmp_path, budget=0.10) as (desk, muster):
        await desk.done(await desk.call("ask", agent="paid", prompt="first"))
        for tool, arguments in (
            ("ask", {"agent": "paid", "prompt": "second"}),
            ("submit_task", {"prompt": "second"}),
            ("run_chain", {"chain": "greet", "input": {"topic": "x"}}),
        ):
            found = await desk.refused(tool, **arguments)
            assert (found["error"], "$0.10 of $0.10" in found["message"]) == ("budget", True)
            assert "higher --budget" in found["suggestions"][0]
        await muster.server_budgets.set("mcp", 0.20)
        assert (await desk.done(await desk.call("ask", agent="paid", prompt="third")))["state"] == "completed"


async def test_a_fan_out_that_the_budget_ends_tells_what_it_started(tmp_path: Path) -> None:
    async with coordinated(tmp_path, budget=0.10) as (desk, _):
        await desk.done(await desk.call("ask", agent="paid", prompt="first"))
        assert (await desk.refused("fan_out", prompts=["a", "b"]))["error"] == "budget"


async def test_a_server_with_a_budget_lets_nobody_elses_run_spend(tmp_path: Path) -> None:
    async with coordinated(tmp_path, budget=1.0) as (desk, muster):
        own = await muster.start("ask", {"agent": "me", "prompt": "hm?"})
        assert (await desk.done({"id": own.id}))["questions"]
        found = await desk.refused("answer_question", id=own.id, text="yes")
        assert "was not started through this server" in found["message"]
        await own.cancel()
        again = await desk.call("control_run", id=own.id, action="resume")
        run = await muster.runs.find(again["id"])
        assert run.budgets is not None
        assert run.budgets.above == ("server:mcp",)


async def test_tasks_that_an_agent_starts_count_under_the_budgets_above_its_own(tmp_path: Path) -> None:
    async with coordinated(tmp_path, drives=False) as (desk, muster):
        task = await desk.call("submit_task", prompt="x")
        run = (await muster.pool.tasks.get(task["id"])).run
        assert run.budgets is not None
        child = await muster.pool.tasks.submit(TaskSpec(prompt="y"), started_by=run.id)
        assert child.run.budgets is not None
        assert child.run.budgets.above == run.budgets.above == ("pool:default", "server:mcp")


async def ids_of(desk: Desk, tool: str, arguments: dict[str, Any]) -> list[str]:
    """Start something; returns what was started, or nothing where the budget refused it."""
    found = (await desk.client.call_tool(tool, arguments)).structured_content
    assert found is not None
    if "id" not in found and "ids" not in found:
        assert found["error"] == "budget", found
    return list(found.get("ids", [found["id"]] if "id" in found else []))


async def test_nothing_that_a_client_does_at_once_exceeds_the_budget_of_the_server(tmp_path: Path) -> None:
    dear = tmp_path / "library" / "dear"
    dear.mkdir(parents=True)
    (dear / "chain.yaml").write_text(CHAIN)
    starts: list[tuple[str, dict[str, Any]]] = [
        *[("ask", {"agent": "paid", "prompt": "x", "budget_usd": 50.0})] * 3,
        ("fan_out", {"prompts": ["a", "b", "c"], "agent": "paid", "budget_usd": 50.0}),
        ("run_chain", {"chain": "dear", "budget_usd": 50.0}),
        ("run_suite", {"suites": ["smoke"], "agents": ["paid"], "epochs": 3}),
        ("start_council", {"question": "x?", "agents": ["paid", "other"], "rounds": 2}),
        ("start_battle", {"agent": "paid", "counterpart": "other", "message_limit": 3}),
        ("start_battle", {"agent": "paid", "counterpart": "other", "goal": "x", "judge": "paid", "runs": 3}),
    ]
    async with coordinated(tmp_path, budget=0.75, more=AGENTS + SECOND) as (desk, muster):
        started = await asyncio.gather(*(ids_of(desk, tool, arguments) for tool, arguments in starts))
        ended = await desk.all_done([id_ for ids in started for id_ in ids])
        assert any(run["state"] == "failed" for run in ended)
        resumes = [
            {"id": run["id"], "action": "resume", "budget_usd": 100.0} for run in ended if run["state"] == "failed"
        ]
        again = await asyncio.gather(*(ids_of(desk, "control_run", arguments) for arguments in resumes))
        if ids := [id_ for ids in again for id_ in ids]:
            await desk.all_done(ids)
        funds = await muster.server_budgets.funds("mcp")
        assert (funds.spent <= 750_000, funds.spent > 500_000, funds.reserved) == (True, True, 0)


async def test_a_run_that_its_budget_stopped_says_what_to_raise_and_goes_on(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        run = await desk.done(await desk.call("ask", agent="paid", prompt="x", budget_usd=0.05))
        assert (run["state"], run["reason"]) == ("failed", "budget")
        assert f"control_run(id='{run['id']}', action='resume', budget_usd=a new total" in run["next"]
        again = await desk.call("control_run", id=run["id"], action="resume", budget_usd=0.20)
        assert (await desk.done(again))["state"] == "completed"


async def test_a_task_that_its_budget_stopped_is_tried_again_with_a_higher_one(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, muster):
        task = await desk.done(await desk.call("submit_task", agent="paid", prompt="x", budget_usd=0.05))
        assert (task["state"], task["reason"], task["budget_usd"]) == ("failed", "budget", 0.05)
        assert "action='resume', budget_usd=a new total" in task["next"]
        again = await desk.call("control_run", id=task["id"], action="resume", budget_usd=0.20)
        assert (again["id"], again["budget_usd"]) == (task["id"], 0.20)
        done = await desk.done(again)
        assert (done["state"], done["cost_usd"], done["budget_usd"]) == ("completed", 0.1, 0.2)
        run = (await muster.pool.tasks.get(task["id"])).run
        assert muster.pool.tasks.most_of(run) == 200_000


async def test_a_resume_that_cannot_be_paid_names_the_parameter_and_not_an_option(tmp_path: Path) -> None:
    dear = tmp_path / "library" / "dear"
    dear.mkdir(parents=True)
    (dear / "chain.yaml").write_text(CHAIN)
    async with coordinated(tmp_path) as (desk, _):
        run = await desk.done(await desk.call("run_chain", chain="dear", budget_usd=0.10))
        found = await desk.refused("control_run", id=run["id"], action="resume")
        assert (found["error"], found["suggestions"]) == ("budget", ["set a new total with budget_usd, above $0.10"])
