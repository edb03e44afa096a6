"""A cap holds: by audit, never more is paid than it allows, and as much as it allows is paid."""

import asyncio
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from muster.agents.anthropic import wire
from muster.agents.prices import price_of
from muster.domain.agent import Timeouts
from muster.domain.call import Message, Request, Role, Usage
from muster.domain.money import Microdollars, show_usd, to_usd
from muster.domain.price import US_FACTOR, Price
from muster.domain.run import RunState
from muster.domain.script import BYTES_PER_TOKEN
from muster.sim.audit import Audit
from tests.chaos import work
from tests.chaos.books import Books, books_of, budgets, check_books, check_paid_once, read_books
from tests.chaos.fleet import Order
from tests.chaos.stage import Ended, Stage

MODEL = work.ANTHROPIC.partition("/")[2]
MAX_TOKENS = 4096
SIZE = 800  # bytes of a question, and of its echo
PAYABLE = 50
PATIENT = Timeouts(connect=60.0, idle=30.0, call=30.0)  # what a slow machine broke off would be paid too
HONEST = {"rates": {"429": 0.1, "500": 0.08, "529": 0.05}, "at_most_per_digest": 3}
DISHONEST = {
    "rates": {"429": 0.05, "500": 0.05},
    "at_most_per_digest": 3,
    "script": [{"fault": "cut_after", "nth": 10}, {"fault": "garbage", "nth": 20}],
}


@dataclass(frozen=True)
class Sums:
    """What one call of the workload really costs, the most it can cost, and the cap that pays for just enough."""

    real: Microdollars
    most: Microdollars

    @property
    def cap(self) -> Microdollars:
        """Call k is let in when the k - 1 before it and its own maximum fit: so many are, and not one more."""
        return Microdollars((PAYABLE - 1) * self.real + self.most)


def price() -> Price:
    found = price_of("anthropic", MODEL, datetime.now(UTC))
    assert found is not None
    return found


def sums() -> Sums:
    request = Request(messages=(Message(role=Role.USER, text=work.question(0, SIZE)),), max_tokens=MAX_TOKENS)
    tokens = SIZE // BYTES_PER_TOKEN
    most = price().times(US_FACTOR).most(len(wire.encode(request, MODEL, stream=True)), MAX_TOKENS)
    return Sums(real=price().cost(Usage(input=tokens, output=tokens)), most=most)


def paid(audit: Audit) -> Microdollars:
    """Say what the provider charges for everything that it counted."""
    return price().base.cost(Usage(input=audit.tokens.input, output=audit.tokens.output))


def order(stage: Stage, calls: int, **rest: Any) -> Order:
    """All at once: as many calls under way as there are."""
    return stage.order(
        calls,
        concurrency=calls,
        window=calls,
        size=SIZE,
        mixed=False,
        max_tokens=MAX_TOKENS,
        timeouts=PATIENT,
        **rest,
    )


def check_stopped_by_budget(ended: Ended) -> None:
    assert (ended.run["state"], ended.run["ended_reason"]) == ("failed", "budget"), ended


async def drive_under_cap(stage: Stage, calls: int = 200) -> Books:
    """Drive many calls at once under a cap on the run; gives its books."""
    ended = await stage.drive(order(stage, calls, budget_usd=f"{to_usd(sums().cap):.6f}"))
    check_stopped_by_budget(ended)
    books, audit = await read_books(stage), stage.sim.audit()
    check_books(books)
    check_paid_once(books, audit)
    assert paid(audit) <= books.run.spent.settled <= sums().cap
    assert books.run.spent.settled + sums().most > sums().cap  # there was no room for one more
    print(
        f"{calls} calls: {audit.requests} requests, {audit.calls} paid ({show_usd(paid(audit))} of "
        f"{show_usd(sums().cap)}), {len(books.uncertain)} uncertain, faults {dict(audit.faults)}"
    )
    return books


def test_the_cap_lets_in_just_fifty() -> None:
    both = sums()
    assert (PAYABLE - 1) * both.real + both.most <= both.cap < PAYABLE * both.real + both.most
    assert both.most > 10 * both.real


