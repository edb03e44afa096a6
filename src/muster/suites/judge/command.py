"""The command of the user's that judges: run through the context, so that it is owned, timed and journaled."""

import json
from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any

from muster.domain.agent import Command
from muster.domain.call import Message, Reply, Request, ToolCall, ask
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.domain.money import to_usd
from muster.engine.context import Context
from muster.judging.base import FAILED_CALL, words_of
from muster.suites.format.names import nearest_name
from muster.suites.values.case import Case, OutputCheck, RubricItem, ToolExpectation
from muster.suites.values.rules import CURRENT_RULES, DEFAULT_THRESHOLD, ScoringRules
from muster.suites.values.verdict import ItemScore, Judgement, Observation
from muster.text.json_documents import read_object
from muster.text.schemas.json_schema import fitting
from muster.text.scores import reaches

SECONDS = 60.0  # where the case names no time
_QUOTED = 60  # characters of a value that is shown


async def ask_command(
    ctx: Context, case: Case, observation: Observation, *, key: str, rules: ScoringRules = CURRENT_RULES
) -> Judgement:
    """Have an answer judged by the case's command; its failure is a value, what stops the run passes through."""
    command = Command(argv=case.process, folder=case.process_folder or ".", environment=dict(case.environment))
    if not case.process:
        return failed("", "the case names no command: give it process_cmd")
    place = f"{key}/process"
    try:
        reply = await ctx.call(command, question_for(case, observation), key=place, timeout=case.timeout or SECONDS)
    except FAILED_CALL as error:
        return failed(command.name, f"the command gave no verdict: {words_of(error)}", place)
    return read_answer(case, command.name, reply, place, rules)


VERSION = "process/2"  # 1 searched the output for its answer
BY = "process"

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "scores": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "rubric_id": {"type": "string"},
                    "score": {"type": "number", "minimum": 0, "maximum": 1},
                    "rationale": {"type": ["string", "null"]},
                },
                "required": ["rubric_id", "score"],
            },
        },
        "passed": {"type": ["boolean", "null"]},
    },
    "anyOf": [{"required": ["scores"]}, {"required": ["passed"]}],
}


def question_for(case: Case, observation: Observation) -> Request:
    """Put a case and its result into a request: one line of JSON on standard input."""
    told = json.dumps({"case": case_json(case), "result": result_json(observation)})
    request = ask(told)
    return Request(messages=request.messages, schema=SCHEMA)


def read_answer(case: Case, name: str, reply: Reply, key: str, rules: ScoringRules = CURRENT_RULES) -> Judgement:
    """Read the answer of a command; one that cannot be used is a failed judgement.

    Its whole output is the answer: JSON beside other words may be what it quotes.
    """
    found = read_object(reply.text, fenced=False)
    if isinstance(found, str):
        return failed(name, f"the standard output of the command is not one JSON document: {found}", key)
    try:
        data = fitting(found, SCHEMA)
    except BadOutput as error:
        return failed(name, error.message, key)
    scores: list[Mapping[str, Json]] = data.get("scores") or []
    passed: bool | None = data.get("passed")
    flaw = _misspelt(data, scores) if rules.strict_commands else ""
    if rules.no_contrary_keys and passed is not False:
        flaw = flaw or _contrary(case, data, scores)
    flaw = flaw or _flaw(case, [str(score["rubric_id"]) for score in scores], outright=passed is not None)
    if flaw:
        return failed(name, f"the answer of the command cannot be used: {flaw}", key)
    items = _items(case, scores)
    return Judgement(by=name, version=VERSION, items=items, passed=passed, cost=reply.cost, keys=(key,))


def failed(name: str, why: str, *keys: str) -> Judgement:
    """Return the judgement of a command that said nothing that counts."""
    return Judgement(by=name, version=VERSION, failures=(why,), keys=keys)


_KNOWN = frozenset({"scores", "passed"})
_KNOWN_OF_SCORE = frozenset({"rubric_id", "score", "rationale"})


def _misspelt(data: Mapping[str, Json], scores: list[Mapping[str, Json]]) -> str:
    """Return a key that was certainly meant as a known one and would be ignored; other keys are the command's own."""
    for known, found in ((_KNOWN, data), *((_KNOWN_OF_SCORE, score) for score in scores)):
        for name in found:
            if name not in known and (near := nearest_name(str(name), known)):
                return f"unknown key {name!r}; did you mean {near}?"
    return ""


# Keys of a command's own with which it says that it, or an answer, failed: a pass beside them is not what it means.
_GOOD = frozenset({
    "accepted", "correct", "isok", "ispassed", "isvalid", "ok", "pass", "passed", "succeeded", "success", "successful",
    "valid",
})  # fmt: skip
_BAD = frozenset({
    "aborted", "crashed", "error", "errors", "exception", "fail", "failed", "failure", "failures", "iserror",
    "isfailed", "timedout",
})  # fmt: skip
_VERDICTS = frozenset({"conclusion", "decision", "grade", "outcome", "result", "status", "verdict"})
_NO = frozenset({
    "bad", "error", "errored", "fail", "failed", "failing", "failure", "false", "incorrect", "invalid", "no", "reject",
    "rejected", "wrong",
})  # fmt: skip


