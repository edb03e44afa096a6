"""Scale tests: their plan, their limits, their figures recounted from the store, and the revised prompt."""

import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from muster.app.battles.battles import BattleEnding
from muster.app.battles.scales import BattleGoal, PromptVariant
from muster.app.views.battles import scale_status_view, scale_view
from muster.app.views.verdicts import verdict_of
from muster.battles.scale_spec import plan_battles, stored_scale
from muster.domain.call import Role
from muster.domain.errors import BadArgument, Conflict
from muster.domain.money import Microdollars, to_usd
from muster.domain.run import RunState
from muster.statistics.intervals import percentile, wilson
from muster.text.views import plain
from tests.battles.home import BOOKED, GOAL, GUEST, NO, YES, battle_home
from tests.pool.chains.home import BRISK, MODEL, OPENAI

PRICE = "price = { input = 1.00, output = 5.00 }"
GOALS = (BattleGoal(goal="reach the moon"), BattleGoal(goal="bake bread", persona="a baker"))
MIXED = (  # the first message decides how a battle ends
    {"text": "moon", "answer": "number 4711"},
    {"answer": "For how many?"},
)


async def test_every_figure_of_a_report_is_a_recount_of_the_stored_conversations(tmp_path: Path) -> None:
    async with battle_home(tmp_path, clerk=MIXED, price=PRICE) as home:
        battle = home.spec(message_limit=2)
        spec = home.muster.battles.scales.spec(battle, runs=6, goals=GOALS, reviser="")
        found = await home.measure(spec)
        view = plain(scale_view(found))
        ids = view["conversationIds"]
        assert len(set(ids)) == 6
        told = [await home.muster.battles.status(one) for one in ids]
        endings = Counter("goal" if one.ending is BattleEnding.GOAL else str(one.ending) for one in told)
        assert view["counts"] == {"goal": 3, "limit": 3, "error": 0, "canceled": 0, "timeout": 0, "budget": 0}
        assert endings == {"goal": 3, "limit": 3}
        interval = wilson(3, 6)
        assert view["intervals"]["goal"] == [interval.low, interval.high]
        pages = [await home.muster.battles.messages(one) for one in ids]
        replies = [[one for one in page.messages if one.role is Role.ASSISTANT] for page in pages]
        assert view["turns"]["mean"] == fmean(map(len, replies))
        times = [one.latency_ms for each in replies for one in each]
        assert view["latencyMs"]["p90"] == percentile(times, 90)
        decisions = [one for each in ids for one in await home.muster.battles.decisions(each)]
        messages = [one for page in pages for one in page.messages]
        written = sum(one.tokens_out for one in messages) + sum(one.tokens_out for one in decisions)
        cost = sum(one.cost for one in messages) + sum(one.cost for one in decisions)
        assert (view["usage"]["tokensOut"], view["costUsd"]) == (written, to_usd(Microdollars(cost)))
        assert len(view["samples"]) == 2


async def test_ten_battles_end_with_results_within_their_timeouts(tmp_path: Path) -> None:
    async with battle_home(tmp_path) as home:
        spec = home.muster.battles.scales.spec(home.spec(timeout_secs=60), runs=10, reviser="")
        found = await home.measure(spec, timeout=120.0)
        assert (found.run.state, found.counts["goal"], found.ok) == (RunState.COMPLETED, 10, True)
        assert [(one.run.timeout, one.turns, len(one.messages), len(one.decisions)) for one in found.reports] == [
            (60.0, 3, 6, 4)
        ] * 10


async def test_battles_whose_time_is_over_are_counted_and_the_test_ends(tmp_path: Path) -> None:
    async with battle_home(tmp_path) as home:
        battle = home.spec("sim/slow", message_limit=3, timeout_secs=0.3, judge="judge")
        spec = home.muster.battles.scales.spec(battle, runs=10, reviser="")
        found = await home.measure(spec)
        assert (found.run.state, found.counts["timeout"], found.ok) == (RunState.COMPLETED, 10, False)
        assert {one.run.state for one in found.reports} == {RunState.TIMEOUT}


