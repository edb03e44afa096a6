"""Killed at every point and at any instant, a suite comes to the results it would have had: each once, paid once."""

import asyncio
import random
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest

from muster.agents.prices import price_of
from muster.domain.batch import BatchState
from muster.domain.call import Usage
from muster.domain.case import Status
from muster.domain.money import Microdollars, show_usd, to_usd
from muster.domain.run import RunState
from muster.engine.base.killpoints import POINTS
from muster.sim.audit import Audit
from tests.chaos import work
from tests.chaos.books import budgets, check_books, check_paid_once
from tests.chaos.stage import Ended, Stage
from tests.chaos.suites import (
    FOLDER,
    SCRIPT,
    Outcome,
    Play,
    finish,
    go_on,
    is_read_in,
    outcome_of,
    pages_read,
    perform,
    state_of,
)
from tests.rehearsal import ForkedRehearsal

FIRST_PAGE = "store.after_commit:3"  # the run was made, it was claimed, and a page of cases was kept
READING = (  # places to die while cases are read in, one after the other; a commit may hold more than one page
    FIRST_PAGE,
    "store.before_commit:3",  # it was found dead, it was claimed again, and another page was about to be kept
)
LIVE = (
    "run.claimed:1",
    "call.before_open:90",
    "call.opened:90",
    "call.answered:90",
    "call.settled:90",
    "store.before_commit:20",
    "store.after_commit:20",
    "run.before_release:1",
)
HALFWAY = "batch.collected:1"  # the answers are there, and nobody has judged them
ANSWERS = (
    "batch.before_plan:1",
    "batch.planned:1",
    "batch.claimed:1",
    "batch.created:1",
    "batch.polled:1",
    "batch.downloading:1",
    HALFWAY,
)
VERDICTS = ("batch.before_plan:1", "batch.confirmed:1", "batch.polled:1", "batch.downloading:1", "batch.page:1")
LATEST = 1.2  # seconds after its first words at which a random kill comes at the latest


@pytest.fixture
def sim() -> Iterator[ForkedRehearsal]:
    """A rehearsal server that is agent and judge; its batches take a moment."""
    with ForkedRehearsal(latency_ms=20, batch_ms=300, script=SCRIPT) as running:
        yield running


class Proof:
    """One suite, run once without and once with disturbance."""

    def __init__(self, folder: Path, sim: ForkedRehearsal, play: Play) -> None:
        self._folder, self._sim, self.play = folder, sim, play
        self.stage = self._new("disturbed-0")
        self.kills = 0

    def _new(self, name: str) -> Stage:
        stage = Stage(self._folder / name, self._sim)
        self.play.write(stage)
        return stage

    async def undisturbed(self) -> Outcome:
        """Run it in another folder; then the audit starts over."""
        quiet = self._new("quiet")
        await finish(quiet, self.play)
        outcome = await check(quiet, self.play)
        assert not outcome.books.uncertain
        self._sim.reset()
        return outcome

    async def kill_at(self, *places: str) -> None:
        for place in places:
            ended = await (await go_on(self.stage, self.play, place)).end()
            assert ended.killed, (place, ended)
            self.kills += 1

    async def kill_while_read_in(self) -> None:
        for place in READING:
            await self.kill_at(place)
            assert pages_read(self.stage) > 0
            assert not is_read_in(self.stage)

    async def kill_at_random(self, kills: int, expected: Outcome) -> None:
        """Kill it at random instants, so often; one that is done too soon is followed by another."""
        for number in count(1):
            while self.kills < kills and not self._completed:
                driver = await go_on(self.stage, self.play)
                await driver.ready()
                await asyncio.sleep(random.uniform(0, LATEST))
                self.kills += (await driver.kill()).killed
            await self.end(expected)
            if self.kills == kills:
                return
            self._sim.reset()
            self.stage = self._new(f"disturbed-{number}")

    async def end(self, expected: Outcome) -> Outcome:
        """Let it come to its end: the results are those of the undisturbed run."""
        if not self._completed:  # else the last one died over its last words
            await finish(self.stage, self.play)
        outcome = await check(self.stage, self.play)
        assert outcome.lasting == expected.lasting
        return outcome

    @property
    def _completed(self) -> bool:
        return state_of(self.stage) is RunState.COMPLETED


