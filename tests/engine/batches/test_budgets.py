"""A cap holds in batches too: members are reserved at the price of the batch, what does not fit waits for the next."""

from decimal import Decimal
from pathlib import Path

import pytest

from muster.app import Muster
from muster.domain.batch import Tally
from muster.domain.call import Message, Request, Role
from muster.domain.money import Microdollars, to_usd
from muster.domain.run import RunState
from muster.domain.script import BYTES_PER_TOKEN
from tests.chaos.books import Books, books_of
from tests.engine.batches.house import (
    House,
    ask_all,
    batch,
    check_answered,
    give_up_and_go_on,
    open_house,
    questions,
)

MAX_TOKENS = 1000
SIZE = 400  # bytes of a question, and of its echo
ASKED = {key: f"{text} ".ljust(SIZE, ".") for key, text in questions(60).items()}
INPUT, OUTPUT = Decimal("0.5"), Decimal("2.5")  # microdollars for a token in a batch, as the house declares


@pytest.fixture
async def most(tmp_path: Path, agent: str) -> int:
    """The most that one member can cost, learned where nothing is capped."""
    async with open_house(tmp_path / "scales") as scales, scales.open() as muster:
        run = await ask_all(muster, agent, ASKED, max_tokens=MAX_TOKENS)
        amounts = {attempt.reserved for attempt in (await books_of(muster, run)).attempts}
        assert len(amounts) == 1  # all questions have the same size
        return amounts.pop()


def real() -> Microdollars:
    """Say what one member costs: as many tokens in as out."""
    tokens = SIZE // BYTES_PER_TOKEN
    return Microdollars(-int(-(INPUT + OUTPUT) * tokens // 1))


def dollars(amount: int) -> str:
    return f"{to_usd(Microdollars(amount)):.6f}"


def check_never_over(house: House, books: Books, cap: int) -> None:
    """By the provider's own count no more was charged than the cap, and at no time more reserved."""
    assert house.audit.cost <= books.run.spent.settled <= cap
    spent = 0
    for made in books.batches:
        assert spent + made.reserved <= cap
        spent += made.cost


async def test_a_member_that_can_cost_more_than_one_call_may_is_not_sent(tmp_path: Path, agent: str, most: int) -> None:
    for cap, sent in ((most + most // 10, len(ASKED)), (most - 1, 0)):
        async with open_house(tmp_path / str(cap)) as house:
            house.declare()
            with (house.folder / "muster.toml").open("a") as settings:
                settings.write(f"\n[budget]\ncall_usd = {dollars(cap)}\n")
            async with house.open() as muster:
                run = await ask_all(muster, agent, ASKED, max_tokens=MAX_TOKENS)
                assert run.state is (RunState.COMPLETED if sent else RunState.FAILED)
            assert house.audit.calls == sent


async def test_members_are_reserved_at_the_price_of_the_batch(
    house: House, muster: Muster, agent: str, most: int
) -> None:
    run = await ask_all(muster, agent, ASKED, max_tokens=MAX_TOKENS)
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    [made] = books.batches
    message = Message(role=Role.USER, text=next(iter(ASKED.values())))
    live = muster._backend.directory.find(agent).quote(Request(messages=(message,), max_tokens=MAX_TOKENS))
    assert most == pytest.approx(live.most / 2, rel=0.02)  # a live request is a little longer: it may name a tier
    assert made.reserved == len(ASKED) * most
    assert made.cost == len(ASKED) * real() == run.spent.billed
    assert books.saving.live_cost == 2 * books.saving.cost  # a live call costs twice as much


async def test_what_does_not_fit_waits_for_the_next_batch(house: House, muster: Muster, agent: str, most: int) -> None:
    cap = 20 * most + len(ASKED) * real()
    run = await ask_all(muster, agent, ASKED, max_tokens=MAX_TOKENS, budget_usd=dollars(cap))
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    check_never_over(house, books, cap)
    assert sum(made.requests for made in books.batches) == len(ASKED)
    assert len(books.batches) >= 3
    assert books.batches[0].requests >= 20


async def test_what_can_never_fit_is_refused_with_the_numbers(
    house: House, muster: Muster, agent: str, most: int
) -> None:
    cap = most - 1
    run = await ask_all(muster, agent, ASKED, max_tokens=MAX_TOKENS, budget_usd=dollars(cap))
    assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
    assert run.error is not None
    assert "the call can cost up to" in str(run.error["message"])
    await house.check_to_the_cent(muster, run)
    assert (house.audit.calls, len(house.batches)) == (0, 0)


@pytest.mark.parametrize("payable", [1, 10, 45])
async def test_a_cap_that_pays_for_some_pays_for_just_those(
    house: House, muster: Muster, agent: str, most: int, payable: int
) -> None:
    cap = (payable - 1) * real() + most
    run = await ask_all(muster, agent, ASKED, max_tokens=MAX_TOKENS, budget_usd=dollars(cap))
    assert (run.state, run.ended_reason) == (RunState.FAILED, "budget")
    books = await house.check_to_the_cent(muster, run)
    check_never_over(house, books, cap)
    assert run.spent.settled + most > cap  # there was no room for one more
    assert len(books.texts) == house.audit.calls == payable


async def test_a_cap_is_kept_among_faults(house: House, agent: str, most: int) -> None:
    house.play(rates={"member/500": 0.2, "expired": 0.2, "missing": 0.1, "member/400": 0.1}, at_most_per_digest=2)
    cap = 12 * most
    async with house.open_impatient() as muster:
        asked = await ask_all(muster, agent, ASKED, batch(batches=10), max_tokens=MAX_TOKENS, budget_usd=dollars(cap))
        run, _ = await give_up_and_go_on(muster, asked)
        books = await house.check(muster, run)
    check_never_over(house, books, cap)
    assert books.uncertain
    print(f"{len(books.batches)} batches, {len(books.texts)} answered, {house.audit.calls} paid, {run.state}")


async def test_two_runs_under_the_budget_of_a_day_keep_it_together(house: House, agent: str, most: int) -> None:
    payable = 30
    cap = (payable - 1) * real() + most
    path = house.folder / "muster.toml"
    path.write_text(f"{path.read_text(encoding='utf-8')}\n[budget]\nday_usd = {dollars(cap)}\n", encoding="utf-8")
    asked = dict(list(ASKED.items())[:30])
    other = {f"other/{key}": text.replace("question", "remark").ljust(SIZE)[:SIZE] for key, text in asked.items()}
    async with house.open() as muster:
        specs = [{"agent": agent, "questions": each, "max_tokens": MAX_TOKENS} for each in (asked, other)]
        handles = [await muster.start("survey", spec, dispatch=batch()) for spec in specs]
        runs = [await handle.wait() for handle in handles]
    assert {run.ended_reason for run in runs} <= {"budget", "done"}
    assert sum(run.spent.billed for run in runs) == house.audit.cost <= cap
    assert house.audit.calls == payable


async def test_the_money_of_members_that_expired_comes_back_for_the_next_batch(
    house: House, muster: Muster, agent: str, most: int
) -> None:
    house.play({"fault": "expiry"})
    cap = len(ASKED) * most
    run = await ask_all(muster, agent, ASKED, max_tokens=MAX_TOKENS, budget_usd=dollars(cap))
    check_answered(run, ASKED)
    books = await house.check_to_the_cent(muster, run)
    assert [made.tally for made in books.batches] == [Tally(succeeded=30, expired=30), Tally(succeeded=30)]
