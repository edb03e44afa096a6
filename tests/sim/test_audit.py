"""The audit counts what is paid, by digest, and nothing else."""

from decimal import Decimal

import pytest

from muster.app.base.costs import listed_price
from muster.domain.canonical import digest
from muster.domain.money import Microdollars
from muster.domain.price import Price, Rates
from muster.sim.audit import Audit, ThinkingCounts, Tokens, audit_json, read_audit
from muster.sim.options import Options
from muster.sim.server import Server, serve

from .wire import OPENAI, Answer, ask, dial, message, one_fault, spell


async def get(server: Server, method: str, path: str, body: bytes = b"") -> Answer:
    async with dial(server) as line:
        line.writer.write(spell(body, path, method))
        return await line.answer()


async def test_calls_are_counted_by_the_digest_of_the_body_without_stream() -> None:
    body = message("Grüezi 漢字", temperature=0.7, metadata={"b": 1, "a": [1.0, None, True]})
    async with serve() as server:
        await ask(server, body)
        await ask(server, body | {"stream": True, "stream_options": {"include_usage": True}}, OPENAI)
        await ask(server, message("other"))
    assert server.audit.by_digest == {digest(body): 2, digest(message("other")): 1}
    assert server.audit.calls == 3


async def test_the_audit_is_read_over_http() -> None:
    async with serve() as server:
        await ask(server, message("12345678"))
        await ask(server, b"{")
        found = (await get(server, "GET", "/_sim/audit")).json()
    assert found == {
        "calls": 1,
        "by_digest": {digest(message("12345678")): 1},
        "batches": [],
        "in_flight": 0,
        "max_in_flight": 1,
        "tokens": {"input": 2, "output": 2, "cache_read": 0, "cache_write": 0},
        "cost_usd": 0.000012,
        "cost_usd_by_digest": {digest(message("12345678")): 0.000012},
        "requests": 2,
        "statuses": {"200": 1, "400": 1},
        "faults": {},
        "play_money": {"claude-haiku-5-5": 1},
        "thinking": {"tokens": 0, "returned": 0, "missing": 0, "mismatched": 0},
        "cost_usd_by_tier": {"default": 0.000012},
    }


async def test_models_of_the_price_list_cost_what_it_says_and_others_play_money_that_is_told() -> None:
    async with serve(Options(price_of=listed_price)) as server:
        for model in ("claude-opus-4-1", "gpt-5-nano", "nobodys-model"):
            await ask(server, message("1234" * 100, model=model))  # 100 tokens in, 100 tokens out
    costs = sorted(server.audit.cost_by_digest.values())
    assert costs == [45, 600, 9_000]  # a million tokens: $0.05 and $0.40, $1 and $5 in play money, $15 and $75
    assert server.audit.play_money == {"nobodys-model": 1}


async def test_costs_are_summed_with_the_given_prices() -> None:
    rates = Rates(
        input=Decimal(3),
        output=Decimal("15.5"),
        cache_read=Decimal(0),
        cache_write=Decimal(0),
        cache_write_1h=Decimal(0),
    )
    async with serve(Options(prices={"claude-*": Price(base=rates)})) as server:
        for _ in range(3):
            await ask(server, message("1234"))  # 3 + 15.5 microdollars, rounded up
        await ask(server, message("1234", model="other"))  # play money: 1 + 5
    assert server.audit.cost == Microdollars(3 * 19 + 6)
    assert server.audit.play_money == {"other": 1}
    assert server.audit.cost_by_digest == {digest(message("1234")): 57, digest(message("1234", model="other")): 6}


async def test_a_reset_starts_over() -> None:
    faults = one_fault("500", nth=2)
    async with serve(Options(faults=faults)) as server:
        assert [(await ask(server, message())).status for _ in range(2)] == [200, 500]
        assert (await get(server, "POST", "/_sim/reset")).status == 200
        assert server.audit == Audit()
        assert [(await ask(server, message())).status for _ in range(2)] == [200, 500]


async def test_faults_are_replaced_while_it_runs() -> None:
    async with serve() as server:
        assert (await ask(server, message())).status == 200
        assert (await get(server, "PUT", "/_sim/faults", b'{"rates": {"529": 1}}')).status == 200
        assert (await ask(server, message())).status == 529
        assert (await get(server, "PUT", "/_sim/faults", b"{}")).status == 200
        assert (await ask(server, message())).status == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [(b"{", "not valid JSON"), (b'{"rates": {"429": 2}}', "faults.rates"), (b'{"rate": {}}', "rate"), (b"7", "faults")],
)
async def test_a_malformed_plan_is_refused_and_the_old_one_stays(body: bytes, says: str) -> None:
    async with serve(Options(faults=one_fault("500"))) as server:
        answer = await get(server, "PUT", "/_sim/faults", body)
        assert (answer.status, says in answer.json()["error"]["message"]) == (400, True)
        assert (await ask(server, message())).status == 500


def test_an_audit_survives_json() -> None:
    audit = Audit(
        calls=2,
        by_digest={"d": 2},
        in_flight=1,
        max_in_flight=1,
        tokens=Tokens(input=1, output=2, cache_read=3, cache_write=4),
        cost=Microdollars(1_234_567),
        cost_by_digest={"d": 1_234_567},
        requests=3,
        statuses={"200": 2},
        faults={"429": 1},
        thinking=ThinkingCounts(tokens=900, returned=3, missing=2, mismatched=1),
        cost_by_tier={"flex": 1_234_567},
    )
    assert read_audit(audit_json(audit)) == audit