async def check(stage: Stage, play: Play) -> Outcome:
    """Every case has one result in each epoch, and for every call there is one reply that was paid once."""
    outcome, audit = await outcome_of(stage), stage.sim.audit()
    books = outcome.books
    assert books.run.state is RunState.COMPLETED
    assert [(result.case, result.epoch) for result in outcome.results] == [
        (f"parrot/{number:05d}", epoch) for number in range(play.cases) for epoch in range(1, play.epochs + 1)
    ]
    assert len(books.texts) == len(books.entries) == play.calls
    check_books(books)
    check_paid_once(books, audit)
    print(
        f"{play.dispatch}: {play.units} results of {play.calls} calls, {outcome.resumed} times resumed, "
        f"{len(books.batches)} batches, {audit.requests} requests, {audit.calls} paid, {len(books.uncertain)} uncertain"
    )
    return outcome


def check_only_given_up_is_uncertain(outcome: Outcome) -> None:
    """In batches nothing is uncertain but what was given up because nobody knew whether it had been sent."""
    given_up = [batch for batch in outcome.books.batches if batch.state is BatchState.ABANDONED]
    assert len(outcome.books.uncertain) == sum(batch.requests for batch in given_up)
    assert len(outcome.books.batches) == 2 + len(given_up)


def test_every_point_has_its_turn() -> None:
    assert {place.partition(":")[0] for place in (*LIVE, *ANSWERS, *VERDICTS)} == {
        point for point in POINTS if not point.startswith(("signal.", "question.", "audit."))
    }


async def test_a_suite_killed_while_it_is_read_in_and_asked_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    proof = Proof(tmp_path, sim, Play(cases=110, muddled=True))
    assert proof.play.code == 1
    expected = await proof.undisturbed()
    await proof.kill_at(FIRST_PAGE)
    assert pages_read(proof.stage) > 0
    assert not is_read_in(proof.stage)
    await proof.kill_at("call.answered:70")
    assert (pages_read(proof.stage), is_read_in(proof.stage)) == (2, True)
    shutil.rmtree(proof.stage.folder / FOLDER)  # what was read in is not looked at again
    outcome = await proof.end(expected)
    assert outcome.resumed == proof.kills == 2


async def test_a_suite_in_batches_killed_before_and_between_them_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    play = Play(cases=30, epochs=2, judge=work.ANTHROPIC, dispatch="batch", bad=False)
    assert play.code == 0
    proof = Proof(tmp_path, sim, play)
    expected = await proof.undisturbed()
    assert [batch.requests for batch in expected.books.batches] == [60, 60]  # answers, then verdicts
    await proof.kill_at("batch.created:1", HALFWAY)
    outcome = await proof.end(expected)
    assert len(outcome.books.batches) == 2
    assert not outcome.books.uncertain


async def test_a_suite_that_was_changed_while_it_was_read_in_is_not_mixed(tmp_path: Path, sim: ForkedRehearsal) -> None:
    proof = Proof(tmp_path, sim, Play(cases=120))
    await proof.kill_at(FIRST_PAGE)
    Play(cases=120, bad=False).write(proof.stage)
    ended = await (await go_on(proof.stage, proof.play)).end()
    assert (ended.code, ended.said["error"]["code"]) == (4, "conflict"), ended
    assert "was changed" in ended.said["error"]["message"]
    assert sim.audit().requests == 0


