"""A judge with a rubric, through a real run: what it says counts, or is a failure with its reason."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.agents.function import FunctionAgent
from muster.domain.agent import Profile
from muster.domain.call import Request, Stop
from muster.domain.canonical import Json
from muster.domain.errors import (
    AuthRefused,
    BadArgument,
    BadOutput,
    InvalidRequest,
    Overloaded,
    Unreachable,
)
from muster.domain.run import Origin, Reuse, RunState
from muster.engine.context import Context
from muster.suites.judge.rubric import judge
from muster.suites.values.verdict import Judgement, Observation
from tests.engine.house import house
from tests.suites.judge.stage import SEEN, case, computing, item, judged, reply, saying, session, verdict

GOOD = verdict()


async def test_every_item_is_scored_with_its_evidence(tmp_path: Path) -> None:
    found = await session(tmp_path, saying(GOOD))
    judgement = found.judgement
    assert [(each.id, each.score, each.weight, each.critical) for each in judgement.items] == [
        ("right", 1.0, 0.7, True),
        ("brief", 0.5, 0.3, False),
    ]
    first = judgement.items[0]
    assert (first.by, first.evidence, first.quoted, first.rationale) == ("judge", "Paris", True, "because")
    assert (judgement.by, judgement.version, judgement.model) == ("critic", "rubric/1", "judge-1")
    assert (judgement.failures, judgement.agreement, judgement.cost) == ((), None, 10)
    assert judgement.keys == ("case/x/s/1/judge/critic/1",)
    assert found.keys == list(judgement.keys)


async def test_items_come_in_the_order_of_the_rubric(tmp_path: Path) -> None:
    judgement = await judged(tmp_path, saying(verdict(item("brief", 0), item("right", 1))))
    assert [(each.id, each.score) for each in judgement.items] == [("right", 1.0), ("brief", 0.0)]


@pytest.mark.parametrize(
    ("flawed", "complaint"),
    [
        (verdict(item("right")), "these items of the rubric are missing: brief"),
        (verdict(item("right"), item("brief"), item("brief")), "more than once: brief"),
        (verdict(item("right"), item("brief"), item("extra")), "no such items in the rubric: 'extra'"),
        (verdict(item("right", 1.5), item("brief")), "scores must be from 0 to 1: right has 1.5"),
        (verdict(item("right", -0.1), item("brief")), "scores must be from 0 to 1: right has -0.1"),
        (verdict(item("right", True), item("brief")), "does not fit"),
        (verdict(item("right", "1"), item("brief")), "does not fit"),
        ('{"items": [{"id": "right", "score": NaN, "evidence": "", "rationale": ""}]}', "NaN"),
        ('{"items": [{"id": "right", "score": 1}]}', "does not fit"),
        ("It is a fine answer, I give it a one.", "not one JSON object and nothing else"),
        (GOOD.replace('"score":', '"score": 0, "score":', 1), "an object has the key 'score' twice"),
        (f"Let me see.\n{GOOD}\nThat is all.", "not one JSON object and nothing else"),
        (f"{GOOD} or rather {verdict(item('right', 0), item('brief', 0))}", "not one JSON object and nothing else"),
        ('{"verdict": []}', 'no JSON object with the key "items"'),
        ("[]", "it is JSON, but no object"),
        ("", "it is empty"),
        (reply(GOOD[:20], stop=Stop.MAX_TOKENS), "it was cut off"),
        (reply(GOOD, stop=Stop.MAX_TOKENS), "it was cut off"),
        (reply("I will not.", stop=Stop.REFUSED), "it is a refusal"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_flaw_is_repaired_once_and_then_fails(tmp_path: Path, flawed: Any, complaint: str) -> None:
    (tmp_path / "repaired").mkdir()
    repaired = saying(flawed, GOOD)
    judgement = await judged(tmp_path / "repaired", repaired)
    assert [each.score for each in judgement.items] == [1.0, 0.5]
    assert (judgement.cost, judgement.failures) == (20, ())
    assert judgement.keys == ("case/x/s/1/judge/critic/1", "case/x/s/1/judge/critic/1/repair")
    first, second = repaired.asked
    assert second.messages[: len(first.messages)] == first.messages
    assert complaint in second.messages[-1].text
    (tmp_path / "failed").mkdir()
    stubborn = saying(flawed)
    judgement = await judged(tmp_path / "failed", stubborn)
    assert judgement.failed
    assert (judgement.items, len(stubborn.asked), judgement.cost) == ((), 2, 20)
    assert complaint in judgement.failures[0]
    assert judgement.failures[0].startswith("sample 1: ")


@pytest.mark.parametrize(
    "text",
    [f"```json\n{GOOD}\n```", f"\n {GOOD}\n", GOOD.replace(" ", "\n")],
)
async def test_json_may_stand_in_a_fence(tmp_path: Path, text: str) -> None:
    judgement = await judged(tmp_path, saying(text))
    assert [each.score for each in judgement.items] == [1.0, 0.5]
    assert len(judgement.keys) == 1


@pytest.mark.parametrize("evidence", ["capital of France. It lies on the Seine.", '"Paris is"', " Paris\n is "])
async def test_evidence_may_be_spaced_otherwise(tmp_path: Path, evidence: str) -> None:
    judgement = await judged(tmp_path, saying(verdict(item("right", 1, evidence), item("brief", 1, ""))))
    assert [each.quoted for each in judgement.items] == [True, None]
    assert len(judgement.keys) == 1


async def test_evidence_that_was_never_said_is_kept_and_marked_after_the_repair(tmp_path: Path) -> None:
    invented = verdict(item("right", 1, "Lyon is the capital"), item("brief"))
    puppet = saying(invented)
    judgement = await judged(tmp_path, puppet)
    assert [each.quoted for each in judgement.items] == [False, True]
    assert [each.score for each in judgement.items] == [1.0, 1.0]
    assert "does not stand in any answer: right" in puppet.asked[1].messages[-1].text


async def test_evidence_may_stand_in_any_answer(tmp_path: Path) -> None:
    seen = Observation(answers=("First I said Lyon.", "Now I say Paris."))
    judgement = await judged(tmp_path, saying(verdict(item("right", 0, "Lyon"), item("brief"))), seen=seen)
    assert [each.quoted for each in judgement.items] == [True, True]


async def test_a_flaw_of_the_repair_that_is_not_about_evidence_fails(tmp_path: Path) -> None:
    invented = verdict(item("right", 1, "Lyon"), item("brief"))
    judgement = await judged(tmp_path, saying(invented, verdict(item("right"))))
    assert judgement.failed
    assert "missing: brief" in judgement.failures[0]


async def test_samples_are_averaged_and_their_agreement_is_told(tmp_path: Path) -> None:
    scores = iter([1.0, 0.9, 0.2])

    def says(request: Request) -> str:
        score = next(scores)
        return verdict(item("right", score, rationale=f"I say {score}"), item("brief", 1.0))

    puppet = computing(says)
    found = await session(tmp_path, puppet, samples=3)
    right, brief = found.judgement.items
    assert right.score == pytest.approx(0.7)
    assert sorted(right.samples) == [0.2, 0.9, 1.0]
    assert right.rationale == "I say 0.9"  # of the one nearest to the mean
    assert (brief.score, brief.samples) == (1.0, (1.0, 1.0, 1.0))
    assert found.judgement.agreement == pytest.approx(1 / 3)  # 1.0 and 0.93 pass 0.7, and 0.44 does not
    assert (found.judgement.samples, found.judgement.cost) == (3, 30)
    assert sorted(found.judgement.keys) == [f"case/x/s/1/judge/critic/{number}" for number in (1, 2, 3)]
    assert len({str(request) for request in puppet.asked}) == 1


async def test_agreement_looks_at_the_cases_own_threshold(tmp_path: Path) -> None:
    scores = iter([1.0, 0.2])

    def says(request: Request) -> str:
        return verdict(item("right", next(scores)), item("brief", 1.0))

    judgement = await judged(tmp_path, computing(says), samples=2, asked=case(threshold=0.4))
    assert judgement.agreement == 1.0


async def test_a_majority_of_samples_is_enough(tmp_path: Path) -> None:
    judgement = await judged(tmp_path, saying(InvalidRequest("no"), GOOD), samples=3)
    assert [each.samples for each in judgement.items] == [(1.0, 1.0), (0.5, 0.5)]
    assert len(judgement.failures) == 1
    assert judgement.agreement == 1.0


async def test_half_of_the_samples_is_not_enough(tmp_path: Path) -> None:
    judgement = await judged(tmp_path, saying(InvalidRequest("no"), GOOD), samples=2)
    assert judgement.failed
    assert (judgement.items, judgement.agreement, judgement.cost) == ((), None, 10)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (InvalidRequest("too long", status=400), "too long (invalid_request)"),
        (Unreachable("connection refused"), "connection refused (unreachable)"),
        (Overloaded("full", status=529), "full (overloaded)"),
    ],
)
async def test_a_judge_that_cannot_be_reached_is_a_failed_judgement(
    tmp_path: Path, error: Exception, words: str
) -> None:
    found = await session(tmp_path, saying(error))
    assert found.run.state is RunState.COMPLETED
    assert found.judgement.failures == (f"sample 1: the judge critic gave no reply: {words}",)
    assert found.judgement.keys == ("case/x/s/1/judge/critic/1",)


async def test_a_replay_says_the_same_of_judges_that_failed(tmp_path: Path) -> None:
    found: list[Judgement] = []

    async def work(ctx: Context, spec: Any) -> Json:
        found.append(await judge(ctx, case(), SEEN, judge="bad", samples=1, key="k"))
        found.append(await judge(ctx, case(), SEEN, judge="wrong", samples=2, key="k", dispatch="live"))
        return None

    async with house(tmp_path, bad=saying(Unreachable("nobody there")), wrong=saying("hm", GOOD)) as h:
        run = await h.drive(work)
        again = await h.descend(run, Origin(run=run.id, reuse=Reuse.REPLAY))
        assert (await h.engine.drive(again.id)).state is RunState.COMPLETED
    assert found[2:] == found[:2]
    assert found[0].failed


async def test_a_program_whose_answer_has_no_shape_is_asked_again_too(tmp_path: Path) -> None:
    puppet = saying(BadOutput("its answer holds no JSON"), GOOD)
    judgement = await judged(tmp_path, puppet)
    assert [each.score for each in judgement.items] == [1.0, 0.5]
    assert [message.text for message in puppet.asked[1].messages[1:-1]] == ["(no answer)"]
    assert "its answer holds no JSON" in puppet.asked[1].messages[-1].text


async def test_a_function_that_answers_with_data_is_a_judge(tmp_path: Path) -> None:
    async def answer(request: Request) -> Any:
        return {"data": {"items": [item("right"), item("brief", 0)]}}

    found: list[Judgement] = []

    async def work(ctx: Context, spec: Any) -> Json:
        found.append(await judge(ctx, case(), SEEN, judge="fn", samples=1, key="k"))
        return None

    agent = FunctionAgent(profile=Profile(name="fn", limiter="fn"), function=answer)
    async with house(tmp_path, fn=agent) as h:
        await h.drive(work)
    assert [each.score for each in found[0].items] == [1.0, 0.0]


async def test_a_refused_key_stops_the_run(tmp_path: Path) -> None:
    found = await session(tmp_path, saying(AuthRefused("no key")))
    assert found.judgements == []
    assert (found.run.state, found.run.ended_reason) == (RunState.FAILED, "auth_refused")


async def test_an_exhausted_budget_passes_through(tmp_path: Path) -> None:
    found = await session(tmp_path, saying(GOOD), cap=5)
    assert found.judgements == []
    assert (found.run.state, found.run.ended_reason) == (RunState.FAILED, "budget")


async def test_a_judge_that_nobody_declared_passes_through(tmp_path: Path) -> None:
    async def work(ctx: Context, spec: Any) -> Json:
        await judge(ctx, case(), SEEN, judge="nobody", samples=1, key="k")
        return None

    async with house(tmp_path) as h:
        assert (await h.drive(work)).ended_reason == "configuration"


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"description": "Knows capitals"}, "Knows capitals"),
        ({"description": "Knows capitals", "judge_prompt": "Be harsh"}, "Be harsh"),
        ({"description": "", "judge_prompt": "Be harsh"}, "Be harsh"),
    ],
)
async def test_a_case_without_a_rubric_is_judged_as_a_whole(
    tmp_path: Path, changes: dict[str, Any], shown: str
) -> None:
    puppet = saying(verdict(item("overall", 0.8)))
    judgement = await judged(tmp_path, puppet, asked=case(rubric=(), **changes))
    assert [(each.id, each.score, each.weight) for each in judgement.items] == [("overall", 0.8, 1.0)]
    assert f"- id: overall (weight 1)\n  {shown}" in puppet.asked[0].messages[0].text


async def test_a_case_with_nothing_to_judge_by_costs_nothing_and_fails(tmp_path: Path) -> None:
    puppet = saying(GOOD)
    judgement = await judged(tmp_path, puppet, asked=case(rubric=(), description=" "))
    assert judgement.failed
    assert "nothing to judge by" in judgement.failures[0]
    assert puppet.asked == []


async def test_where_there_is_no_answer_nobody_is_asked(tmp_path: Path) -> None:
    puppet = saying(GOOD)
    judgement = await judged(tmp_path, puppet, seen=replace(SEEN, answers=()))
    assert (judgement.failures, puppet.asked) == (("there is no answer to judge",), [])


async def test_no_sample_at_all_is_refused(tmp_path: Path) -> None:
    found = await session(tmp_path, saying(GOOD), samples=0)
    assert (found.run.error or {})["code"] == BadArgument.code
