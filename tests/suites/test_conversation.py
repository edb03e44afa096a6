"""What an agent is asked: its turns, its time, its sampling, its prompts, and who is asked at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from muster.domain.case import Status
from muster.domain.run import Origin, Reuse, Run
from muster.sim.options import Options
from muster.suites.values.verdict import CaseResult
from tests.suites.stage import MODEL, Stage, a_case, a_suite, playing, program, stage

GREETER = playing({"text": "name", "answer": "I am Ada."}, {"text": "bye", "answer": "Goodbye."}, {"answer": "Hello!"})

# Says what it was given, as JSON.
MIRROR = """
import json, os, sys
asked = json.load(sys.stdin)
asked["environment"] = {"PLACE": os.environ.get("PLACE"), "STYLE": os.environ.get("STYLE")}
print(json.dumps({"text": json.dumps(asked)}))
"""


async def seen_by_the_mirror(s: Stage, run: Run) -> list[Any]:
    """Give what the program was given, epoch by epoch."""
    suite = await s.opened(run)
    entries = await suite.calls(tuple(key for result in await s.results(run) for key in result.keys))
    return [json.loads(entry.reply.text) for entry in entries if entry.reply]


async def test_follow_ups_reach_the_agent_with_its_own_answers_between(tmp_path: Path) -> None:
    case = a_case(
        "talk",
        "hi",
        input={"follow_ups": ["your name?", "bye then"]},
        expected={
            "output": [
                {"kind": "equals", "value": "Hello!", "turn": 1},
                {"kind": "contains", "value": "Ada", "turn": 2},
                {"kind": "equals", "value": "Goodbye."},
            ]
        },
    )
    async with stage(tmp_path, GREETER) as s:
        a_suite(tmp_path, case)
        run = await s.run()
        result = await s.result(run)
        last = (await s.requests(run, result.keys))[-1]
        assert result.status is Status.PASSED
        assert [message["text"] for message in last["messages"]] == [
            "hi", "Hello!", "your name?", "I am Ada.", "bye then",
        ]  # fmt: skip
        assert [key.rpartition("/")[2] for key in result.keys] == ["1", "2", "3"]


async def test_a_check_of_a_turn_looks_at_that_answer_and_no_other(tmp_path: Path) -> None:
    checks = [{"kind": "contains", "value": "Goodbye", "turn": 1}]
    case = a_case("talk", "hi", input={"follow_ups": ["bye then"]}, expected={"output": checks})
    async with stage(tmp_path, GREETER) as s:
        result = await s.one(case)
        assert (result.status, result.checks[0].passed) == (Status.FAILED, False)


async def test_all_turns_together_have_the_time_of_the_case_and_a_replay_says_the_same(tmp_path: Path) -> None:
    """Two turns of half a second each fit into their time; ten do not."""
    turns = [f"and {number}" for number in range(9)]
    short = a_case("short", "hello", timeout_secs=60, input={"follow_ups": turns[:1]}, expected=_any_answer())
    long = a_case("long", "hello", timeout_secs=3, input={"follow_ups": turns}, expected=_any_answer())
    async with stage(tmp_path, Options(latency_ms=500)) as s:
        a_suite(tmp_path, short, long)
        run = await s.run()
        found = await s.results(run)
        assert [result.status for result in found] == [Status.PASSED, Status.TIMED_OUT]
        assert (found[1].error or {})["code"] == "out_of_time"
        assert 0 < len(found[1].keys) < 10
        assert (run.result["ok"], run.result["counts"]) == (False, {"passed": 1, "timed_out": 1})
        paid = s.agent.audit.calls
        again = await s.drive({}, origin=Origin(run=run.id, reuse=Reuse.RECORDED))
        assert (await s.results(again), s.agent.audit.calls) == (found, paid)


async def test_a_case_that_is_out_of_time_in_its_only_turn_is_timed_out(tmp_path: Path) -> None:
    async with stage(tmp_path, Options(latency_ms=10_000)) as s:
        result = await s.one(a_case("slow", timeout_secs=2))
        assert (result.status, result.score, result.checks) == (Status.TIMED_OUT, None, ())
        assert "within 2 s" in result.why


async def test_sampling_of_the_case_goes_before_that_of_the_run_and_the_seed_moves_with_the_epoch(
    tmp_path: Path,
) -> None:
    own = a_case("own", max_tokens=11, temperature=0.5, seed=40, expected=_any_answer())
    usual = a_case("usual", expected=_any_answer())
    async with stage(tmp_path, toml=program(tmp_path, "mirror", MIRROR)) as s:
        a_suite(tmp_path, own, usual)
        run = await s.run(agents=["mirror"], epochs=2, max_tokens=22, temperature=0.1, seed=7)
        sampling = [
            (asked["max_tokens"], asked["temperature"], asked["seed"]) for asked in await seen_by_the_mirror(s, run)
        ]
        assert sampling == [(11, 0.5, 40), (11, 0.5, 41), (22, 0.1, 7), (22, 0.1, 8)]


async def test_without_a_seed_every_epoch_is_asked_anew_all_the_same(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"))
        run = await s.run(epochs=3)
        assert s.agent.audit.calls == run.calls.done == 3
        assert [result.epoch for result in await s.results(run)] == [1, 2, 3]
        assert run.result["cases"] == 1


async def test_context_environment_and_the_prompt_beside_the_suite_reach_the_agent(tmp_path: Path) -> None:
    case = a_case("all", input={"context": {"user": "Ada"}, "env_overrides": {"PLACE": "Bern"}}, expected=_any_answer())
    (tmp_path / "prompt.md").write_text("Be brief.\n", encoding="utf-8")
    async with stage(tmp_path, toml=program(tmp_path, "mirror", MIRROR)) as s:
        a_suite(tmp_path, case, a_case("plain", expected=_any_answer()))
        first, second = await seen_by_the_mirror(s, await s.run(agents=["mirror"]))
        assert first["system"].startswith("Be brief.")
        assert '"user": "Ada"' in first["system"]
        assert first["environment"] == {"PLACE": "Bern", "STYLE": None}
        assert (second["system"].strip(), second["environment"]["PLACE"]) == ("Be brief.", None)


async def test_every_prompt_is_tested_with_every_agent_and_stands_in_place_of_the_one_beside(tmp_path: Path) -> None:
    (tmp_path / "prompt.md").write_text("Beside.", encoding="utf-8")
    prompts = [tmp_path / "kind.md", tmp_path / "rude.md"]
    for path in prompts:
        path.write_text(f"Be {path.stem}.", encoding="utf-8")
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("one"))
        run = await s.run(agents=[MODEL, "sim/echo"], prompts=[str(path) for path in prompts])
        found = await s.results(run)
        assert [result.subject for result in found] == [
            f"{MODEL}+kind", "sim/echo+kind", f"{MODEL}+rude", "sim/echo+rude",
        ]  # fmt: skip
        assert await systems(s, run, found) == ["Be kind.", "Be kind.", "Be rude.", "Be rude."]
        assert (run.result["cases"], run.result["units"]) == (4, 4)


async def test_a_case_with_agents_of_its_own_is_asked_of_those_and_progress_counts_them(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("own", agents=["sim/tool", "sim/echo"]), a_case("usual"))
        run = await s.run()
        assert [(result.case, result.subject) for result in await s.results(run)] == [
            ("s/own", "sim/tool"), ("s/own", "sim/echo"), ("s/usual", MODEL),
        ]  # fmt: skip
        events = await s.muster._backend.store.events.read(run.id, 0, 100)
        assert next(event.data for event in events if event.kind == "suite.started") == {"cases": 2, "units": 3}
        told = [event.data for event in events if event.kind == "suite.cases"]
        assert [(data["done"], data["total"]) for data in told] == [(1, 3), (2, 3), (3, 3)]


async def test_an_answer_that_is_cut_fails_unless_the_case_accepts_it(tmp_path: Path) -> None:
    text = "a long answer of many words"
    cut = a_case("cut", text, max_tokens=1, expected=_any_answer())
    accepted = a_case("accepted", text, max_tokens=1, accepts=["cut"], expected=_any_answer())
    async with stage(tmp_path) as s:
        a_suite(tmp_path, cut, accepted)
        found = await s.results(await s.run())
        assert [(result.status, str(result.quality)) for result in found] == [
            (Status.FAILED, "cut"), (Status.PASSED, "cut"),
        ]  # fmt: skip


async def test_a_case_to_be_skipped_is_not_asked_and_a_run_of_nothing_else_is_not_good(tmp_path: Path) -> None:
    async with stage(tmp_path) as s:
        a_suite(tmp_path, a_case("later", skip="not yet"))
        run = await s.run()
        result = await s.result(run)
        assert (result.status, result.why, s.agent.audit.requests) == (Status.SKIPPED, "not yet", 0)
        assert run.result["ok"] is False


async def systems(s: Stage, run: Run, found: list[CaseResult]) -> list[str]:
    return [request["system"] for result in found for request in await s.requests(run, result.keys)]


def _any_answer() -> dict[str, Any]:
    return {"output": [{"kind": "regex", "value": "."}]}


@pytest.mark.parametrize(("stop", "text"), [("max_tokens", "half an ans"), ("refused", "I will not."), ("end", "")])
async def test_an_answer_that_is_not_good_is_not_made_good_by_a_later_one(tmp_path: Path, stop: str, text: str) -> None:
    agent = playing({"turn": 1, "answer": {"text": text, "stop": stop}}, {"answer": "ok"})
    async with stage(tmp_path, agent) as s:
        check = {"output": [{"kind": "contains", "value": "ok"}]}
        a_suite(tmp_path, a_case("one", input={"follow_ups": ["and now?"]}, expected=check))
        (found,) = await s.results(await s.run())
        assert found.status is Status.FAILED