async def test_a_case_that_met_an_error_before_the_crash_is_asked_again_after_it(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    proof = Proof(tmp_path, sim, Play(cases=40, concurrency=3, bad=False))
    sim.faults({"script": [{"fault": "400", "text": "^item 00002 "}]})
    await proof.kill_at("call.settled:60")
    broken = await outcome_of(proof.stage)
    assert broken.results[2].status is Status.ERROR
    await finish(proof.stage, proof.play)
    outcome = await check(proof.stage, proof.play)
    assert {result.status for result in outcome.results} == {Status.PASSED}
    assert outcome.results[:2] == broken.results[:2]


def paid(audit: Audit) -> Microdollars:
    """Say what the provider charges for everything that it counted."""
    price = price_of("anthropic", work.ANTHROPIC.partition("/")[2], datetime.now(UTC))
    assert price is not None
    return price.base.cost(Usage(input=audit.tokens.input, output=audit.tokens.output))


def set_day_budget(stage: Stage, cap: Microdollars) -> None:
    text = f"[budget]\nday_usd = {to_usd(cap):.6f}\n"
    for name in (work.ANTHROPIC, work.OPENAI):  # of short answers: no room is reserved for thinking
        kind, model = name.split("/")
        text += f'[agents."{name}"]\nkind = "{kind}"\nmodel = "{model}"\nmax_tokens = 2048\n'
    (stage.folder / "muster.toml").write_text(text, encoding="utf-8")


async def settled_by_day(stage: Stage) -> list[int]:
    """Give what was spent on each day that there was: two around midnight."""
    async with stage.open() as muster:
        spent = budgets(muster, "billed + imputed + uncertain")
    return [amount for name, amount in spent.items() if name.startswith("day:")]


async def at_once(stage: Stage, *commands: tuple[str, ...]) -> list[Ended]:
    """Let several commands do their work at the same time."""
    drivers = [await perform(stage, *command) for command in commands]
    return list(await asyncio.gather(*(driver.end() for driver in drivers)))


async def share_a_day(stage: Stage, play: Play) -> None:
    """Run a suite twice at once under a cap that is too low for either, and go on under one that is not."""
    play.write(stage)
    sides = ("left", "right")
    cap = Microdollars(play.cases * 60)
    set_day_budget(stage, cap)
    stopped = await at_once(stage, *(play.command("--name", side) for side in sides))
    audit, days = stage.sim.audit(), await settled_by_day(stage)
    assert [end.said["error"]["code"] for end in stopped] == ["budget", "budget"], stopped
    assert all(amount <= cap for amount in days)
    assert cap // 2 < paid(audit) <= sum(days) <= cap * len(days)
    done = [len((await outcome_of(stage, side)).results) for side in sides]
    print(f"{done} results of {play.calls} calls each: {audit.calls} paid ({show_usd(paid(audit))} of {show_usd(cap)})")

    set_day_budget(stage, Microdollars(100 * cap))
    ended = await at_once(stage, *(("runs", "resume", side) for side in sides))
    assert [end.code for end in ended] == [play.code] * 2, ended
    outcomes = [await outcome_of(stage, end.said["data"]["run"]["id"]) for end in ended]
    assert outcomes[0].lasting == outcomes[1].lasting
    assert [len(outcome.results) for outcome in outcomes] == [play.units] * 2
    assert stage.sim.audit().calls == 2 * play.calls  # what was paid before is not paid again


async def test_two_runs_of_a_suite_at_once_stay_together_under_the_cap_of_a_day(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    await share_a_day(Stage(tmp_path / "stage", sim), Play(cases=60, judge=work.ANTHROPIC, bad=False))


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_suite_of_400_killed_at_every_point_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    proof = Proof(tmp_path, sim, Play(cases=400, muddled=True))
    expected = await proof.undisturbed()
    await proof.kill_while_read_in()
    await proof.kill_at(*LIVE)
    outcome = await proof.end(expected)
    assert outcome.resumed == proof.kills == len(READING) + len(LIVE)


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_suite_of_400_in_two_epochs_killed_at_8_random_instants_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    proof = Proof(tmp_path, sim, Play(cases=400, epochs=2, bad=False))
    await proof.kill_at_random(8, await proof.undisturbed())


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_suite_of_400_in_batches_killed_at_every_point_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    proof = Proof(tmp_path, sim, Play(cases=400, judge=work.ANTHROPIC, dispatch="batch"))
    expected = await proof.undisturbed()
    assert [batch.requests for batch in expected.books.batches] == [400, 400]  # answers, then verdicts
    await proof.kill_while_read_in()
    await proof.kill_at(*ANSWERS, *VERDICTS)
    check_only_given_up_is_uncertain(await proof.end(expected))


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_suite_of_400_in_batches_killed_at_8_random_instants_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    play = Play(cases=400, agent=work.OPENAI, judge=work.OPENAI, dispatch="batch", bad=False)
    proof = Proof(tmp_path, sim, play)
    expected = await proof.undisturbed()
    assert [batch.requests for batch in expected.books.batches] == [400, 400]
    await proof.kill_at_random(8, expected)


@pytest.mark.chaos
async def test_two_runs_of_a_suite_of_400_at_once_stay_together_under_the_cap_of_a_day(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    await share_a_day(Stage(tmp_path / "stage", sim), Play(cases=400, judge=work.ANTHROPIC, bad=False))
