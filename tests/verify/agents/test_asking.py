"""A model that is asked about a chunk, through a real run: its report counts, or is a failure with its reason."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.agents.function import FunctionAgent
from muster.domain.agent import Profile
from muster.domain.call import Request, Stop
from muster.domain.canonical import Json
from muster.domain.errors import AuthRefused, BadOutput, Expired, InvalidRequest, TimedOut, Unreachable
from muster.domain.run import Origin, Reuse, RunState
from muster.engine.context import Context
from muster.verify.agents.model_agent import examine
from muster.verify.declaration.verification import Shape
from muster.verify.findings.finding import Examined
from tests.engine.house import house
from tests.suites.judge.stage import saying
from tests.verify.agents.stage import AUDITOR, CHUNK, KEY, reply, report, said, session

GOOD = reply(report(said(), said("nowhere.py")))


async def test_a_report_is_read_with_what_it_took(tmp_path: Path) -> None:
    puppet = saying(GOOD)
    found = await session(tmp_path, puppet)
    one = found.examined
    assert [finding.line for finding in one.findings] == [3]
    assert [rejected.finding.file for rejected in one.rejected] == ["nowhere.py"]
    assert (one.failure, one.code, one.repaired, one.lines, one.model) == ("", "", False, 30, "critic-1")
    assert (one.cost, one.keys, found.keys) == (10, (KEY,), [KEY])
    assert one.seconds > 0
    assert (puppet.asked[0].max_tokens, puppet.asked[0].cache) == (777, "5m")


async def test_a_score_and_coverage_are_handed_on(tmp_path: Path) -> None:
    reviewer = replace(AUDITOR, shape=Shape.REVIEW)
    one = (await session(tmp_path, saying(report(score=8.5, parts={"style": 7})), verifier=reviewer)).examined
    assert (one.score, one.parts, one.coverage) == (8.5, {"style": 7.0}, None)


@pytest.mark.parametrize(
    ("flawed", "complaint", "code"),
    [
        ("PASS", "not one JSON object", "unparsed"),
        (f"Sure!\n{report()}", "not one JSON object", "unparsed"),
        (report(summary="3 critical issues"), "says in words", "unparsed"),
        (reply(report(), stop=Stop.MAX_TOKENS), "cut off", "cut"),
        (reply("I will not.", stop=Stop.REFUSED), "a refusal", "refused"),
        ("", "it is empty", "empty"),
        (BadOutput("its answer holds no JSON"), "holds no JSON", "unparsed"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_a_flaw_is_repaired_once_and_then_the_agent_has_failed(
    tmp_path: Path, flawed: Any, complaint: str, code: str
) -> None:
    (tmp_path / "repaired").mkdir()
    willing = saying(flawed, GOOD)
    one = (await session(tmp_path / "repaired", willing)).examined
    assert (one.failure, one.repaired, len(one.findings)) == ("", True, 1)
    assert one.keys == (KEY, f"{KEY}/repair")
    first, second = willing.asked
    assert second.messages[0] == first.messages[0]
    assert complaint in second.messages[-1].text
    assert one.cost == (10 if isinstance(flawed, Exception) else 20)
    (tmp_path / "failed").mkdir()
    stubborn = saying(flawed)
    one = (await session(tmp_path / "failed", stubborn)).examined
    assert len(stubborn.asked) == 2
    assert (one.code, one.findings, one.repaired) == (code, (), False)
    assert complaint in one.failure
    assert one.failure.startswith("after a repair too, ")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Expired("the batch expired"), "expired"),
        (TimedOut("timed out after 3s"), "timed_out"),
        (InvalidRequest("prompt is too long"), "invalid_request"),
        (Unreachable("nobody there"), "unreachable"),
    ],
)
async def test_a_call_that_fails_is_a_value_and_is_not_repaired(tmp_path: Path, error: Exception, code: str) -> None:
    found = await session(tmp_path, saying(error))
    assert found.run.state is RunState.COMPLETED
    assert (found.examined.code, found.examined.findings, found.keys) == (code, (), [KEY])
    assert str(error) in found.examined.failure
    assert found.examined.model == "critic"


async def test_a_repair_that_fails_says_both(tmp_path: Path) -> None:
    one = (await session(tmp_path, saying("PASS", Expired("the batch expired")))).examined
    assert one.code == "expired"
    assert "not one JSON object" in one.failure
    assert "its repair failed: the batch expired" in one.failure
    assert (one.cost, one.keys) == (10, (KEY, f"{KEY}/repair"))


async def test_what_stops_the_run_passes_through(tmp_path: Path) -> None:
    found = await session(tmp_path, saying(AuthRefused("no key")))
    assert (found.run.state, found.heard) == (RunState.FAILED, [])
    (tmp_path / "budget").mkdir()
    found = await session(tmp_path / "budget", saying(GOOD), cap=5)
    assert (found.run.state, found.heard) == (RunState.FAILED, [])


async def test_a_reply_that_was_never_recorded_is_a_failure_in_a_replay(tmp_path: Path) -> None:
    heard: list[Examined] = []
    asked = ["c1"]

    async def work(ctx: Context, spec: Any) -> Json:
        heard.extend([await examine(ctx, AUDITOR, CHUNK, key=f"wave/1/auditor/{name}") for name in asked])
        return None

    async with house(tmp_path, critic=saying(GOOD)) as h:
        run = await h.drive(work)
        asked.append("c2")
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))
        await h.engine.drive(again.id)
    assert [one.code for one in heard] == ["", "", "replay_miss"]
    assert heard[0].findings == heard[1].findings


async def test_an_agent_whose_data_is_checked_may_leave_out_what_may_be_null(tmp_path: Path) -> None:
    empty = dict.fromkeys(("end_line", "fix", "cwe", "confidence", "rule", "replacement"))
    given = {"full": {"findings": [said() | empty], "summary": None}, "bare": {"findings": [said()]}, "wrong": {}}
    heard: dict[str, Examined] = {}

    async def work(ctx: Context, spec: Any) -> Json:
        for name in given:
            heard[name] = await examine(ctx, replace(AUDITOR, model=name), CHUNK, key=f"wave/1/auditor/{name}")
        return None

    def agent(name: str) -> FunctionAgent:
        async def answer(request: Request) -> str:
            return json.dumps(given[name])

        return FunctionAgent(profile=Profile(name=name, limiter=name), function=answer)

    async with house(tmp_path, full=agent("full"), bare=agent("bare"), wrong=agent("wrong")) as h:
        await h.drive(work)
    assert (heard["full"].failure, len(heard["full"].findings)) == ("", 1)
    assert (heard["bare"].failure, len(heard["bare"].findings)) == ("", 1)
    assert (heard["wrong"].code, heard["wrong"].findings) == ("unparsed", ())
