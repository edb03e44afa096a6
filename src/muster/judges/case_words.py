"""A case and its result as JSON, in the words of the suite format, for a command that judges them. Pure."""

from typing import Any

from muster.domain.call import Message, ToolCall
from muster.domain.canonical import Json
from muster.domain.case import Case, OutputCheck, RubricItem, ToolExpectation
from muster.domain.money import to_usd
from muster.domain.verdict import Observation


def case_json(case: Case) -> dict[str, Json]:
    """Give a case as its author would have written it out in full."""
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
    """Give what an agent did."""
    return {
        "output": observation.text,
        "answers": list(observation.answers),
        "tool_calls": [_call(call) for call in observation.tool_calls],
        "quality": str(observation.quality),
        "cost_usd": to_usd(observation.cost),
        "seconds": observation.seconds,
    }


def check_json(check: OutputCheck) -> dict[str, Json]:
    """Give an output check."""
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
