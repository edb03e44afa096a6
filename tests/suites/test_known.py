"""Answers that are known: replayed, reused, judged anew, or read from a file."""

import json
from pathlib import Path
from typing import Any

import pytest

from muster.app.suites.suites import AnswerSource
from muster.app.suites.values import SuiteChoice
from muster.domain.call import Quality
from muster.domain.case import Status
from muster.domain.errors import BadArgument, NotFound
from muster.domain.run import Origin, Reuse, Run, RunState
from muster.suites.checks.scoring import score
from muster.suites.format.suite import open_suite
from muster.suites.recorded import observe_recorded
from muster.suites.values.case import Evaluator
from muster.suites.values.rules import CURRENT_RULES, rules_in
from tests.suites.stage import (
    JUDGE,
    MODEL,
    Cases,
    Stage,
    a_case,
    a_judged_case,
    a_suite,
    a_verdict,
    playing,
    stage,
    statuses,
    troubled,
)

FAILING = {"output": [{"kind": "contains", "value": "never said"}]}


async def chosen(s: Stage, *, replay: str | None = None, reuse: str | None = None, **given: Any) -> Run:
    """Run as the command does: what is left open is taken from the run that is replayed or reused."""
    source = await s.muster.suites.source(replay=replay, reuse=reuse)
    choice = SuiteChoice(paths=(str(s.folder / "cases.yaml"),), **given)
    spec = await s.muster.suites.spec(choice, source)
    return await (await s.muster.start("suite", spec.stored(), origin=source.origin)).wait()


async def rejudged(s: Stage, run: Run, **said: Any) -> Run:
    spec = {**run.spec, **said, "generate": False}
    return await (await s.muster.start("suite", spec, origin=Origin(run=run.id, reuse=Reuse.REPLIES))).wait()


def paid(s: Stage) -> tuple[int, int]:
    return s.agent.audit.requests, s.judge.audit.requests


