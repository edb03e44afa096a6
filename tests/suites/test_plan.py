"""What a run would do and cost, and what keeps it from being begun: found out before anything is stored."""

from pathlib import Path
from typing import Any

import pytest

from muster.app import Patience
from muster.app.base.costs import Quoting
from muster.app.suites.plan import SuitePlan
from muster.cli.suites.options import RejudgeArguments
from muster.cli.suites.order import judge_again
from muster.cli.terminal.output import CommonOptions
from muster.domain.dispatch import Dispatch, Mode
from muster.domain.errors import BadArgument, BadConfiguration, BadFile, MusterError, NotFound
from muster.sim.faults import Fault, FaultKind, Faults
from muster.sim.options import Options
from muster.suites.order import RejudgeOrder
from muster.suites.spec import read_spec
from muster.suites.values.case import MAX_TOOL_TURNS
from tests.suites.stage import JUDGE, MODEL, Stage, a_case, a_judged_case, a_suite, error_of, playing, stage

NO_KEYS = {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}


def surveyed(
    s: Stage, *, quoting: Quoting = Quoting.ALL, mode: Mode = Mode.LIVE, agents: tuple[str, ...] = (MODEL,), **spec: Any
) -> SuitePlan:
    given = {"path": [str(s.folder / "cases.yaml")], "agents": agents, **spec}
    return s.muster.suites.plan(read_spec(given), Dispatch(mode=mode), quoting)


async def stored(s: Stage) -> int:
    return len(await s.muster._backend.store.runs.roots())


async def test_calls_of_agents_and_judges_are_counted_and_skipped_cases_are_not(tmp_path: Path) -> None:
    tool = {"name": "look", "results": [{"result": "ok"}]}
    async with stage(tmp_path) as s:
        a_suite(
            tmp_path,
            a_case("plain"),
            a_case("turns", input={"follow_ups": ["and?", "so?"]}),
            a_case("tools", input={"tools": [tool]}),
            a_case("later", skip="not yet"),
            a_case("command", evaluator_config={"evaluator": "process", "process_cmd": ["true"]}),
            a_judged_case("judged"),
            a_judged_case("own", agents=["sim/echo", "sim/tool"]),
        )
        found = surveyed(s, judge=JUDGE, judge_samples=3, epochs=2)
        assert {agent: load.calls for agent, load in found.agents.items()} == {
            MODEL: 2 * (1 + 3 + 1 + 1 + 1), "sim/echo": 2, "sim/tool": 2,
        }  # fmt: skip
        assert (found.judge.calls, found.commands, found.may_call_tools) == (2 * 3 * 3, 2, 2)
        assert (found.suites, found.cases, found.skipped, found.units) == (1, 7, 1, 16)
        assert (s.agent.audit.requests, s.judge.audit.requests, await stored(s)) == (0, 0, 0)


@pytest.mark.parametrize("mode", [Mode.FLEX, Mode.BATCH])
async def test_a_plan_that_costs_less_says_what_live_calls_would_cost_at_most(tmp_path: Path, mode: Mode) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"), a_case("two"))
        found, live = (surveyed(s, agents=(JUDGE, "sim/echo"), mode=one).all for one in (mode, Mode.LIVE))
    assert (live.live, found.live) == (None, live.most)
    assert 0 < found.most < live.most


async def test_a_run_costs_no_more_than_the_most(tmp_path: Path) -> None:
    long = "many words " * 40
    async with stage(tmp_path) as s:
        a_suite(
            tmp_path,
            a_case("short", max_tokens=20),
            a_case("turns", long, max_tokens=500, input={"follow_ups": [long, long]}),
            a_judged_case("judged", long, max_tokens=500, input={"follow_ups": [long]}),
        )
        found = surveyed(s, judge=JUDGE, epochs=2)
        run = await s.run(judge=JUDGE, epochs=2)
        results = await s.results(run)
        assert run.result["ok"] is True
        assert sum(result.cost for result in results) <= found.agents[MODEL].most
        assert sum(result.judge_cost for result in results) <= found.judge.most
        assert run.spent.billed <= found.all.most
        assert found.all.calls == run.calls.done
        assert found.all.tokens == found.agents[MODEL].tokens + found.judge.tokens


async def test_the_least_is_what_short_answers_cost_however_long_they_may_be(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_judged_case("talk", input={"follow_ups": ["and?"]}))
        short, long = (surveyed(s, judge=JUDGE, max_tokens=tokens) for tokens in (10, 1000))
        for less, more in ((short.agents[MODEL], long.agents[MODEL]), (short.judge, long.judge)):
            assert 0 < less.least == more.least < less.most < more.most


async def test_every_answer_of_a_talk_counts_in_what_the_judge_may_read(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_judged_case("one", max_tokens=1000))
        one = surveyed(s, judge=JUDGE).judge.tokens
        a_suite(tmp_path, a_judged_case("three", max_tokens=1000, input={"follow_ups": ["and?", "so?"]}))
        assert surveyed(s, judge=JUDGE).judge.tokens > one + 2 * 1000


