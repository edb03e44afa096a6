"""What members of batches can cost at most."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.agents.batch_client import quoter
from muster.agents.prices import price_from_toml
from muster.agents.usage import TOOL_TOKENS
from muster.domain.batch import Tariff
from muster.domain.call import Request, Tool, Usage, ask
from muster.domain.errors import BadConfiguration, exit_code_of
from muster.domain.price import Price

LIVE = price_from_toml(3, 15)
BATCH = price_from_toml(1, 5, cache_read=0.1, cache_write=1.25, cache_write_1h=2)
TARIFF = Tariff(model="m", batch=BATCH, live=LIVE)


def most(request: Request, size: int, price: Price | None = BATCH) -> int:
    return quoter("some/model", replace(TARIFF, batch=price), unpriced_ok=True)(request, size).most


def test_every_byte_is_a_token_at_the_dearest_rate_and_all_of_max_tokens_is_written() -> None:
    assert most(replace(ask("hi"), max_tokens=10), 100) == 100 * 2 + 10 * 5
    assert most(ask("hi"), 100) == 100 * 2 + 2048 * 5


def test_tools_bring_tokens_that_we_do_not_send() -> None:
    request = replace(ask("hi"), max_tokens=1, tools=(Tool(name="now"),))
    assert most(request, 100) == (100 + TOOL_TOKENS) * 2 + 5


USAGES = st.tuples(st.integers(0, 10**5), st.integers(1, 10**5), *[st.integers(0, 10**5)] * 3).map(
    lambda counts: Usage(
        input=counts[0], output=counts[1], cache_read=counts[2], cache_write=counts[3], cache_write_1h=counts[4]
    )
)


@given(USAGES)
def test_no_usage_within_the_bounds_costs_more(usage: Usage) -> None:
    request = replace(ask("hi"), max_tokens=usage.output)
    assert most(request, usage.all_input) >= BATCH.cost(usage)


def test_tokens_for_the_limiter_are_those_of_a_live_call() -> None:
    quote = quoter("some/model", TARIFF, unpriced_ok=False)(replace(ask("hi"), max_tokens=10), 100)
    assert quote.tokens == 100 // 4 + 10


@pytest.mark.parametrize("live", [LIVE, None])
def test_without_a_batch_price_nothing_is_sent_though_live_ones_may_be_known(live: Price | None) -> None:
    quote = quoter("some/model", Tariff(model="m", batch=None, live=live), unpriced_ok=False)
    with pytest.raises(BadConfiguration, match="no batch price is known for some/model") as caught:
        quote(ask("hi"), 100)
    assert ("live" in caught.value.message) is (live is not None)
    assert "batch_price" in caught.value.suggestions[0]
    assert exit_code_of(caught.value) == 3


def test_a_person_may_spend_without_counting() -> None:
    assert most(ask("hi"), 100, None) == 0