async def test_limits_hold_for_a_spec_that_is_made_by_hand_too(tmp_path: Path) -> None:
    async with battle_home(tmp_path) as home:
        scales = home.muster.battles.scales
        with pytest.raises(BadArgument, match="runs must be at most 10, not 11"):
            scales.spec(home.spec(), runs=11)
        with pytest.raises(BadArgument, match="concurrency must be at most 3, not 4"):
            scales.spec(home.spec(), concurrency=4)
        allowed = scales.spec(home.spec(), runs=2, reviser="")
        for forged in (replace(allowed, runs=11), replace(allowed, concurrency=4)):
            with pytest.raises(BadArgument, match="must be at most"):
                await home.muster.start("scale", stored_scale(forged))
            # Stored past every check, as by another program: the workload refuses it itself.
            handle = await home.muster.runs.start_checked("scale", stored_scale(forged))
            run = await handle.wait()
            assert (run.state, run.calls.total) == (RunState.FAILED, 0)
            assert "must be at most" in str(run.error)


async def test_the_operator_raises_the_limits(tmp_path: Path) -> None:
    async with battle_home(tmp_path, toml="[battles]\nruns = 12\nconcurrency = 5\n") as home:
        spec = home.muster.battles.scales.spec(home.spec(message_limit=1), concurrency=5, reviser="")
        found = await home.measure(spec)
        assert (spec.runs, len(found.ended)) == (12, 12)


async def test_agents_and_prompts_play_the_same_goals(tmp_path: Path) -> None:
    async with battle_home(tmp_path) as home:
        prompts = (PromptVariant(name="short", text="Be brief."), PromptVariant(name="long", text="Explain."))
        spec = home.muster.battles.scales.spec(
            home.spec(), agents=("clerk", "sim/echo"), prompts=prompts, goals=GOALS, reviser=""
        )
        planned = plan_battles(spec)
        assert len(planned) == 8
        played: dict[tuple[str, str], list[str]] = {(one.agent, one.prompt): [] for one in planned}
        for one in planned:
            played[one.agent, one.prompt].append(one.spec.goal)
        assert list(played.values()) == [["reach the moon", "bake bread"]] * 4
        assert {one.spec.system_prompt for one in planned} == {"Be brief.", "Explain."}
        found = await home.measure(replace(spec, runs=4))
        assert [(one.agent, one.prompt, one.battles) for one in found.rates] == [
            ("clerk", "short", 1),
            ("sim/echo", "short", 1),
            ("clerk", "long", 1),
            ("sim/echo", "long", 1),
        ]


@pytest.mark.parametrize(("rate", "ok"), [(0.5, True), (0.6, False)])
async def test_the_gate_is_the_share_of_goals(tmp_path: Path, rate: float, ok: bool) -> None:
    async with battle_home(tmp_path, clerk=MIXED) as home:
        battle = home.spec(message_limit=1)
        spec = home.muster.battles.scales.spec(battle, runs=4, goals=GOALS, min_goal_rate=rate, reviser="")
        found = await home.measure(spec)
        assert (found.goal_rate, found.ok) == (0.5, ok)
        assert await home.muster.succeeded(found.run) is ok


async def test_a_test_in_which_nothing_is_reached_by_error_does_not_pass(tmp_path: Path) -> None:
    async with battle_home(tmp_path) as home:
        spec = home.muster.battles.scales.spec(home.spec("sim/fail"), runs=2, reviser="")
        found = await home.measure(spec)
        assert (found.run.state, found.counts["error"], found.ok) == (RunState.COMPLETED, 2, False)


REVISED = {"prompt": "Say number 4711 at once.", "reasons": ["It asks too much."]}


async def test_a_revised_prompt_is_only_a_proposal_until_it_was_played(tmp_path: Path) -> None:
    judge = (
        {"text": "Propose a better", "answer": json.dumps(REVISED)},
        {"text": "4711", "answer": YES},
        {"answer": NO},
    )
    async with battle_home(tmp_path, judge=judge) as home:
        scales = home.muster.battles.scales
        found = await home.measure(scales.spec(home.spec(message_limit=1), runs=2))
        view = plain(scale_view(found))
        assert (view["revisedPrompt"], view["rationale"]) == (REVISED["prompt"], "It asks too much.")
        assert (view["comparison"], view["revised"]) == (None, [])
        report = await scales.report(found.run)
        assert "It was not tried: nothing says that it is better." in await report.text("markdown")


