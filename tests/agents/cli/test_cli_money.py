"""What a call costs: what it says, what was reserved, and what nobody knows."""

from dataclasses import replace
from typing import Any

import pytest

from muster.agents.usage import ProcessBill
from muster.domain.call import ask
from muster.domain.errors import AgentFailed, BadConfiguration, BadExit, BadOutput, InvalidRequest, Paid
from muster.domain.money import Lane, Microdollars

from .stage import PATIENT, Stage, call, section_of


@pytest.mark.parametrize(("most", "told"), [(500_000, "0.4"), (1, "0.000001"), (10_000_000, "8"), (125, "0.0001")])
def test_it_is_told_less_than_was_reserved(most: int, told: str) -> None:
    assert ProcessBill(most=Microdollars(most)).told == told


async def test_without_a_budget_it_is_not_asked(stage: Stage) -> None:
    agent = stage.python("print(1)", budget_usd=None)
    with pytest.raises(BadConfiguration, match="the maximum cost of a call of one is unknown") as caught:
        agent.quote(ask("hello"))
    assert "budget_usd = 0.50" in caught.value.suggestions[0]
    assert "--allow-unpriced" in caught.value.suggestions[1]


async def test_without_a_budget_it_may_be_asked_when_that_is_said(stage: Stage) -> None:
    section = section_of(command=("echo", "hi"), budget_usd=None)
    agent = stage.agent(section, unpriced_ok=True)
    assert agent.quote(ask("hello")).most == 0
    reply = await call(agent)
    assert (reply.cost, reply.lane) == (0, Lane.BILLED)


async def test_one_that_does_not_tell_is_booked_as_reserved(stage: Stage) -> None:
    reply = await call(stage.python("print(1)"))
    assert (reply.cost, reply.lane) == (500_000, Lane.UNCERTAIN)


async def test_one_that_costs_nothing_is_booked_as_nothing(stage: Stage) -> None:
    agent = stage.python("print(1)", budget_usd=0)
    assert agent.quote(ask("hello")).most == 0
    reply = await call(agent)
    assert (reply.cost, reply.lane) == (0, Lane.BILLED)


async def test_a_failure_of_one_that_costs_nothing_costs_nothing(stage: Stage) -> None:
    with pytest.raises(BadExit) as caught:
        await call(stage.python("raise SystemExit(1)", budget_usd=0))
    assert caught.value.paid is Paid.NO


@pytest.mark.parametrize(
    ("after", "paid", "cost"),
    [
        ("time.sleep(60)", Paid.UNKNOWN, 0),  # stopped: it may have cost more by then
        ("os.close(1); time.sleep(60)", Paid.UNKNOWN, 0),
        ('print(\'{"asks": "Bash"}\', flush=True); time.sleep(60)', Paid.UNKNOWN, 0),
        ("sys.exit(3)", Paid.UNKNOWN, 0),  # it may not have counted answers that it could not read
        ('print(\'{"error": "no"}\')', Paid.UNKNOWN, 0),
        ('print(\'{"error": "no", "subtype": "error_max_turns"}\')', Paid.YES, 30_000),  # a limit of its own
        ('print(\'{"error": "no", "cost": 0.75}\')', Paid.YES, 750_000),  # more than was reserved: at least that
    ],
)
async def test_the_cost_of_a_failure_counts_at_a_limit_of_its_own_and_above_the_reservation(
    stage: Stage, after: str, paid: Paid, cost: int
) -> None:
    script = f"import os, sys, time; print('{{\"cost\": 0.03}}', flush=True); {after}"
    paths = {"answer": "$.answer", "cost_usd": "$.cost", "error": "$.error", "permission": "$.asks"}
    agent = stage.python(script, output="jsonl", **paths)
    with pytest.raises(AgentFailed) as caught:
        await agent.call(ask("hello"), replace(PATIENT, idle=0.5) if after == "time.sleep(60)" else PATIENT)
    assert (caught.value.paid, caught.value.cost) == (paid, cost)


async def test_what_a_subscription_covers_is_imputed(stage: Stage) -> None:
    agent = stage.rehearsal(subscription=True)
    reply = await call(agent)
    assert (reply.cost, reply.lane) == (10_000, Lane.IMPUTED)
    limited: list[dict[str, Any]] = [{"error": {"subtype": "error_max_turns", "text": "too many"}}, {"cost": 0.03}]
    with pytest.raises(AgentFailed) as caught:
        await call(stage.playing(limited, subscription=True))
    assert (caught.value.cost, caught.value.imputed) == (30_000, True)


SCHEMA = {"type": "object"}


async def test_an_answer_that_is_asked_for_as_data_is_data(stage: Stage) -> None:
    reply = await call(stage.playing([{"say": '```json\n{"a": [1, "{"]}\n```'}]), schema=SCHEMA)
    assert reply.data == {"a": [1, "{"]}
    structured = stage.playing([{"say": "Here."}, {"structured": {"a": 1}}], answer="$.structured_output")
    reply = await call(structured, schema=SCHEMA)
    assert (reply.data, reply.text) == ({"a": 1}, '{"a": 1}')
    assert (await call(structured)).data is None


async def test_an_answer_that_is_no_data_fails_with_its_cost(stage: Stage) -> None:
    with pytest.raises(BadOutput, match=r"holds no JSON.*'I would rather not\.'") as caught:
        await call(stage.playing([{"say": "I would rather not."}, {"cost": 0.02}]), schema=SCHEMA)
    assert (caught.value.cost, caught.value.paid) == (20_000, Paid.YES)


async def test_an_answer_of_another_shape_fails_with_its_cost(stage: Stage) -> None:
    agent = stage.playing([{"say": '{"a": 1}'}, {"cost": 0.02}])
    with pytest.raises(BadOutput, match=r"agent 'one': its answer does not fit the schema: \$\.a: 1 is not") as caught:
        await call(agent, schema={"properties": {"a": {"type": "string"}}})
    assert (caught.value.cost, caught.value.paid) == (20_000, Paid.YES)


async def test_a_schema_that_is_none_is_refused_before_anything_starts(stage: Stage) -> None:
    with pytest.raises(InvalidRequest, match="not a JSON Schema"):
        await call(stage.rehearsal(), schema={"type": "thing"})
    assert stage.started == 0


async def test_data_that_no_store_keeps_is_refused(stage: Stage) -> None:
    with pytest.raises(BadOutput, match="does not fit the schema: it holds NaN"):
        await call(stage.agent(section_of(command=("echo", '{"a": NaN}'))), schema=SCHEMA)