async def test_a_replay_asks_nobody_and_gives_the_very_same_results(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        s.agent.play(troubled({"fault": "400", "text": "bad", "times": "always"}))
        a_suite(tmp_path, a_case("one"), a_judged_case("two"), a_case("bad", "bad"), a_case("no", expected=FAILING))
        run = await s.run(judge=JUDGE, epochs=2, judge_samples=2)
        before = paid(s)
        first = await s.results(run)
        file = tmp_path / "run.jsonl"
        await s.muster.runs.export(run.id, file)
        for reference in (run.id, str(file)):
            again = await chosen(s, replay=reference)
            assert again.result == run.result
            assert (await s.results(again), paid(s)) == (first, before)
        whole = await s.muster.runs.drive(await s.muster.runs.replay(run.id)).wait()
        assert (whole.result, await s.results(whole), paid(s)) == (run.result, first, before)


async def test_a_file_is_replayed_in_a_store_that_never_saw_the_run_and_without_any_key(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    a_suite(here, a_case("one"), a_judged_case("two"))
    a_suite(there, a_case("one"), a_judged_case("two"))
    async with stage(here) as s:
        run = await s.run(judge=JUDGE)
        first = await s.results(run)
        await s.muster.runs.export(run.id, there / "run.jsonl")
    async with stage(there, variables={"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": ""}) as s:
        again = await chosen(s, replay=str(there / "run.jsonl"))
        assert (await s.results(again), paid(s)) == (first, (0, 0))
        assert (await s.muster.suites.find(str(there / "run.jsonl"))).id == run.id


async def test_new_checks_are_applied_to_the_old_answers(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"), a_case("two"))
        run = await s.run()
        a_suite(tmp_path, a_case("one", expected=FAILING), a_case("two"))
        again = await chosen(s, replay=run.id)
        assert statuses(await s.results(again)) == {"one": Status.FAILED, "two": Status.PASSED}
        assert paid(s) == (2, 0)


@pytest.mark.parametrize("change", ["new case", "other question"])
async def test_what_a_replay_does_not_know_is_an_error_that_names_the_key(tmp_path: Path, change: str) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"))
        run = await s.run()
        a_suite(tmp_path, *([a_case("one"), a_case("new")] if change == "new case" else [a_case("one", "otherwise")]))
        again = await chosen(s, replay=run.id)
        name = "new" if change == "new case" else "one"
        found = {result.case: result for result in await s.results(again)}
        missed = found.pop(f"s/{name}")
        assert (missed.status, paid(s), again.result["ok"]) == (Status.ERROR, (1, 0), False)
        assert f"case/s/{name}/@{MODEL}/1/1" in missed.why
        assert all(result.status is Status.PASSED for result in found.values())  # the others are not held up by it


async def test_reuse_pays_for_cases_whose_request_changed_and_for_nothing_else(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("same"), a_judged_case("judged"), a_case("changed", "before"), a_case("gone"))
        run = await s.run(judge=JUDGE)
        assert paid(s) == (4, 1)
        again = [a_case("same", expected=FAILING), a_judged_case("judged"), a_case("changed", "after"), a_case("new")]
        a_suite(tmp_path, *again)
        second = await chosen(s, reuse=run.id)
        assert statuses(await s.results(second)) == {
            "same": Status.FAILED, "judged": Status.PASSED, "changed": Status.PASSED, "new": Status.PASSED,
        }  # fmt: skip
        assert (paid(s), second.calls.reused) == ((6, 1), 3)


async def test_reuse_tries_again_what_was_an_error(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        s.agent.play(troubled({"fault": "400", "text": "bad"}))
        a_suite(tmp_path, a_case("good"), a_case("bad", "bad"))
        run = await s.run()
        assert statuses(await s.results(run)) == {"good": Status.PASSED, "bad": Status.ERROR}
        again = await chosen(s, reuse=run.id)
        assert (again.result["ok"], paid(s)) == (True, (3, 0))


async def test_what_is_left_open_is_as_in_the_run_that_is_reused_and_what_is_said_is_not(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"))
        run = await s.run(epochs=2, max_tokens=50, threshold=0.9)
        again = await chosen(s, reuse=run.id, epochs=3)
        assert (again.spec["agents"], again.spec["epochs"], again.spec["threshold"]) == ([MODEL], 3, 0.9)
        assert paid(s) == (3, 0)


async def test_only_failed_runs_what_did_not_pass_and_what_was_never_come_to(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        names = ["good", "bad", "stop", "later"]
        a_suite(tmp_path, *(a_case(n, n, expected=FAILING if n == "bad" else _saying(n)) for n in names))
        s.agent.play(troubled({"fault": "401", "text": "stop"}))
        run = await s.drive({}, concurrency=1)
        assert run.state is RunState.FAILED
        missed = (
            await s.muster.suites.spec(SuiteChoice(paths=("cases.yaml",), only_failed=run.id), AnswerSource())
        ).only
        assert set(missed or ()) >= {"s/bad", "s/stop", "s/later"}
        again = await chosen(s, only_failed=run.id, agents=[MODEL])
        assert tuple(result.case for result in await s.results(again)) == missed
        a_suite(tmp_path, a_case("good"))
        clean = await s.run()
        with pytest.raises(NotFound, match="nothing to run again"):
            await chosen(s, only_failed=clean.id, agents=[MODEL])


async def test_judging_anew_asks_the_judge_and_never_an_agent(tmp_path: Path) -> None:
    async with stage(
        tmp_path, judge=playing({"model": "gpt-5", "answer": a_verdict(0.1)}, {"answer": a_verdict()})
    ) as s:
        s.agent.play(troubled({"fault": "400", "text": "bad"}))
        a_suite(tmp_path, a_judged_case("one"), a_judged_case("bad", "bad"), a_case("ruled"))
        run = await s.run(judge=JUDGE)
        (tmp_path / "cases.yaml").unlink()
        assert paid(s) == (3, 1)
        again = await rejudged(s, run, judge="openai/gpt-5", judge_samples=2)
        assert (paid(s), again.state) == ((3, 3), RunState.COMPLETED)
        assert statuses(await s.results(again)) == {
            "one": Status.FAILED, "bad": Status.ERROR, "ruled": Status.PASSED,
        }  # fmt: skip
        assert statuses(await s.results(run))["one"] is Status.PASSED
        assert [case.id async for case in (await s.opened(again)).cases()] == ["s/one", "s/bad", "s/ruled"]
        assert [r.keys for r in await s.results(again)] == [r.keys for r in await s.results(run)]


async def test_an_answer_that_was_never_recorded_is_an_error_and_no_call_when_judged_anew(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_judged_case("known"), a_judged_case("stop", "stop"), a_judged_case("never"))
        s.agent.play(troubled({"fault": "401", "text": "stop"}))
        run = await s.drive({"judge": JUDGE}, concurrency=1)
        assert run.ended_reason == "auth_refused"
        before = paid(s)
        again = await rejudged(s, run, judge="openai/gpt-5")
        known, stopped, never = await s.results(again)
        assert [known.status, stopped.status, never.status] == [Status.PASSED, Status.ERROR, Status.ERROR]
        assert "401" in stopped.why
        assert f"case/s/never/@{MODEL}/1/1" in never.why
        assert (paid(s)[0], again.result["ok"]) == (before[0], False)


async def test_recorded_answers_are_scored_and_a_case_without_one_is_an_error(tmp_path: Path) -> None:
    answers = recorded(tmp_path, one="hello there", judged="hello you", other="hi")
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"), a_judged_case("judged"), a_case("wrong"), a_case("other"))
        run = await chosen(s, replay=str(answers), judge=JUDGE)
        found = await s.results(run)
        assert statuses(found) == {
            "one": Status.PASSED, "judged": Status.PASSED, "wrong": Status.ERROR, "other": Status.FAILED,
        }  # fmt: skip
        assert ({result.subject for result in found}, paid(s)) == ({"recorded"}, (0, 1))
        assert "no recorded answer" in found[2].why


NO_SECRET = {"output": [{"kind": "not_contains", "value": "secret"}]}
TWO_TURNS = {"follow_ups": ["and now?"]}
OF_TURN = {"output": [{"kind": "not_contains", "value": "secret", "turn": 1}]}


@pytest.mark.parametrize(
    ("case", "said", "status", "why"),
    [
        (a_case("c", expected=NO_SECRET), {"1/1": ""}, Status.FAILED, "the answer is empty"),
        (a_case("c", expected=NO_SECRET), {"1/1": " \n\u200b\t"}, Status.FAILED, "the answer is empty"),
        (a_case("c", expected=NO_SECRET, accepts=["empty"]), {"1/1": ""}, Status.PASSED, ""),
        (a_case("c", expected=NO_SECRET, input=TWO_TURNS), {"1/1": "a"}, Status.ERROR, "to turn 2 in epoch 1"),
        (a_case("c", expected=OF_TURN, input=TWO_TURNS), {"1/1": "a"}, Status.ERROR, "to turn 2 in epoch 1"),
        (a_case("c", expected=NO_SECRET, input=TWO_TURNS), {"1/2": "a"}, Status.ERROR, "to turn 1 in epoch 1"),
        (a_case("c", expected=NO_SECRET, input=TWO_TURNS), {"1/1": "a", "1/2": ""}, Status.FAILED, "is empty"),
        (a_case("c", expected=NO_SECRET, input=TWO_TURNS), {"1/1": "", "1/2": "a"}, Status.FAILED, "is empty"),
        (a_case("c", expected=NO_SECRET, input=TWO_TURNS), {"1/1": "a", "1/2": "b"}, Status.PASSED, ""),
        (a_case("c", expected=NO_SECRET), {"1/1": "a", "1/2": "b"}, Status.ERROR, "to 2 turns, and the case has 1"),
        (a_case("c", expected=NO_SECRET), {"2/1": "a"}, Status.ERROR, "no recorded answer in epoch 1"),
        (a_case("c", expected=NO_SECRET), {"1/1": "a", "1/4": "b"}, Status.ERROR, "to turn 4, and the case has 1"),
        (a_case("c", expected=NO_SECRET), {"1/1": "a", "2/4": "b"}, Status.PASSED, ""),
        (a_case("c", expected=NO_SECRET), {"1/1": "\x1b[0m"}, Status.FAILED, "the answer is empty"),
        (a_case("c", expected=NO_SECRET), {"1/1": "\x1b]0;title\x07 \x9b1;31m\x1b(B"}, Status.FAILED, "is empty"),
        (a_case("c", expected=NO_SECRET), {"1/1": "\x1b[31mred\x1b[0m"}, Status.PASSED, ""),
    ],
)
def test_recorded_answers_pass_by_the_rules_of_live_ones(
    tmp_path: Path, case: Cases, said: dict[str, str], status: Status, why: str
) -> None:
    (resolved,) = open_suite(a_suite(tmp_path, case)).cases()
    seen = observe_recorded(resolved, 1, said, CURRENT_RULES)
    found = score(
        resolved, seen, subject="", epoch=1, evaluators=(Evaluator.RULES,), default_threshold=0.7, judgements={}
    )
    assert found.status is status
    assert why in found.why


@pytest.mark.parametrize("said", [{"1/1": "a", "1/4": "b"}, {"1/1": "\x1b[0m"}])
def test_recorded_answers_of_older_runs_pass_as_they_did(tmp_path: Path, said: dict[str, str]) -> None:
    (resolved,) = open_suite(a_suite(tmp_path, a_case("c", expected=NO_SECRET))).cases()
    seen = observe_recorded(resolved, 1, said, rules_in({"scoring_rules": 2}))
    assert (seen.error, seen.quality) == (None, Quality.GOOD)


async def test_an_epoch_without_a_recorded_answer_is_an_error(tmp_path: Path) -> None:
    answers = recorded(tmp_path, one="hello there")
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"))
        run = await chosen(s, replay=str(answers), epochs=3)
        found = await s.results(run)
        assert [result.status for result in found] == [Status.PASSED, Status.ERROR, Status.ERROR]
        assert "in epoch 3: name turn and epoch beside its case_id" in found[2].why
        assert run.result["ok"] is False


async def test_a_run_of_recorded_answers_is_replayed_and_reused_like_any_other(tmp_path: Path) -> None:
    answers = recorded(tmp_path, one="hello there", judged="hello you")
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"), a_judged_case("judged"))
        run = await chosen(s, replay=str(answers), judge=JUDGE)
        first = await s.results(run)
        for again in (await chosen(s, replay=run.id), await chosen(s, reuse=run.id)):
            assert (await s.results(again), paid(s)) == (first, (0, 1))
        live = await chosen(s, reuse=run.id, agents=["sim/echo"])
        assert {result.subject for result in await s.results(live)} == {"sim/echo"}


async def test_recorded_answers_go_with_no_agent(tmp_path: Path) -> None:
    answers = recorded(tmp_path, one="hello")
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"))
        with pytest.raises(BadArgument, match="cannot be combined with agents"):
            await chosen(s, replay=str(answers), agents=[MODEL])
        with pytest.raises(BadArgument, match="replay and reuse cannot be used together"):
            await s.muster.suites.source(replay="last", reuse="last")
        assert (await s.muster.suites.source(replay=str(answers))).answers == str(answers)


async def test_a_run_of_something_else_and_one_that_is_not_there_are_refused(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        with pytest.raises(NotFound, match="no such file exists"):
            await s.muster.suites.source(replay="nowhere")
        asked = await s.muster.start("ask", {"agent": "sim/echo", "prompt": "hello"})
        await asked.wait()
        with pytest.raises(BadArgument, match="not a suite"):
            await s.muster.suites.source(reuse=asked.id)


def recorded(folder: Path, **answers: str) -> Path:
    path = folder / "answers.json"
    entries = [
        {"tool": "agent_response", "args_match": {"case_id": f"s/{name}"}, "response": {"content": text}}
        for name, text in answers.items()
    ]
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def _saying(text: str) -> dict[str, Any]:
    return {"output": [{"kind": "equals", "value": text}]}