async def test_a_revised_prompt_is_compared_with_the_one_before_pair_by_pair(tmp_path: Path) -> None:
    model = MODEL.partition("/")[2]
    rules = (
        {"model": model, "text": "Propose a better", "answer": json.dumps(REVISED)},
        {"model": model, "text": "# The goal", "answer": YES},
    )
    judge = ({"text": "4711", "answer": YES}, {"answer": NO})
    # The echo has the prompt in no reply, so the agent under test is a program that shows it.
    program = (
        'import json, sys\nasked = json.load(sys.stdin)\nprint(json.dumps({"text": asked.get("system", "") or "?"}))\n'
    )
    (tmp_path / "shows.py").write_text(program, encoding="utf-8")
    declared = f'[agents.shows]\nkind = "program"\nmode = "chat"\ncommand = ["{sys.executable}", "shows.py"]\n'
    async with battle_home(tmp_path, *rules, judge=judge, toml=declared) as home:
        battle = home.spec("shows", message_limit=1, system_prompt="Ask.")
        spec = home.muster.battles.scales.spec(battle, runs=8, reviser=MODEL, try_revised=True)
        found = await home.measure(spec)
        compared = found.comparison
        assert compared is not None
        assert (compared.pairs, compared.before, compared.after, compared.gained) == (8, 0, 8, 8)
        assert (compared.word, compared.p < 0.05) == ("better", True)
        assert found.counts["goal"] == 0  # those with the revised prompt are counted by themselves
        few = await home.measure(replace(spec, runs=2))
        assert few.comparison is not None
        assert few.comparison.word == "no difference is shown"


async def test_a_prompt_is_not_better_because_its_agent_was_broken_before(tmp_path: Path) -> None:
    model = MODEL.partition("/")[2]
    rules = (
        {"model": model, "text": "Propose a better", "answer": json.dumps(REVISED)},
        {"model": model, "text": "# The goal", "answer": YES},
    )
    program = (
        "import json, sys\n"
        'system = json.load(sys.stdin).get("system", "")\n'
        'sys.exit("no network") if "Ask." in system else print(json.dumps({"text": system}))\n'
    )
    (tmp_path / "broken.py").write_text(program, encoding="utf-8")
    declared = f'[agents.broken]\nkind = "program"\nmode = "chat"\ncommand = ["{sys.executable}", "broken.py"]\n'
    async with battle_home(tmp_path, *rules, judge=({"answer": YES},), toml=declared) as home:
        battle = home.spec("broken", message_limit=1, system_prompt="Ask.")
        spec = home.muster.battles.scales.spec(battle, runs=6, reviser=MODEL, try_revised=True, min_goal_rate=0)
        found = await home.measure(spec)
        assert (found.counts["error"], {one.ending for one in found.revised}) == (6, {BattleEnding.GOAL})
        compared = found.comparison
        assert compared is not None
        assert (compared.pairs, compared.left_out, compared.gained, compared.p) == (0, 6, 0, 1.0)
        assert compared.word == "no pair can be compared"
        assert plain(scale_view(found))["comparison"]["leftOut"] == 6
        report = await home.muster.battles.scales.report(found.run)
        assert "6 pairs are left out: 6 since a side ended by error, budget, timeout or cancel" in await report.text(
            "markdown"
        )
        assert not found.ok
        assert "no battle was played to its end" in found.verdict


SHOWS = 'import json, sys\nprint(json.dumps({"text": json.load(sys.stdin).get("system", "") or "?"}))\n'
FAILS_BEFORE = f"import sys\nprint({YES!r}) if '4711' in sys.stdin.read() else sys.exit(5)\n"


