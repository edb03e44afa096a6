"""Money: exact reading, honest showing, caps that hold, prices that round up."""

from dataclasses import fields
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.budget import GRANTED, Balance, Granted, Level, Refused, Wait, decide
from muster.domain.call import Usage
from muster.domain.errors import BadArgument
from muster.domain.money import Microdollars, from_usd, show_usd, to_usd, usd_format
from muster.domain.price import Price, Rates
from muster.settings import parse_budget

AMOUNTS = st.integers(min_value=0, max_value=10**12)


@given(AMOUNTS)
def test_an_amount_survives_being_shown_and_read(amount: int) -> None:
    assert from_usd(show_usd(amount).removeprefix("$")) == amount
    assert from_usd(to_usd(amount)) == amount


@pytest.mark.parametrize(("text", "micro"), [("5", 5_000_000), ("0.000001", 1), ("2.50", 2_500_000), (0.1, 100_000)])
def test_dollars_are_read_exactly(text: str | float, micro: int) -> None:
    assert from_usd(text) == micro


@pytest.mark.parametrize("text", ["", "five", "0.0000001", "nan", "inf", "-inf", "1,5", "$3"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    with pytest.raises(BadArgument):
        from_usd(text)


@pytest.mark.parametrize("text", ["0", "-1", "0.0"])
def test_a_budget_must_be_more_than_nothing(text: str) -> None:
    with pytest.raises(BadArgument, match="more than 0"):
        parse_budget(text)


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "$0.00"), (1, "$0.000001"), (12_300, "$0.0123"), (2_500_000, "$2.50"), (-1_500_000, "-$1.50")],
)
def test_amounts_are_shown_with_the_places_they_need(amount: int, text: str) -> None:
    assert show_usd(amount) == text


SONNET = Rates(
    input=Decimal(3),
    output=Decimal(15),
    cache_read=Decimal("0.3"),
    cache_write=Decimal("3.75"),
    cache_write_1h=Decimal(6),
)


def test_a_hundred_thousand_in_and_fifty_thousand_out_at_three_and_fifteen_is_a_dollar_and_five_cents() -> None:
    assert SONNET.cost(Usage(input=100_000, output=50_000)) == 1_050_000


def test_every_kind_of_token_has_its_price_and_the_sum_is_rounded_up_once() -> None:
    usage = Usage(input=1, output=1, cache_read=1, cache_write=1, cache_write_1h=1)
    assert SONNET.cost(usage) == 29  # 3 + 15 + 0.3 + 3.75 + 6 = 28.05


def test_a_tier_counts_once_more_goes_in_than_its_bound() -> None:
    dear = Rates(**{field.name: getattr(SONNET, field.name) * 2 for field in fields(SONNET)})
    price = Price(base=SONNET, tiers=((200_000, dear),))
    assert price.cost(Usage(input=200_000)) == 600_000
    assert price.cost(Usage(input=200_001)) == 1_200_006
    assert price.most(200_001, 10) == 200_001 * 12 + 10 * 30


TOKENS = st.integers(min_value=0, max_value=2_000_000)


@given(TOKENS, TOKENS, TOKENS, TOKENS, TOKENS)
def test_nothing_costs_more_than_the_most(a: int, b: int, c: int, d: int, out: int) -> None:
    dear = Rates(**{field.name: getattr(SONNET, field.name) * 2 for field in fields(SONNET)})
    price = Price(base=SONNET, tiers=((200_000, dear),))
    usage = Usage(input=a, cache_read=b, cache_write=c, cache_write_1h=d, output=out)
    assert price.cost(usage) <= price.most(usage.all_input, out)


@given(
    st.lists(st.tuples(st.integers(1, 500), st.booleans()), max_size=60),
    st.integers(0, 2000),
    st.integers(0, 2000),
)
def test_whatever_is_granted_no_cap_is_ever_exceeded(requests: list[tuple[int, bool]], run: int, day: int) -> None:
    """Play any sequence of reservations and settlements against two caps."""
    levels = (Level(id="day", cap=Microdollars(day)), Level(id="run", cap=Microdollars(run)))
    reserved: list[int] = []
    settled = 0
    for most, settles in requests:
        held = Balance(reserved=Microdollars(sum(reserved)), settled=Microdollars(settled))
        decision = decide(levels, {"day": held, "run": held}, Microdollars(most))
        if isinstance(decision, Granted):
            reserved.append(most)
        elif isinstance(decision, Wait):
            assert reserved, "it waits though nothing can come back"
        else:
            assert isinstance(decision, Refused)
            assert settled + most > min(run, day)
        assert settled + sum(reserved) <= min(run, day)
        if settles and reserved:
            settled += reserved.pop() // 2


def test_without_a_cap_everything_is_granted() -> None:
    balance = Balance(reserved=Microdollars(10**15), settled=Microdollars(10**15))
    assert decide([Level(id="run")], {"run": balance}, Microdollars(10**15)) == GRANTED


@pytest.mark.parametrize("text", ["١", "1_000", " 1", "1 ", "", ".", "+1", "1e-3", "nan", "inf", "1e400", "1,5"])
def test_a_text_is_an_amount_only_as_people_write_it(text: str) -> None:
    with pytest.raises(BadArgument, match="must be an amount in dollars"):
        from_usd(text)


def test_an_amount_may_begin_or_end_with_its_point() -> None:
    assert (from_usd(".5"), from_usd("5."), from_usd("05"), from_usd(0.00001)) == (500_000, 5_000_000, 5_000_000, 10)


def test_amounts_beside_each_other_have_one_number_of_places() -> None:
    amounts = (0, 1_613, 5_000_000, None, -20_000)
    usd = usd_format(*amounts)
    assert [usd(amount) for amount in amounts if amount is not None] == [
        "$0.000000",
        "$0.001613",
        "$5.000000",
        "-$0.020000",
    ]
    assert usd_format(0, 10_000)(0) == "$0.00"
    assert usd_format()(1_000_000) == "$1.00"
