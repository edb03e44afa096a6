"""The tools of a coordinating agent, called by the official client: what they do, and what they refuse."""

import asyncio
import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from muster.app.kinds import made_at
from muster.domain.doors import Door
from tests.api.server import CHAIN
from tests.dashboard.operations import provider
from tests.mcp.coordinated import PATIENCE, coordinated
from tests.pool import held
from tests.rehearsal import ForkedRehearsal

FORBIDDEN = {"path", "file", "files", "command", "cwd", "url", "address", "isolation", "env"}


async def test_every_tool_has_a_strict_schema_and_takes_no_path_command_or_address(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        tools = (await desk.client.list_tools()).tools
        assert len(tools) - len(made_at(Door.TOOL)) <= 12, "a model finds its way among few: give an old tool a choice"
        for tool in tools:
            assert tool.input_schema["additionalProperties"] is False
            assert not FORBIDDEN & set(tool.input_schema.get("properties", {})), tool.name
            assert len(tool.description or "") > 60
            for name, one in tool.input_schema.get("properties", {}).items():
                assert one.get("description"), f"{tool.name}.{name}"
        size = sum(len(tool.model_dump_json(exclude_none=True)) for tool in tools)
        assert size < 1_550 * len(tools), "every model reads all of it: shorten `tool` of fields, or leave it out"


async def test_a_task_is_rejected_with_feedback_approved_and_read(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        task = await desk.call("submit_task", prompt="Write a haiku", review=True)
        assert (await desk.done(task))["state"] == "pending_review"
        assert [one["id"] for one in (await desk.call("list_work", needs_you=True))["runs"]] == [task["id"]]
        assert "needs feedback" in (await desk.refused("review_task", id=task["id"], decision="reject"))["message"]
        await desk.call("review_task", id=task["id"], decision="reject", feedback="Shorter, please")
        again = await desk.done(task)
        assert (again["state"], again["rejection_count"]) == ("pending_review", 1)
        assert "Shorter, please" in again["output"]
        await desk.call("review_task", id=task["id"], decision="approve")
        assert (await desk.done(task))["state"] == "completed"
        text = (await desk.call("result", id=task["id"], part="output"))["text"]
        assert text == again["output"]
        assert "completed" in (await desk.refused("review_task", id=task["id"], decision="approve"))["message"]


async def test_a_key_in_the_answer_of_a_task_is_not_shown(tmp_path: Path) -> None:
    key = "AKIA" + "Q7RJ2M5XZT4KW9PB"
    async with coordinated(tmp_path) as (desk, _):
        task = await desk.call("submit_task", prompt=f"Write {key}")
        found = await desk.done(task)
        text = (await desk.call("result", id=task["id"], part="output"))["text"]
        log = json.dumps(await desk.call("result", id=task["id"], part="log"))
        assert "[redacted:aws_key:1]" in found["output"]
        assert (text, key in log) == (found["output"], False)
        call = json.dumps(await desk.call("result", id=task["id"], part="call", key="work/000"))
        rows = [json.dumps(await desk.call("result", id=task["id"], part=part)) for part in ("calls", "events")]
        assert ("[redacted:aws_key:1]" in call, key in "".join((call, *rows))) == (True, False)


async def test_a_chain_of_the_library_runs_and_tells_its_steps(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        chain = await desk.done(await desk.call("run_chain", chain="greet", input={"topic": "bees"}))
        assert chain["state"] == "completed"
        assert chain["steps"] == [{"name": "hello", "status": "completed", "output": "Hello bees"}]


async def test_a_council_is_asked_steered_and_answered_by_its_people(tmp_path: Path) -> None:
    async with coordinated(tmp_path, more='[agents.you]\nkind = "human"\n') as (desk, _):
        council = await desk.call("start_council", question="Tea or coffee?", agents=["me", "you"], rounds=1)
        found = await desk.done(council)
        await desk.call("steer_council", id=council["id"], action="inject", text="There is no milk.")
        while found["state"] == "waiting":
            question = found["questions"][0]
            assert "Tea or coffee?" in question["asked"]
            shown = re.search(r"candidate (\w+):", question["asked"])
            text = "Tea." if shown is None else f"{shown[1]} 80 fine"
            await desk.call("answer_question", id=council["id"], key=question["key"], text=text)
            found = await desk.done(council)
        assert (found["state"], found["rounds"], found["output"]) == ("completed", 1, "Tea.")
        assert "There is no milk." in (await desk.call("result", id=council["id"], part="report"))["text"]
        assert "completed" in (await desk.refused("steer_council", id=council["id"], action="stop"))["message"]


async def test_many_tasks_are_waited_for_together_in_the_order_of_their_prompts(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        ids = (await desk.call("fan_out", prompts=["one", "two", "three"]))["ids"]
        assert [run["output"] for run in await desk.all_done(ids)] == ["one", "two", "three"]


async def test_tasks_of_a_fan_out_have_numbered_names_and_none_is_begun_when_a_prompt_is_wrong(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, muster):
        await desk.refused("fan_out", prompts=["one", " "], name="review")
        assert not await muster.runs.list()
        ids = (await desk.call("fan_out", prompts=["one", "two"], name="review"))["ids"]
        assert [run["name"] for run in await desk.all_done(ids)] == ["review-1", "review-2"]
        assert (await desk.call("result", id="review-2"))["output"] == "two"


async def test_work_is_found_by_its_tags(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        ids = (await desk.call("fan_out", prompts=["one", "two"], tags=["release-7"]))["ids"]
        await desk.all_done([*ids, (await desk.call("submit_task", prompt="other"))["id"]])
        found = (await desk.call("list_work", search="release-7"))["runs"]
        assert {run["id"] for run in found} == set(ids)
        assert all(run["tags"] == ["release-7"] for run in found)


async def test_a_reply_that_was_cut_says_so(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        found = await desk.done(await desk.call("ask", agent="sim/echo", prompt="one two three four", max_tokens=1))
        assert (found["kind"], found["state"], found["quality"]) == ("question", "completed", "cut")
        assert [run["id"] for run in (await desk.call("list_work", kind="question"))["runs"]] == [found["id"]]


async def test_a_wait_that_is_over_says_that_it_still_runs(tmp_path: Path) -> None:
    held.calls.reset()
    async with coordinated(tmp_path) as (desk, _):
        run = await desk.call("ask", agent="held", prompt="slow one")
        found = await desk.call("wait", ids=[run["id"]], timeout_secs=0)
        assert (found["done"], found["runs"][0]["id"]) == (False, run["id"])
        assert "still running" in found["next"]
        await held.calls.until_open("slow")
        held.calls.answer("slow", cost_usd=0.01)
        assert (await desk.done(run))["state"] == "completed"


class Heard:
    """What a client is told of the progress of a call."""

    def __init__(self) -> None:
        self.told: list[tuple[float, float | None, str]] = []
        self._changed = asyncio.Condition()

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        async with self._changed:
            self.told.append((progress, total, str(message)))
            self._changed.notify_all()

    async def until(self, number: int) -> None:
        async with asyncio.timeout(PATIENCE), self._changed:
            await self._changed.wait_for(lambda: len(self.told) >= number)


async def test_progress_grows_with_every_notification_although_nothing_is_done(tmp_path: Path) -> None:
    held.calls.reset()
    heard = Heard()
    async with coordinated(tmp_path) as (desk, _):
        runs = [await desk.call("ask", agent="held", prompt=f"{name} one") for name in ("slow", "late")]
        for name in ("slow", "late"):
            await held.calls.until_open(name)
        ids = [run["id"] for run in runs]
        waiting = asyncio.ensure_future(desk.client.call_tool("wait", {"ids": ids}, progress_callback=heard))
        await heard.until(3)
        for name in ("slow", "late"):
            held.calls.answer(name, cost_usd=0.01)
        assert (await waiting).structured_content["done"] is True
        values = [progress for progress, _, _ in heard.told]
        assert all(before < after for before, after in itertools.pairwise(values))
        assert all(total is not None and total >= progress for progress, total, _ in heard.told)
        assert all(id_ in heard.told[-1][2] for id_ in ids)
        assert "0 of 1 calls done" in heard.told[-1][2]


async def test_a_wait_that_is_canceled_leaves_no_watcher_and_the_run_goes_on(tmp_path: Path) -> None:
    held.calls.reset()
    heard = Heard()
    async with coordinated(tmp_path) as (desk, muster):
        run = await desk.call("ask", agent="held", prompt="slow one")
        await held.calls.until_open("slow")
        waiting = asyncio.ensure_future(desk.client.call_tool("wait", {"ids": [run["id"]]}, progress_callback=heard))
        await heard.until(1)
        assert muster.runs.watchers == 1
        waiting.cancel()
        await asyncio.wait({waiting})
        await desk.call("overview")  # the server has heard of it before this
        assert muster.runs.watchers == 0
        held.calls.answer("slow", cost_usd=0.01)
        assert (await desk.done(run))["output"] == "slow is done"


async def test_a_run_is_canceled_and_resumed(tmp_path: Path) -> None:
    held.calls.reset()
    async with coordinated(tmp_path) as (desk, _):
        run = await desk.call("ask", agent="held", prompt="first one")
        await held.calls.until_open("first")
        await desk.call("control_run", id=run["id"], action="cancel")
        assert (await desk.done(run))["state"] == "canceled"
        again = await desk.call("control_run", id=run["id"], action="resume")
        assert again["id"] != run["id"]
        await held.calls.until_open("first")
        held.calls.answer("first", cost_usd=0.01)
        assert (await desk.done(again))["output"] == "first is done"


async def test_what_ended_is_not_canceled_and_what_was_canceled_stays_so(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        task = await desk.done(await desk.call("submit_task", prompt="x"))
        suite = await desk.done(await desk.call("run_suite", suites=["smoke"], agents=["sim/echo"]))
        for kind, id_ in (("task", task["id"]), ("run", suite["id"])):
            found = await desk.refused("control_run", id=id_, action="cancel")
            assert (found["error"], found["message"]) == (
                "conflict",
                f"{kind} {id_} completed; there is nothing to cancel",
            )
        waiting = await desk.call("ask", agent="me", prompt="hm?")
        for _ in range(2):
            assert (await desk.call("control_run", id=waiting["id"], action="cancel"))["state"] == "canceled"


async def test_what_has_no_report_says_so_and_where_its_result_is(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        task = await desk.done(await desk.call("submit_task", prompt="x"))
        found = await desk.refused("result", id=task["id"], part="report")
        assert "is a run of 'task', which has no report" in found["message"]
        assert found["suggestions"] == [f"result(id='{task['id']}')"]


async def test_suites_are_run_reported_and_compared(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        runs = [await desk.call("run_suite", suites=["smoke"], agents=["sim/echo"]) for _ in range(2)]
        found = [await desk.done(run) for run in runs]
        assert [run["passed"] for run in found] == [True, True]
        assert "The only case passed" in (await desk.call("result", id=runs[0]["id"], part="report"))["text"]
        compared = json.loads((await desk.call("result", id=runs[1]["id"], compare_with=runs[0]["id"]))["text"])
        assert [compared[side]["run"] for side in ("a", "b")] == [runs[0]["id"], runs[1]["id"]]  # before, and after
        assert (compared["verdict"], compared["gate"]) == ("inconclusive", "blind")  # one case can show nothing
        gates = {}
        for terms in ({"inconclusive": "ok"}, {"inconclusive": "fail"}, {"margin": 0.99}, {"notice": 0.9}):
            told = await desk.call("result", id=runs[1]["id"], compare_with=runs[0]["id"], **terms)
            gates[json.dumps(terms)] = json.loads(told["text"])["gate"]
        assert list(gates.values()) == ["passed", "failed", "passed", "blind"], gates


async def test_battles_and_scale_tests_are_played(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        sides = {"agent": "sim/echo", "counterpart": "sim/echo", "message_limit": 2}
        battle = await desk.done(await desk.call("start_battle", **sides))
        assert (battle["state"], battle["turns"], battle["ending"]) == ("completed", 2, "limit")
        said = await desk.call("result", id=battle["id"], part="messages")
        assert (len(said["rows"]), said["total"], said["next_after"]) == (battle["messages"], battle["messages"], None)
        for goal in ({"goal": "Say tea", "judge": "sim/echo"}, {}):  # without one they are played to their limit
            found = await desk.done(await desk.call("start_battle", **sides, runs=2, **goal))
            assert (found["kind"], found["completed"], found["total"]) == ("scale test", 2, 2)
            assert found["counts"]["limit"] == 2


async def test_the_crew_is_seen_sized_told_and_informed(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        await desk.done(await desk.call("submit_task", prompt="begin"))
        assert len((await desk.call("pool"))["slots"]) == 2
        assert len((await desk.call("pool", action="scale", slots="+1"))["slots"]) == 3
        assert (await desk.refused("pool", action="scale"))["error"] == "bad_argument"
        assert len((await desk.call("messages", action="send", text="look up"))["sent_to"]) == 3
        unread = await desk.call("messages", action="unread", slot="slot-2")
        assert [one["text"] for one in unread["messages"]] == ["look up"]
        await desk.call("context", action="set", name="tone", text="Be terse.")
        assert (await desk.call("context", action="list"))["context"] == {"tone": "Be terse."}
        assert (await desk.call("context", action="read", name="tone"))["text"] == "Be terse."
        await desk.call("context", action="delete", name="tone")
        assert (await desk.call("context", action="list"))["context"] == {}
        assert (await desk.call("pool", action="metrics"))["tasks"] == 1
        assert (await desk.call("list_work", kind="batch"))["batches"] == []


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("ask", {"agent": "sim/echo"}, "prompt: is missing"),
        ("ask", {"agent": "sim/echo", "prompt": 3}, "prompt: must be a string"),
        ("ask", {"agent": "sim/echo", "prompt": "x", "promt": "y"}, "promt: is unknown; did you mean prompt?"),
        ("ask", {"agent": "sim/echo", "prompt": "x", "zzz": 1}, "zzz: is unknown; known: "),
        (
            "ask",
            {"agent": "sim/echo", "prompt": "x", "output_schema": {"type": 3}},
            "output_schema is not a JSON Schema",
        ),
        ("ask", {"agent": "sim/echo", "prompt": "x", "budget_usd": 1e-9}, "budget_usd must have at most six decimal"),
        ("submit_task", {"prompt": "x", "budget_usd": 1e-9}, "budget_usd must have at most six decimal places"),
        ("fan_out", {"prompts": ["good", "  "]}, "prompts[1]: is empty"),
        ("run_chain", {"chain": "greet", "input": {"topic": "x" * 1_000_000}}, "input: must have at most 1000000"),
        ("ask", {"agent": "sim/nobody", "prompt": "x"}, "agent 'sim/nobody' is not available to requests"),
        ("ask", {"agent": "sim/echo", "prompt": "x", "budget_usd": -1}, "budget_usd: must be more than 0"),
        ("submit_task", {"prompt": "x", "slot": "nobody"}, "no slot of the pool fits"),
        ("run_chain", {"chain": "gret"}, "the library has no chain 'gret'"),
        ("run_chain", {"chain": "../library/greet"}, "the library has no chain '../library/greet'"),
        ("run_chain", {"chain": "library/greet/chain.yaml"}, "the library has no chain"),
        ("run_chain", {"chain": "greet"}, "topic"),
        ("run_suite", {"suites": ["/etc/passwd"]}, "the library has no suite '/etc/passwd'"),
        ("run_suite", {"suites": ["smoke"], "judge": "council:/etc/x"}, "the library has no council"),
        ("start_council", {"question": "x", "policy": "../panel"}, "the library has no council '../panel'"),
        ("result", {"id": "nothing"}, "run 'nothing' not found"),
        ("wait", {"ids": ["nothing"]}, "run 'nothing' not found"),
        ("wait", {"ids": ["x"], "timeout_secs": 9999}, "timeout_secs: must be at most 300"),
    ],
)
async def test_what_is_wrong_is_refused_with_words(
    tmp_path: Path, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async with coordinated(tmp_path, drives=False) as (desk, muster):
        found = await desk.refused(tool, **arguments)
        assert words in found["message"]
        assert str(tmp_path) not in json.dumps(found)
        assert not await muster.runs.list()


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("control_run", {"id": "x", "action": "cancel", "budget_usd": 1.0}, "budget_usd: it goes only with action="),
        ("review_task", {"id": "x", "decision": "approve", "feedback": "ok"}, "feedback: it goes only with decision="),
        ("steer_council", {"id": "x", "action": "stop", "text": "now"}, "text: it goes only with action='inject'"),
        ("steer_council", {"id": "x", "action": "inject"}, "text: it is needed with action='inject'"),
        ("result", {"id": "x", "part": "call"}, "key: it is needed with part='call'"),
        ("result", {"id": "x", "key": "ask"}, "key: it goes only with part='call'"),
        ("result", {"id": "x", "part": "log", "compare_with": "y"}, "compare_with: it goes only with part='summary'"),
        ("result", {"id": "x", "margin": 0.1}, "margin: it goes only with compare_with"),
        ("list_work", {"kind": "batch", "needs_you": True}, "needs_you: it goes only with kind="),
        ("pool", {"slots": 3}, "slots: it goes only with action='scale'"),
        ("pool", {"action": "scale"}, "slots: it is needed with action='scale'"),
        ("pool", {"action": "scale", "slots": "many"}, "slots: must match "),
        ("pool", {"timeout_secs": 5.0}, "timeout_secs: it goes only with action='drain'"),
        ("messages", {"action": "send"}, "text: it is needed with action='send'"),
        ("messages", {"action": "unread"}, "slot: it is needed with action='unread'"),
        ("context", {"action": "set", "name": "tone"}, "text: it is needed with action='set'"),
        ("context", {"action": "list", "name": "tone"}, "name: it goes only with action='read' or 'set' or 'delete'"),
        ("context", {"action": "list", "offset": 5}, "offset: it goes only with action='read'"),
        ("messages", {"action": "send", "text": "x", "after": 3}, "after: it goes only with action='unread'"),
        ("messages", {"action": "unread", "slot": "x", "offset": 3}, "offset: it goes only with key"),
        ("messages", {"action": "unread", "slot": "x", "after": 3, "key": 4}, "after: it does not go with key"),
        ("overview", {"after": "x"}, "after: it goes only with part='agents' or 'library'"),
        ("result", {"id": "x", "offset": 5}, "offset: it goes only with a text"),
        ("result", {"id": "x", "part": "calls", "offset": 5}, "offset: it goes only with a text"),
        ("result", {"id": "x", "part": "output", "field": "/output"}, "field: it goes only with part='summary'"),
        ("result", {"id": "x", "part": "output", "after": "k"}, "after: it goes only with part='calls'"),
        ("result", {"id": "x", "part": "events", "after": 3, "key": "4"}, "after: it does not go with key"),
    ],
)
async def test_no_parameter_is_ignored(tmp_path: Path, tool: str, arguments: dict[str, Any], words: str) -> None:
    async with coordinated(tmp_path, drives=False) as (desk, _):
        found = await desk.refused(tool, **arguments)
        assert (found["error"], words in found["message"]) == ("bad_argument", True), found


async def test_the_overview_tells_what_agents_are_and_what_chains_and_councils_take(tmp_path: Path) -> None:
    coder = '[agents.coder]\nkind = "claude-code"\nmodel = "claude-haiku-5-5"\n'
    (tmp_path / "library" / "broken").mkdir(parents=True)
    (tmp_path / "library" / "broken" / "chain.yaml").write_text("steps: 3")
    async with coordinated(tmp_path, more=coder, drives=False) as (desk, _):
        found = await desk.call("overview")
        assert {"name": "coder", "kind": "claude-code", "model": "claude-haiku-5-5"} in found["agents"]
        assert {"name": "me", "kind": "human"} in found["agents"]
        library = {(one["kind"], one["name"]): one for one in found["library"]}
        assert library["chain", "greet"]["inputs"] == {"topic": "required"}
        assert library["council", "pair"]["members"] == ["sim/echo", "sim/slow"]
        assert "broken/chain.yaml" in library["chain", "broken"]["error"]
        assert str(tmp_path) not in json.dumps(found)


async def test_the_overview_of_a_large_project_stays_short(tmp_path: Path) -> None:
    agents = "".join(f'[agents.agent-{number}]\nkind = "human"\n' for number in range(300))
    many = tmp_path / "library" / "many"
    many.mkdir(parents=True)
    for number in range(300):
        (many / f"c{number}.yaml").write_text(CHAIN)
    async with coordinated(tmp_path, more=agents, drives=False) as (desk, _):
        found = await desk.call("overview")
        assert (len(found["agents"]), len(found["library"])) == (100, 200)
        left = {"agents": 300 + 3 - 100, "library": 300 + 4 - 200}
        assert found["not_listed"] == {part: f"{n} more: overview(part='{part}')" for part, n in left.items()}
        assert len(json.dumps(found)) < 40_000
        for part, named in (("agents", {f"agent-{number}" for number in range(300)}), ("library", {"many/c299"})):
            rows: list[Any] = []
            page: dict[str, Any] = {"next_after": ""}
            while page["next_after"] is not None:
                page = await desk.call("overview", part=part, after=page["next_after"])
                rows += page[part]
            assert len(rows) == page["total"] == len(found[part]) + left[part]
            assert named <= {row["name"] for row in rows}
        assert all("inputs" in row for row in rows if row["kind"] == "chain")  # each of a page is described


async def test_an_unknown_tool_is_an_error_of_the_protocol(tmp_path: Path) -> None:
    async with coordinated(tmp_path, drives=False) as (desk, _):
        with pytest.raises(MCPError, match="there is no tool 'rm'"):
            await desk.client.call_tool("rm", {})


async def test_the_same_request_key_starts_one_run_and_another_call_under_it_is_refused(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, muster):
        first, second = [await desk.call("ask", agent="sim/echo", prompt="hi", request_key="k") for _ in range(2)]
        assert first["id"] == second["id"]
        assert (await desk.refused("ask", agent="sim/echo", prompt="ho", request_key="k"))["error"] == "conflict"
        battle: dict[str, Any] = {"agent": "sim/echo", "counterpart": "sim/echo"}
        spelled: list[dict[str, Any]] = [battle, {**battle, "message_limit": 25, "system_prompt": ""}]
        started = [await desk.call("start_battle", **one, request_key="b") for one in spelled]
        assert started[0]["id"] == started[1]["id"]
        tasks = [(await desk.call("fan_out", prompts=["a", "b"], request_key="f"))["ids"] for _ in range(2)]
        assert tasks[0] == tasks[1]
        assert len(await muster.runs.list()) == 4


async def test_status_progress_and_results_are_resources(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        run = await desk.done(await desk.call("ask", agent="sim/echo", prompt="hello"))

        async def read(uri: str) -> Any:
            return json.loads((await desk.client.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]

        assert [str(one.uri) for one in (await desk.client.list_resources()).resources] == [
            "muster://status",
            "muster://runs",
        ]
        assert len((await desk.client.list_resource_templates()).resource_templates) == 3
        assert {"name": "sim/echo", "kind": "model"} in (await read("muster://status"))["agents"]
        assert [one["id"] for one in (await read("muster://runs"))["runs"]] == [run["id"]]
        assert (await read(f"muster://runs/{run['id']}"))["state"] == "completed"
        assert (await read(f"muster://runs/{run['id']}/result"))["output"] == "hello"
        assert {"run.created", "call.done"} <= {
            one["kind"] for one in (await read(f"muster://runs/{run['id']}/progress"))["events"]
        }
        for uri in ("muster://runs/none", "muster://files/etc", "file:///etc/passwd", f"muster://runs/{run['id']}/x"):
            with pytest.raises(MCPError):
                await read(uri)


async def test_a_run_that_waits_for_a_batch_which_does_not_get_on_says_why_and_what_an_operator_can_do(
    tmp_path: Path,
) -> None:
    faults = {"script": [{"fault": "missing", "op": "member", "text": "question", "times": "always"}]}
    with ForkedRehearsal(faults=faults) as lossy:
        more, key = provider("lossy", lossy), {"REHEARSAL_KEY": "rehearsal"}
        async with coordinated(tmp_path, more=more, environment=key) as (desk, muster):
            run = await desk.call("ask", agent="lossy", prompt="question", dispatch="batch")
            async with asyncio.timeout(PATIENCE):
                while not await muster.batches.stalled():
                    await muster._backend.store.changes.wait(1.0, muster._backend.store.changes.commits)
            (batch,) = (await desk.call("list_work", kind="batch"))["batches"]
            (waits,) = (await desk.call("result", id=run["id"]))["waits"]
    assert waits["why"] == batch["note"] == "its results lack 1 answer; they are fetched again"
    assert waits["id"] == batch["id"]
    assert any("muster batch reconcile --resubmit" in way for way in waits["next"])
    assert waits["next"] == batch["next"]


async def test_waiting_tells_briefly_what_runs_came_to_and_in_full_when_asked(tmp_path: Path) -> None:
    async with coordinated(tmp_path) as (desk, _):
        task = await desk.call("submit_task", prompt="word " * 2_000)
        await desk.done(task)
        (brief,) = (await desk.call("wait", ids=[task["id"]]))["runs"]
        assert len(json.dumps(brief)) < 1_500
        assert "prompt" not in brief
        assert brief["output"].startswith("word word")
        assert "result(id=" in brief["output"]
        (whole,) = (await desk.call("wait", ids=[task["id"]], full=True))["runs"]
        assert len(whole["output"]) > 8_000


async def test_a_question_for_a_person_is_one_to_ask_the_user(tmp_path: Path) -> None:
    async with coordinated(tmp_path, more='[agents.boss]\nkind = "human"\n') as (desk, _):
        asked = await desk.done(await desk.call("ask", agent="boss", prompt="Shall we ship?"))
        assert asked["next"].startswith("ask the user")
