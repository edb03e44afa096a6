"""Tiers of service: which one serves a request, what it costs, and when it has no place."""

from typing import Any

import pytest

from muster.app.base.costs import listed_price
from muster.domain.money import Microdollars
from muster.sim.files import read_faults
from muster.sim.options import Options
from muster.sim.server import serve

from .wire import OPENAI, ask, message

PROMPT = "1234" * 1_000  # a thousand tokens, which come back as a thousand


def body(model: str = "gpt-5-mini", **fields: Any) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": PROMPT}], **fields}


@pytest.mark.parametrize(
    ("asked", "project", "served", "cost"),
    [
        (None, "default", None, 2_250),  # $0.25 in and $2 out
        (None, "priority", None, 4_050),  # the project's tier serves, and nothing says so
        ("auto", "priority", "priority", 4_050),
        ("default", "priority", "default", 2_250),
        ("flex", "default", "flex", 1_125),
        ("priority", "default", "priority", 4_050),
        ("fast", "default", "fast", 4_050),
    ],
)
async def test_the_tier_that_serves_is_named_where_one_was_asked_for_and_priced(
    asked: str | None, project: str, served: str | None, cost: int
) -> None:
    async with serve(Options(price_of=listed_price, tier=project)) as server:
        answer = await ask(server, body(**({} if asked is None else {"service_tier": asked})), OPENAI)
    assert answer.json().get("service_tier") == served
    assert server.audit.cost == Microdollars(cost)
    assert server.audit.cost_by_tier == {served or project: cost}


async def test_a_tier_without_a_price_costs_a_part_of_the_standard_price() -> None:
    async with serve(Options(price_of=listed_price)) as server:
        await ask(server, body("gpt-4o", service_tier="flex"), OPENAI)  # the tables have priority only
        await ask(server, body("nobodys-model", service_tier="priority"), OPENAI)
    assert server.audit.cost_by_tier == {"flex": 6_250, "priority": 12_000}
    assert server.audit.play_money == {"nobodys-model": 1}


async def test_a_thousand_flex_calls_with_refusals_cost_what_was_answered() -> None:
    faults = read_faults({"rates": {"resource_unavailable": 0.2}})
    async with serve(Options(price_of=listed_price, faults=faults)) as server:
        answers = [await ask(server, body(service_tier="flex", user=str(number)), OPENAI) for number in range(200)]
        standard = [await ask(server, body(user=str(number)), OPENAI) for number in range(20)]
    refused = [answer for answer in answers if answer.status == 429]
    assert 20 <= len(refused) <= 60
    assert refused[0].json()["error"]["code"] == "resource_unavailable"
    assert {answer.status for answer in standard} == {200}
    audit = server.audit
    assert audit.faults == {"flex/resource_unavailable": len(refused)}
    assert audit.cost_by_tier == {"flex": 1_125 * (200 - len(refused)), "default": 2_250 * 20}
    assert audit.cost == sum(audit.cost_by_tier.values())


async def test_flex_has_faults_of_its_own() -> None:
    faults = read_faults({"script": [{"fault": "500", "op": "flex", "times": "always"}]})
    async with serve(Options(faults=faults)) as server:
        assert (await ask(server, body(service_tier="flex"), OPENAI)).status == 500
        assert (await ask(server, body(), OPENAI)).status == 200


@pytest.mark.parametrize(
    ("fields", "project", "served", "cost"),
    [
        ({}, "default", "standard", 6_000),
        ({"service_tier": "auto"}, "priority", "priority", 12_000),
        ({"service_tier": "standard_only"}, "priority", "standard", 6_000),
        ({"service_tier": "auto"}, "flex", "standard", 6_000),
        ({"speed": "fast"}, "default", "standard", 12_000),
    ],
)
async def test_anthropic_names_tier_and_speed_in_the_usage(
    fields: dict[str, str], project: str, served: str, cost: int
) -> None:
    async with serve(Options(tier=project)) as server:
        usage = (await ask(server, message(PROMPT, **{"max_tokens": 4_000}, **fields))).json()["usage"]
    assert usage["service_tier"] == served
    assert usage.get("speed") == fields.get("speed")
    assert server.audit.cost == Microdollars(cost)