async def test_a_prompt_is_not_better_because_its_judge_was_broken_before(tmp_path: Path) -> None:
    model = MODEL.partition("/")[2]
    rule = {"model": model, "text": "Propose a better", "answer": json.dumps(REVISED)}
    declared = ""
    for name, mode, program in (("shows", "chat", SHOWS), ("referee", "plain", FAILS_BEFORE)):
        (tmp_path / f"{name}.py").write_text(program, encoding="utf-8")
        declared += f'[agents.{name}]\nkind = "program"\nmode = "{mode}"\ncommand = ["{sys.executable}", "{name}.py"]\n'
    async with battle_home(tmp_path, rule, toml=declared) as home:
        battle = home.spec("shows", message_limit=1, system_prompt="Ask.", judge="referee")
        spec = home.muster.battles.scales.spec(battle, runs=6, reviser=MODEL, try_revised=True, min_goal_rate=0)
        found = await home.measure(spec)
        assert (found.counts["limit"], {one.ending for one in found.revised}) == (6, {BattleEnding.GOAL})
        compared = found.comparison
        assert compared is not None
        assert (compared.pairs, compared.left_out, compared.unjudged) == (0, 6, 6)
        assert (compared.word, found.ok) == ("no pair can be compared", False)
        assert "; 6 judged by nobody; no battle was played to its end and judged" in found.verdict
        assert "reached the turn limit" not in found.verdict
        view = plain(scale_view(found))
        assert (view["unjudged"], view["comparison"]["leftOut"], view["comparison"]["leftOutUnjudged"]) == (6, 6, 6)
        assert "exited with code 5" in view["battles"][0]["unjudged"]
        text = await (await home.muster.battles.scales.report(found.run)).text("markdown")
        assert "6 pairs are left out: 6 since nobody judged a side." in text
        assert "6 battles came to the limit and are judged by nobody: `no verdict: " in text
        said = verdict_of(found.run)
        assert said is not None
        assert (said.ok, said.words) == (False, "0 of 6 reached the goal, 6 judged by nobody")
        ungated = await home.measure(replace(spec, min_goal_rate=None, reviser="", try_revised=False))
        assert not ungated.ok


async def test_no_more_battles_are_played_at_once_than_is_said(tmp_path: Path) -> None:
    async with battle_home(tmp_path) as home:
        battle = home.spec(MODEL, OPENAI, goal="", judge=None, message_limit=2)
        spec = home.muster.battles.scales.spec(battle, runs=6, concurrency=2)
        found = await home.measure(spec)
        assert found.counts["limit"] == 6
        assert 1 <= home.server.audit.max_in_flight <= 2


async def test_all_battles_go_in_lockstep_in_batches(tmp_path: Path) -> None:
    clerk, guest = MODEL.partition("/")[2], OPENAI.partition("/")[2]
    rules = (
        {"model": clerk, "text": "# The goal", "answer": NO},
        {"model": clerk, "answer": "For how many?"},
        {"model": guest, "answer": "For two."},
    )
    turns = 2
    # Long enough that a machine under load parks all ten before it is quiet.
    async with battle_home(tmp_path, *rules, patience=replace(BRISK, settle=1.5)) as home:
        battle = home.spec(MODEL, OPENAI, judge=MODEL, message_limit=turns)
        spec = home.muster.battles.scales.spec(battle, runs=10, reviser="")
        found = await home.measure(spec, dispatch="batch", budget_usd="5.00")
        assert (found.counts["limit"], found.turns and found.turns.most) == (10, turns)
        batches = home.server.audit.batches
        sizes = Counter((batch["provider"], batch["requests"]) for batch in batches)
        # Replies and judges at one provider, one batch each in every turn; no counterpart speaks after the last.
        assert sizes == {("anthropic", 10): 2 * turns, ("openai", 10): turns - 1}


async def test_a_canceled_test_cancels_its_battles_and_counts_them(tmp_path: Path) -> None:
    async with battle_home(tmp_path, toml='[agents.me]\nkind = "human"\n') as home:
        scales = home.muster.battles.scales
        spec = scales.spec(home.spec(counterpart="me"), runs=3, reviser="")
        handle = await scales.start(spec)
        await home.questions(handle.id, 3)
        with pytest.raises(Conflict, match="its report is available when it has ended"):
            await scales.result(handle.id)
        before = plain(scale_status_view(await scales.status(handle.id)))
        assert (before["completed"], before["total"], len(before["conversationIds"])) == (0, 3, 3)
        await scales.cancel(handle.id)
        await handle.wait()
        found = await scales.result(handle.id)
        assert (found.run.state, found.counts["canceled"], found.ok) == (RunState.CANCELED, 3, False)
        assert [len(one.messages) for one in found.reports] == [2, 2, 2]


