"""A small suite run with a bit of everything in it, and its evidence."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muster.domain.call import Message, Request, Role, Stop, Tool, ToolCall
from muster.domain.money import Microdollars
from muster.store.base import Store
from muster.store.sqlite.store import open_sqlite
from muster.suites.checks.scoring import evaluators_of, score
from muster.suites.checks.tool_calls import use
from muster.suites.evidence.export import Exported, export_evidence
from muster.suites.journal import SuiteInfo, case_key
from muster.suites.judge.question import pose
from muster.suites.reports.run import open_suite_run
from muster.suites.values.case import Case, CheckKind, Evaluator, OutputCheck, RubricItem, ScriptedTool, ToolExpectation
from muster.suites.values.verdict import CaseResult, ItemScore, Judgement, Observation
from tests.suites.reports.suite_store import Said, Story, a_case, a_reply, an_answer, fill

SECRET = "sk-ant-api03-AbCdEfGh0123456789"
PROMPT = "Be kind. The password = 'Xy12345678abcdefgh' is yours."
SUBJECT = "sim/echo"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
SPEC: Mapping[str, Any] = {"path": ["s.yaml"], "agents": [SUBJECT], "judge": "sim/judge"}


def contains(text: str) -> OutputCheck:
    return OutputCheck(kind=CheckKind.CONTAINS, value=text)


PASSES = a_case("s/passes", file="kind.yaml", output=(contains("hello"),))
FAILS = a_case("s/fails", output=(contains("goodbye"),))
LEAKS = a_case("s/leaks", "what is the key?", output=(contains("AbCdEfGh0123456789"),))
ERRS = a_case("s/errs", output=(contains("x"),))
SKIPPED = a_case("s/skipped", skip="not today")
JUDGED = a_case(
    "s/judged", evaluator=Evaluator.JUDGE, rubric=(RubricItem(id="kind", description="it is kind"),), threshold=0.5
)
TOOLED = a_case(
    "s/tooled", tools=(ScriptedTool(name="look"),), tool_sequence=(ToolExpectation(tool="look", args_match={"at": 1}),)
)
CASES = (PASSES, FAILS, LEAKS, ERRS, SKIPPED, JUDGED, TOOLED)

JUDGE_KEY = f"{case_key(JUDGED.id, SUBJECT, 1)}/judge/sim/judge/1"
JUDGED_SO = {"items": [{"id": "kind", "score": 0.8, "evidence": "dear", "rationale": "it says dear"}]}
JUDGEMENT = Judgement(
    by="sim/judge",
    version="rubric/1",
    model="echo-1",
    items=(
        ItemScore(
            id="kind",
            score=0.8,
            by="judge",
            rationale="it says dear",
            evidence="dear",
            quoted=True,
            samples=(0.8,),
        ),
    ),
    cost=Microdollars(40),
    keys=(JUDGE_KEY,),
)


def story() -> Story:
    """Give the run as the workload would have left it."""
    key = f"{case_key(TOOLED.id, SUBJECT, 1)}/"
    look = ToolCall(id="1", name="look", arguments={"at": 1})
    looked = Message(role=Role.TOOL, text=use(TOOLED.tools, look).result or "", tool_call_id="1")
    asked_for = Message(role=Role.ASSISTANT, text="", tool_calls=(look,))
    tools = (Tool(name="look", parameters=TOOLED.tools[0].parameters),)
    tool_turn = Request(messages=(*TOOLED.messages, asked_for, looked), tools=tools)
    judge_calls = [
        Said(
            key=JUDGE_KEY,
            request=pose(JUDGED, Observation(answers=("dear friend",))).request,
            reply=a_reply(json.dumps(JUDGED_SO)),
            agent="sim/judge",
        )
    ]
    calls = {
        PASSES.id: [an_answer(PASSES, "hello there", system=PROMPT)],
        FAILS.id: [an_answer(FAILS, "hello there")],
        LEAKS.id: [an_answer(LEAKS, f"it is {SECRET}, and also postgres://me:hunter2@db/x")],
        ERRS.id: [replace(an_answer(ERRS, ""), reply=None, error={"code": "bad_exit", "message": "it broke"})],
        JUDGED.id: [an_answer(JUDGED, "dear friend")],
        TOOLED.id: [
            Said(
                key=f"{key}1",
                request=Request(messages=TOOLED.messages, tools=tools),
                reply=a_reply("", stop=Stop.TOOL_USE, tool_calls=(look,)),
            ),
            Said(key=f"{key}2", request=tool_turn, reply=a_reply("done")),
        ],
    }
    results = [_result(case, calls.get(case.id, [])) for case in CASES]
    # Calls end in any order; the last belongs to no result.
    spoken = [said for case in reversed(CASES) for said in calls.get(case.id, [])]
    stray = an_answer(a_case("s/stopped"), "never scored")
    kind = SuiteInfo(name="s", file="kind.yaml", digest="c" * 64, prompt=PROMPT, cases=1)
    suite = SuiteInfo(name="s", file="s.yaml", digest="d" * 64, cases=len(CASES) - 1)
    return Story(
        cases=CASES,
        results=results,
        calls=[*spoken, *judge_calls, stray],
        spec=SPEC,
        suites=[kind, suite],
    )


def _result(case: Case, said: list[Said]) -> CaseResult:
    replies = [one.reply for one in said if one.reply is not None]
    seen = Observation(
        cost=Microdollars(sum(reply.cost for reply in replies)),
        input_tokens=sum(reply.usage.input for reply in replies),
        output_tokens=sum(reply.usage.output for reply in replies),
        model="echo-1" if replies else "",
        answers=tuple(reply.text for reply in replies if reply.stop is not Stop.TOOL_USE),
        tool_calls=tuple(call for reply in replies for call in reply.tool_calls),
        error=next((one.error for one in said if one.error is not None), None),
        keys=tuple(one.key for one in said),
    )
    judgements = {Evaluator.JUDGE: JUDGEMENT} if case is JUDGED else {}
    return score(
        case,
        seen,
        subject=SUBJECT,
        epoch=1,
        evaluators=evaluators_of(case),
        default_threshold=0.7,
        judgements=judgements,
    )


def export(folder: Path, told: Story, name: str = "evidence.tar", key: Ed25519PrivateKey = KEY) -> Exported:
    """Put a run into a store of its own and write its evidence."""

    async def work() -> Exported:
        store: Store = open_sqlite(folder / f"{name}.db")
        try:
            run = await fill(store, told)
            return await export_evidence(await open_suite_run(store, run), folder / name, key)
        finally:
            await store.maintenance.close()

    return asyncio.run(work())
