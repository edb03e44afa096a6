"""A check that takes long keeps nobody waiting who shares the event loop."""

import asyncio
from typing import Any, cast

import pytest

from muster.domain.call import Message, Role
from muster.domain.case import Status
from muster.engine.context import Context
from muster.suites.cases import Unit
from muster.suites.journal import Subject
from muster.suites.spec import SuiteSpec
from muster.suites.values.case import Case, CheckKind, OutputCheck
from muster.suites.values.rules import CURRENT_RULES
from muster.suites.workload import examine

SCHEMA: dict[str, Any] = {"type": "array", "items": {"type": "string", "pattern": "^(a+)+$"}}
NESTED = "^(a+)+$"
SLOW = {
    "pattern": (OutputCheck(kind=CheckKind.REGEX, value=NESTED), "a" * 5_000 + "b"),
    "schema": (OutputCheck(kind=CheckKind.JSON_SCHEMA, schema=SCHEMA), '["aaab"]'),
}
NO_CONTEXT = cast(Context, None)  # recorded answers are scored without one
SPEC = SuiteSpec(path=("suite",), answers="answers.jsonl")


def unit(check: OutputCheck) -> Unit:
    """Return a case of one check, as it is scored."""
    messages = (Message(role=Role.USER, text="question"),)
    case = Case(id="suite/one", suite="suite", file="suite.yaml", line=1, messages=messages, output=(check,))
    return Unit(case=case, subject=Subject(agent=""), epoch=1, system="", key="suite/one")


@pytest.mark.parametrize("name", SLOW)
async def test_others_go_on_while_an_answer_is_checked(name: str) -> None:
    check, answer = SLOW[name]
    examined = asyncio.ensure_future(
        examine(NO_CONTEXT, unit(check), SPEC, {"suite/one": {"1/1": answer}}, CURRENT_RULES)
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not examined.done()
    assert (await examined).status is Status.FAILED


async def test_a_quick_check_is_done_at_once() -> None:
    check = OutputCheck(kind=CheckKind.REGEX, value="re?turn")
    examined = asyncio.ensure_future(
        examine(NO_CONTEXT, unit(check), SPEC, {"suite/one": {"1/1": "I return it"}}, CURRENT_RULES)
    )
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert examined.done()
    assert (await examined).status is Status.PASSED