async def test_the_most_counts_a_repair_of_every_verdict(tmp_path: Path) -> None:
    muddled = playing({"answer": "I cannot say."})
    async with stage(tmp_path, judge=muddled) as s:
        a_suite(tmp_path, a_judged_case("one"))
        found = surveyed(s, judge=JUDGE)
        run = await s.run(judge=JUDGE)
        assert (s.agent.audit.requests, s.judge.audit.requests) == (1, 2)
        assert found.all.least <= run.spent.settled <= found.all.most


async def test_the_most_counts_every_round_of_tool_calls(tmp_path: Path) -> None:
    look = {"name": "look", "results": [{"result": "look again " * 20}]}
    restless = playing({"answer": {"tool_calls": [{"name": "look", "arguments": {}}]}})
    async with stage(tmp_path, restless) as s:
        a_suite(tmp_path, a_case("tools", max_tokens=50, input={"tools": [look]}), a_case("plain", max_tokens=50))
        found = surveyed(s)
        run = await s.run()
        assert (found.all.calls, found.all.most_calls) == (2, 2 + MAX_TOOL_TURNS)
        assert s.agent.audit.requests == run.calls.done == found.all.most_calls
        assert run.spent.settled <= found.all.most


async def test_the_most_counts_attempts_whose_answers_are_lost(tmp_path: Path) -> None:
    async with stage(tmp_path, Options(faults=Faults(rates=((Fault(kind=FaultKind.CUT_AFTER), 1.0),)))) as s:
        a_suite(tmp_path, a_case("one"))
        found = surveyed(s)
        run = await s.run()
        assert run.spent.uncertain == run.spent.settled > 0
        assert run.spent.settled <= found.all.most


async def test_an_agent_that_reports_what_it_likes_has_no_maximum(tmp_path: Path) -> None:
    free = '[agents.free]\nkind = "program"\ncommand = ["cat"]\n'
    plain = '[agents.plain]\nkind = "program"\nmode = "plain"\ncommand = ["cat"]\n'
    capped = '[agents.capped]\nkind = "program"\ncommand = ["cat"]\nbudget_usd = 0.5\n'
    async with stage(tmp_path, toml=free + plain + capped) as s:
        a_suite(tmp_path, a_case("one"))
        found = surveyed(s, agents=("free", "plain", "capped"))
        assert found.all.unbounded == ("free",)
        assert (found.agents["plain"].most, found.agents["capped"].most) == (0, 500_000)