async def test_200_calls_at_once_under_a_budget_for_50_pay_for_exactly_50(stage: Stage) -> None:
    stage.sim.faults(HONEST)
    books = await drive_under_cap(stage)
    assert len(books.texts) == stage.sim.audit().calls == PAYABLE
    assert paid(stage.sim.audit()) == PAYABLE * sums().real


async def test_two_processes_under_one_day_budget_for_50_pay_for_exactly_50_together(stage: Stage) -> None:
    stage.sim.faults(HONEST)
    await drive_two_in_one_day(stage, 100)


async def test_the_money_of_a_process_that_died_does_not_hold_up_another(stage: Stage) -> None:
    cap = Microdollars(sums().cap + 4 * sums().most)  # three on the wire when it dies, and one that is ready
    set_day_budget(stage, cap)
    dead = await stage.drive(replace(order(stage, 100, name="dead"), concurrency=3), crash_at="call.answered:1")
    assert dead.killed
    check_stopped_by_budget(await stage.drive(order(stage, 100, name="alive")))
    audit = stage.sim.audit()
    async with stage.open() as muster:
        books = [await books_of(muster, await muster.runs.find(name)) for name in ("dead", "alive")]
        settled = budgets(muster, "billed + imputed + uncertain")
    days = [amount for name, amount in settled.items() if name.startswith("day:")]  # two around midnight
    for each in books:
        check_books(each)
    check_all_paid_once(books, audit)
    assert books[0].run.state is RunState.INTERRUPTED
    assert 1 <= len(books[0].uncertain) <= 4
    assert len(books[1].texts) >= PAYABLE
    assert all(amount <= cap for amount in days)
    assert days[-1] + sums().most > cap
    assert paid(audit) <= sum(days)


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(3))
async def test_a_budget_is_kept_whatever_the_faults(stage: Stage, seed: int) -> None:
    stage.sim.faults({**HONEST, "seed": seed})
    assert len((await drive_under_cap(stage)).texts) == PAYABLE


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(3))
async def test_a_budget_is_kept_when_outcomes_are_unknown(stage: Stage, seed: int) -> None:
    stage.sim.faults({**DISHONEST, "seed": seed})
    books = await drive_under_cap(stage)
    assert len(books.uncertain) == 2
    assert stage.sim.audit().calls == len(books.texts) + 2


@pytest.mark.chaos
@pytest.mark.parametrize("seed", range(3))
async def test_a_day_budget_is_kept_by_two_processes_whatever_the_faults(stage: Stage, seed: int) -> None:
    stage.sim.faults({**HONEST, "seed": seed})
    await drive_two_in_one_day(stage, 200)


def set_day_budget(stage: Stage, cap: Microdollars) -> None:
    text = f"[budget]\nday_usd = {to_usd(cap):.6f}\n"
    (stage.folder / "muster.toml").write_text(text, encoding="utf-8")


async def drive_two_in_one_day(stage: Stage, calls: int) -> None:
    """Two processes, one store, one day: together they pay for as many as the day's cap allows."""
    set_day_budget(stage, sums().cap)
    ended = await asyncio.gather(*(stage.drive(order(stage, calls, name=name)) for name in ("left", "right")))
    for end in ended:
        check_stopped_by_budget(end)
    audit = stage.sim.audit()
    async with stage.open() as muster:
        books = [await books_of(muster, await muster.runs.find(name)) for name in ("left", "right")]
        settled = budgets(muster, "billed + imputed + uncertain")
    days = [amount for name, amount in settled.items() if name.startswith("day:")]  # two around midnight
    for each in books:
        check_books(each)
    check_all_paid_once(books, audit)
    assert all(amount <= sums().cap for amount in days)
    assert paid(audit) == sum(days) <= sums().cap * len(days)
    assert PAYABLE <= audit.calls <= PAYABLE * len(days)
    print(
        f"2 × {calls} calls: {audit.requests} requests, {' + '.join(str(len(each.texts)) for each in books)} paid "
        f"({show_usd(paid(audit))} of {show_usd(sums().cap)})"
    )


def check_all_paid_once(books: list[Books], audit: Audit) -> None:
    """Both runs ask the same questions, so only together can they be compared with the audit."""
    replies = sum(len(each.texts) for each in books)
    uncertain = sum(len(each.uncertain) for each in books)
    assert replies <= audit.calls <= replies + uncertain