async def test_a_canceled_test_starts_no_battle_more_and_asks_nobody_for_a_better_prompt(tmp_path: Path) -> None:
    async with battle_home(tmp_path, toml='[agents.me]\nkind = "human"\n') as home:
        scales = home.muster.battles.scales
        spec = scales.spec(home.spec(counterpart="me"), runs=9, concurrency=3, reviser="judge")
        handle = await scales.start(spec)
        await home.questions(handle.id, 3)  # who waits for a person takes no place, so that others may have begun
        await scales.cancel(handle.id)
        await handle.wait()
        found = await scales.result(handle.id)
        assert found.run.state is RunState.CANCELED
        events = await home.muster.runs.events(handle.id)
        canceled = min(event.at for event in events if event.kind in ("run.canceling", "run.canceled"))
        assert all(one.run.created_at <= canceled for one in (await scales.conversations(handle.id)).values())
        assert await home.calls(found.run) == []


async def test_one_battle_that_is_canceled_by_hand_is_counted_and_the_others_go_on(tmp_path: Path) -> None:
    async with battle_home(tmp_path, toml='[agents.me]\nkind = "human"\n') as home:
        scales = home.muster.battles.scales
        handle = await scales.start(scales.spec(home.spec(counterpart="me", message_limit=2), runs=2, reviser=""))
        await home.questions(handle.id, 2)
        first, second = (await scales.conversations(handle.id)).values()
        await home.muster.battles.cancel(first.run.id)
        await home.muster.runs.answer(second.run.id, "For two.")
        await handle.wait()
        found = await scales.result(handle.id)
        assert (found.run.state, found.counts["canceled"], found.counts["limit"]) == (RunState.COMPLETED, 1, 1)


async def test_a_budget_is_hard_for_all_battles_together(tmp_path: Path) -> None:
    async with battle_home(tmp_path, price=PRICE) as home:
        spec = home.muster.battles.scales.spec(home.spec(), runs=5, reviser="")
        found = await home.measure(spec, budget_usd="0.012")
        assert found.run.spent.settled <= 12_000
        assert found.counts["budget"] >= 1
        assert not found.ok
        assert (found.run.state, found.run.ended_reason) == (RunState.FAILED, "budget")
        again = await home.muster.resume(found.run.id, budget_usd="1.00")  # plays what the budget has stopped
        assert (await again.wait()).state is RunState.COMPLETED
        counts = (await home.muster.battles.scales.result(again.id)).counts
        assert (counts["budget"], sum(counts.values())) == (0, 5)


FILES: tuple[tuple[str, str, str], ...] = (
    ("goals.yaml", "goals:\n  - reach the moon\n  - goal: 5\n    colour: red\n", "goals.yaml:4"),
    ("goals.yaml", "goals: none\n", "goals must be a list"),
    ("goals.yaml", "tasks: []\n", "unknown key 'tasks'"),
    ("goals.jsonl", '{"goal": "a"}\n{"goal": \n', "goals.jsonl:2"),
    ("goals.jsonl", '{"persona": "a"}\n', "goals.jsonl:1"),
    ("goals.txt", "a", "must be one of"),
    ("goals.jsonl", "\n", "has 0 goals"),
)


@pytest.mark.parametrize(("name", "text", "words"), FILES)
async def test_a_wrong_file_of_goals_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, encoding="utf-8")
    async with battle_home(tmp_path) as home:
        with pytest.raises(Exception, match=words):
            home.muster.battles.scales.goals(name)


async def test_goals_are_read_from_yaml_and_from_json_lines(tmp_path: Path) -> None:
    written = [{"goal": "bake bread", "persona": "a baker", "user_message": "Hi!"}, "reach the moon"]
    wanted = (BattleGoal(goal="bake bread", persona="a baker", user_message="Hi!"), BattleGoal(goal="reach the moon"))
    (tmp_path / "goals.yaml").write_text(json.dumps({"goals": written}), encoding="utf-8")
    (tmp_path / "goals.jsonl").write_text("\n".join(map(json.dumps, written)), encoding="utf-8")
    async with battle_home(tmp_path, clerk=({"answer": BOOKED},), guest=GUEST) as home:
        scales = home.muster.battles.scales
        assert scales.goals(tmp_path / "goals.yaml") == scales.goals(tmp_path / "goals.jsonl") == wanted
        spec: Any = scales.spec(home.spec(goal=GOAL), goals=wanted)
        assert [one.spec.first_message for one in plan_battles(spec)] == ["Hi!", "reach the moon"]