async def test_in_batches_it_costs_about_half(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"), a_judged_case("two"))
        live, batch = surveyed(s, judge=JUDGE), surveyed(s, judge=JUDGE, mode=Mode.BATCH)
        mixed = surveyed(s, judge=JUDGE, mode=Mode.BATCH, judge_dispatch="live")
        # Live a call may be tried five times, in batches three.
        assert 0.45 < (batch.agents[MODEL].most / 3) / (live.agents[MODEL].most / 5) < 0.55
        assert 0.45 < (batch.judge.most / 3) / (live.judge.most / 5) < 0.55
        assert (mixed.judge, mixed.agents) == (live.judge, batch.agents)


async def test_recorded_answers_cost_nothing_but_their_judge(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"), a_judged_case("two"))
        found = surveyed(s, agents=(), answers="answers.json", judge=JUDGE)
        assert (found.agents, found.judge.calls, found.judge.most > 0) == ({}, 1, True)


async def test_a_judge_that_nobody_named_an_agent_without_a_key_and_an_unknown_one_are_told_first(
    tmp_path: Path,
) -> None:
    async with stage(tmp_path, variables=NO_KEYS) as s:
        a_suite(tmp_path, a_case("one"), a_judged_case("two"))
        with pytest.raises(BadConfiguration, match=r"s/two .*needs a judge, and none is given"):
            surveyed(s, agents=("sim/echo",))
        for quoting in (Quoting.FIRST, Quoting.ALL):
            with pytest.raises(BadConfiguration, match="ANTHROPIC_API_KEY"):
                surveyed(s, judge="sim/echo", quoting=quoting)
            with pytest.raises(BadConfiguration, match="OPENAI_API_KEY"):
                surveyed(s, agents=("sim/echo",), judge=JUDGE, quoting=quoting)
        with pytest.raises(BadConfiguration, match="unknown agent 'nobody'"):
            surveyed(s, agents=("nobody",), judge="sim/echo", quoting=Quoting.FIRST)
        assert surveyed(s, judge=JUDGE, quoting=Quoting.NONE).agents[MODEL].calls == 2
        assert await stored(s) == 0


async def test_judging_anew_without_a_key_for_the_judge_is_told_before_a_run_is_stored(tmp_path: Path) -> None:
    async with stage(tmp_path, variables=NO_KEYS) as s:
        a_suite(tmp_path, a_case("one"))
        run = await s.run(agents=["sim/echo"])
        arguments = RejudgeArguments(order=RejudgeOrder(run=run.id, judge=JUDGE), patience=Patience())
        with pytest.raises(BadConfiguration, match="OPENAI_API_KEY"):
            await judge_again(s.muster, arguments, (), CommonOptions(command="rejudge", quiet=True))
        assert await stored(s) == 1


async def test_a_case_that_nobody_is_asked_about_is_a_bad_argument(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("own", agent="sim/echo"), a_case("nobody"))
        with pytest.raises(BadArgument, match="no agent given for case s/nobody"):
            surveyed(s, agents=())
        assert error_of(await s.run(agents=[])).record()["code"] == "bad_argument"


@pytest.mark.parametrize("chosen", [{"filter": "no*"}, {"tags": ["none"]}, {"only": ["s/other"]}])
async def test_a_selection_that_holds_nothing_is_not_found(tmp_path: Path, chosen: dict[str, Any]) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one", tags=["smoke"]))
        with pytest.raises(NotFound, match=r"no case of .* matches"):
            surveyed(s, **chosen)
        assert error_of(await s.run(**chosen)).record()["code"] == "not_found"


async def test_a_tag_that_no_case_has_is_told_beside_one_that_some_have(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one", tags=["Smoke"]), a_case("two", tags=["slow"]))
        found = surveyed(s, tags=["smoke", "nope"])
        assert (found.cases, [flaw.message for flaw in found.warnings]) == (1, ["no case has the tag 'nope'"])
        assert surveyed(s, tags=["slow", "SMOKE"]).warnings == ()


async def test_what_is_selected_is_run_and_nothing_else(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("a-one", tags=["smoke"]), a_case("a-two"), a_case("b-three", tags=["smoke"]))
        for chosen, names in (
            ({"filter": "s/a-*"}, ["s/a-one", "s/a-two"]),
            ({"filter": "a-*", "tags": ["smoke"]}, ["s/a-one"]),
            ({"only": ["s/b-three", "s/a-two"]}, ["s/a-two", "s/b-three"]),
        ):
            run = await s.run(agents=["sim/echo"], **chosen)
            assert [result.case for result in await s.results(run)] == names


async def test_one_id_in_two_suites_and_two_prompts_of_one_name_are_refused(tmp_path: Path) -> None:
    for name in ("x", "y"):
        a_suite(tmp_path, a_case("same"), name=f"{name}/cases.yaml")
        (tmp_path / name / "alike.md").write_text("Be kind.", encoding="utf-8")
    (tmp_path / "x" / "large.md").write_bytes(b"x" * 1_000_001)
    (tmp_path / "x" / "odd.md").write_bytes(b"\xff")
    folder = str(tmp_path)
    refused: list[tuple[type[MusterError], str, dict[str, Any]]] = [
        (BadFile, "case s/same: another case of this run has the same id", {}),
        (BadArgument, "two prompts are called 'alike'", {"prompts": [f"{folder}/x/alike.md", f"{folder}/y/alike.md"]}),
        (NotFound, "no such prompt file", {"prompts": [f"{folder}/none.md"]}),
        (BadFile, "too long for a prompt", {"prompts": [f"{folder}/x/large.md"]}),
        (BadFile, "is not UTF-8", {"prompts": [f"{folder}/x/odd.md"]}),
        (BadArgument, "epochs", {"epochs": 0}),
        (BadArgument, "agnet", {"agnet": "sim/echo"}),
    ]
    async with stage(tmp_path) as s:
        for kind, words, given in refused:
            spec = {"path": [folder], "agents": ("sim/echo",)} | given
            with pytest.raises(kind, match=words):
                surveyed(s, **spec)
            try:
                error = error_of(await s.drive(spec)).record()
            except BadArgument as refusal:  # the spec itself is wrong: nothing is stored
                error = refusal.record()
            assert error["code"] == kind.code
            assert words in error["message"]


async def test_suites_of_a_folder_are_run_together_each_with_the_prompt_beside_it(tmp_path: Path) -> None:
    for name in ("x", "y"):
        a_suite(tmp_path, a_case(name), name=f"{name}/cases.yaml")
        (tmp_path / name / "prompt.md").write_text(f"Be {name}.", encoding="utf-8")
    async with stage(tmp_path) as s:
        run = await s.run(path=[str(tmp_path)])
        found = await s.results(run)
        assert [(await s.requests(run, result.keys))[0]["system"] for result in found] == ["Be x.", "Be y."]
        snapshot = (await s.opened(run)).snapshot
        assert [(info.cases, info.prompt) for info in snapshot.suites] == [(1, "Be x."), (1, "Be y.")]