def _contrary(case: Case, data: Mapping[str, Json], scores: list[Mapping[str, Any]]) -> str:
    """Return a key that says that something failed, while what counts of the answer says that it passed."""
    threshold = DEFAULT_THRESHOLD if case.threshold is None else case.threshold
    good = (score for score in scores if reaches(float(score["score"]), threshold))
    own = {name: value for name, value in data.items() if name not in _KNOWN}
    for name, value in chain.from_iterable(found.items() for found in (own, *good)):
        if _says_no(name, value):
            return f'it says {name}: {json.dumps(value)[:_QUOTED]}, and not "passed": false'
    return ""


def _says_no(name: str, value: Json) -> bool:
    key = "".join(filter(str.isalnum, name.casefold()))
    is_no = value is False or (isinstance(value, str) and value.strip().casefold() in _NO)
    if key in _BAD:
        return bool(value) and not is_no
    return is_no and (key in _GOOD or key in _VERDICTS)


def _flaw(case: Case, scored: list[str], *, outright: bool) -> str:
    """Return what is wrong with the scored items; a case without a rubric leaves their names to the command."""
    wanted = [item.id for item in case.rubric]
    counted = Counter(scored)
    twice = [id_ for id_ in counted if counted[id_] > 1]
    unknown = [id_ for id_ in counted if wanted and id_ not in wanted]
    missing = [id_ for id_ in wanted if id_ not in counted and not outright]
    problems = (("scored twice", twice), ("not in the rubric", unknown), ("not scored", missing))
    found = [f"{problem}: {', '.join(ids)}" for problem, ids in problems if ids]
    if not scored and not outright:
        found.append('it has neither scores nor "passed"')
    return "; ".join(found)


def _items(case: Case, scores: list[Mapping[str, Any]]) -> tuple[ItemScore, ...]:
    said = {str(score["rubric_id"]): score for score in scores}
    known = [item for item in case.rubric if item.id in said]
    rubric = known if case.rubric else [RubricItem(id=id_, description="") for id_ in said]
    return tuple(
        ItemScore(
            id=item.id,
            weight=item.weight,
            critical=item.critical,
            score=float(said[item.id]["score"]),
            by=BY,
            rationale=str(said[item.id].get("rationale") or ""),
        )
        for item in rubric
    )


def case_json(case: Case) -> dict[str, Json]:
    """Return a case as its author would have written it out in full."""
    return _present(
        id=case.id,
        skill_or_agent=case.suite,
        description=case.description,
        tags=list(case.tags),
        timeout_secs=case.timeout,
        seed=case.seed,
        input=_input(case),
        expected=_expected(case),
        evaluator_config=_evaluator(case),
    )


def result_json(observation: Observation) -> dict[str, Json]:
    """Return what an agent did."""
    return {
        "output": observation.text,
        "answers": list(observation.answers),
        "tool_calls": [_call(call) for call in observation.tool_calls],
        "quality": str(observation.quality),
        "cost_usd": to_usd(observation.cost),
        "seconds": observation.seconds,
    }


def check_json(check: OutputCheck) -> dict[str, Json]:
    """Return an output check."""
    return {"kind": str(check.kind)} | _present(
        value=check.value,
        field=check.field,
        schema=None if check.schema is None else dict(check.schema),
        golden_path=check.golden.path if check.golden else None,
        turn=check.turn,
    )


def _input(case: Case) -> dict[str, Json]:
    return {"messages": [_message(message) for message in case.messages]} | _present(
        follow_ups=list(case.follow_ups), context=case.context, env_overrides=dict(case.environment)
    )


def _expected(case: Case) -> dict[str, Json]:
    return _present(
        tool_sequence=[_expectation(tool) for tool in case.tool_sequence],
        output=[check_json(check) for check in case.output],
        rubric=[_item(item) for item in case.rubric],
    )


def _evaluator(case: Case) -> dict[str, Json]:
    return _present(
        evaluator=None if case.evaluator is None else str(case.evaluator),
        golden_path=case.golden.path if case.golden else None,
        golden_threshold=case.golden.threshold if case.golden else None,
        process_cmd=list(case.process),
        judge_prompt=case.judge_prompt,
        effectiveness_threshold=case.threshold,
    )


def _message(message: Message) -> dict[str, Json]:
    found: dict[str, Json] = {"role": str(message.role), "content": message.text}
    if message.tool_calls:
        found["tool_calls"] = [_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        found["tool_call_id"] = message.tool_call_id
    return found


def _call(call: ToolCall) -> dict[str, Json]:
    found: dict[str, Json] = {"tool": call.name, "arguments": dict(call.arguments)}
    return found if call.result is None else found | {"result": call.result, "failed": call.failed}


def _expectation(tool: ToolExpectation) -> dict[str, Json]:
    return {"tool": tool.tool, "args_match": dict(tool.args_match), "order": str(tool.order)}


def _item(item: RubricItem) -> dict[str, Json]:
    found: dict[str, Json] = {"id": item.id, "description": item.description, "weight": item.weight}
    found["critical"] = item.critical
    if item.auto_check is not None:
        found["auto_check"] = check_json(item.auto_check)
    if item.anchors:
        found["anchors"] = [{"score": anchor.score, "text": anchor.text} for anchor in item.anchors]
    return found


def _present(**given: Any) -> dict[str, Json]:
    """Leave out what says nothing."""
    return {name: value for name, value in given.items() if value not in (None, "", [], {})}
