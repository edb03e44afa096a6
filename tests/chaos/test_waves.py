"""Killed at every point, a verification in batches comes to the reports it would have had, and nothing is paid twice.

Each provider has a batch in each wave, and a process dies over the one that comes first.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from muster.app import open_muster
from muster.domain.batch import BatchState
from muster.domain.entry import EntryKind
from muster.domain.money import NOTHING
from muster.domain.run import RunState
from muster.engine.base.killpoints import POINTS
from muster.settings import load_settings
from muster.sim.audit import Audit
from muster.verify.findings.journal import CLEARED, CLEARING, report_key
from muster.verify.reports.run import open_waves_run
from muster.verify.reports.summary import Cost, VerifyReport, summarize
from muster.verify.spec import stored
from tests.chaos.books import Books, books_of, check_books
from tests.chaos.fleet import Order
from tests.chaos.stage import BRISK, Ended, Stage
from tests.rehearsal import ForkedRehearsal
from tests.verify.crowd import FILES, SCRIPT, UNHURRIED, crowd_spec, write_crowd
from tests.verify.stage import PENDING, lasting

PATIENT = replace(BRISK, settle=UNHURRIED)
READING = ("run.claimed:1", "store.after_commit:3")  # before and after a page of the files was kept
FIRST = (
    "batch.before_plan:1",
    "batch.planned:1",
    "batch.created:1",  # the provider has it, and we do not know its name
    "batch.polled:1",
    "batch.downloading:1",
    "batch.page:1",  # one provider's part of the wave is settled
    "batch.collected:1",  # and the other's is collected
)
SECOND = (
    "batch.before_plan:1",  # a report of the first wave, and nothing of the second
    "batch.confirmed:1",
    "batch.polled:1",
    "batch.downloading:1",
    "batch.page:1",
    "batch.collected:1",
)
LAST = "run.before_release:1"  # all is done, markers are cleared, and nobody has said so
ABSENT = {"call.before_open", "call.opened", "call.answered", "call.settled", "store.before_commit", "batch.claimed"}


@pytest.fixture
def sim() -> Iterator[ForkedRehearsal]:
    """A rehearsal server that is all agents; its batches take a moment."""
    with ForkedRehearsal(batch_ms=200, script=SCRIPT) as running:
        yield running


@dataclass(frozen=True)
class Outcome:
    """What a verification left behind."""

    report: VerifyReport
    books: Books
    audit: Audit
    result: Mapping[str, Any]

    @property
    def lasting(self) -> VerifyReport:
        """The report without clocks, places and ids, and without who of those sharing a cache paid for filling it."""
        waves = [
            replace(wave, agents=tuple(replace(agent, cost=NOTHING) for agent in wave.agents))
            for wave in lasting(self.report.waves)
        ]
        cleared = tuple(Path(path).name for path in self.report.cleared)
        facts = replace(self.report.run, id="", root="", epoch=0, created_at=0.0, started_at=None, ended_at=None)
        return replace(self.report, waves=tuple(waves), run=replace(facts, cost=Cost()), cleared=cleared, batches={})


class Proof:
    """One verification, done once without and once with disturbance."""

    def __init__(self, folder: Path, sim: ForkedRehearsal, files: int) -> None:
        self._folder, self._sim, self._files = folder, sim, files
        self.stage, self.order = self._new("disturbed")
        self.kills = 0

    def _new(self, name: str) -> tuple[Stage, Order]:
        stage = Stage(self._folder / name, self._sim)
        root = stage.folder / "code"
        given = stored(crowd_spec(root, write_crowd(root, self._files)))
        return stage, stage.order(0, workload="waves", dispatch="batch", given=given, patience=PATIENT)

    async def undisturbed(self) -> Outcome:
        """Do it in another folder, in this process; then the audit starts over."""
        stage, order = self._new("quiet")
        settings = load_settings(folder=stage.folder, environment=stage.environment)
        async with open_muster(settings=settings, patience=PATIENT) as muster:
            await (await muster.start("waves", order.given, name=order.name, dispatch="batch")).wait()
        outcome = await check(stage)
        assert (len(outcome.books.batches), outcome.books.uncertain) == (4, [])
        self._sim.reset()
        return outcome

    async def kill_at(self, *places: str) -> None:
        for place in places:
            ended = await self._go_on(place)
            assert ended.killed, (place, ended)
            self.kills += 1

    async def kill_over_the_markers(self) -> str:
        """Let each process get one commit further than the one before, until one dies about when it has removed them.

        Commits join as the machine pleases, so it may die just before the removal is written down, just after, or
        after the end of the run, or not at all; gives which of these it was.
        """
        for number in count(2):
            ended = await self._go_on(f"store.before_commit:{number}")
            self.kills += ended.killed
            if state_in(self.stage) is RunState.COMPLETED:
                return f"commit {number} was too late: the run was completed"
            assert ended.killed, (number, ended)
            if not markers_in(self.stage):
                assert CLEARING in kept_in(self.stage)
                written = "after" if CLEARED in kept_in(self.stage) else "before"
                return f"killed at commit {number}, {written} the removal of the markers was written down"
        raise AssertionError("unreachable")

    async def end(self, expected: Outcome) -> Outcome:
        """Let it come to its end: the reports are those of the undisturbed one."""
        ended = await self._go_on()
        assert ended.run["state"] == "completed", ended
        outcome = await check(self.stage)
        assert outcome.lasting == expected.lasting
        assert outcome.audit.tokens == expected.audit.tokens
        # The same tokens in another order: of each call a part of a millionth of a dollar is rounded up.
        costs = [one.report.run.cost for one in (outcome, expected)]
        assert abs(costs[0].known - costs[1].known) < outcome.audit.calls
        return outcome

    async def _go_on(self, crash_at: str | None = None) -> Ended:
        """Begin or go on; a batch of which nobody can say whether it was created is given up, by hand."""
        ended = await self.stage.drive(self.order, crash_at=crash_at)
        if not ended.killed and ended.run["ended_reason"] == "batch_open":
            ended = await self.stage.drive(replace(self.order, resubmit=True), crash_at=crash_at)
        return ended


async def check(stage: Stage) -> Outcome:
    """Everybody has looked at everything, in two batches at each provider; each call was paid once."""
    outcome = await outcome_of(stage)
    report, books, audit = outcome.report, outcome.books, outcome.audit
    assert books.run.state is RunState.COMPLETED
    assert (report.ok, outcome.result["passed"], len(report.agents), len(report.waves)) == (True, True, 5, 2)
    chunks = report.agents[0].chunks
    assert chunks > 1
    assert {(agent.chunks, agent.answered) for agent in report.agents} == {(chunks, chunks)}
    check_books(books)
    assert len(books.texts) == audit.calls == 5 * chunks
    assert set(audit.by_digest.values()) == {1}
    assert Counter(batch["provider"] for batch in audit.batches) == {"anthropic": 2, "openai": 2}
    given_up = [batch for batch in books.batches if batch.state is BatchState.ABANDONED]
    assert len(books.batches) == 4 + len(given_up)
    assert len(books.uncertain) == sum(batch.requests for batch in given_up)
    assert len(report.cleared) == len(report.files) // 10
    assert not markers_in(stage)
    print(f"{5 * chunks} calls about {len(report.files)} files, {report.run.epoch} drivers, {len(given_up)} given up")
    return outcome


async def outcome_of(stage: Stage) -> Outcome:
    """Read a verification back."""
    async with stage.open() as muster:
        run = await muster.runs.find("fleet")
        report = await summarize(await open_waves_run(muster._backend.store, run))
        books = await books_of(muster, run)
    calls = [entry for entry in books.entries if entry.kind is EntryKind.CALL]
    return Outcome(report=report, books=replace(books, entries=calls), audit=stage.sim.audit(), result=run.result)


def markers_in(stage: Stage) -> list[Path]:
    return list((stage.folder / "code" / PENDING).iterdir())


def kept_in(stage: Stage) -> set[str]:
    """Give the keys in the journal."""
    return {key for (key,) in look_into(stage, "SELECT key FROM journal")}


def state_in(stage: Stage) -> RunState:
    """Give the state of the run."""
    ((state,),) = look_into(stage, "SELECT state FROM runs")
    return RunState(state)


def look_into(stage: Stage, sql: str) -> list[tuple[str]]:
    """Read what a process left; whoever opened the store would begin to clear it up."""
    database = sqlite3.connect(stage.folder / ".muster" / "muster.db")
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def test_every_point_has_its_turn() -> None:
    """In batches no call is on the wire; other points have tests, or parts of one, of their own."""
    places = {place.partition(":")[0] for place in (*READING, *FIRST, *SECOND, LAST)}
    assert places == {point for point in POINTS if not point.startswith(("signal.", "question.", "audit."))} - ABSENT


async def test_a_verification_in_batches_killed_twice_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    proof = Proof(tmp_path, sim, FILES)
    expected = await proof.undisturbed()
    await proof.kill_at("batch.created:1", "batch.page:2")
    outcome = await proof.end(expected)
    assert (proof.kills, outcome.report.run.epoch >= 3) == (2, True)


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_verification_killed_at_every_point_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    proof = Proof(tmp_path, sim, FILES)
    expected = await proof.undisturbed()
    await proof.kill_at(*READING, *FIRST)
    assert report_key(1) not in kept_in(proof.stage)
    await proof.kill_at(*SECOND)
    assert report_key(1) in kept_in(proof.stage)
    await proof.kill_at(LAST)
    assert {CLEARING, CLEARED} <= kept_in(proof.stage)
    assert not markers_in(proof.stage)
    outcome = await proof.end(expected)
    assert outcome.report.run.epoch == proof.kills + 1


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_verification_killed_over_its_markers_ends_as_if_nothing_had_happened(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    """On any machine: where the kill came too late for the markers, that is said, and the end is the same."""
    proof = Proof(tmp_path, sim, FILES)
    expected = await proof.undisturbed()
    await proof.kill_at("batch.collected:4")  # nothing is left but the reports and the markers
    print(await proof.kill_over_the_markers())
    await proof.end(expected)


@pytest.mark.chaos
@pytest.mark.timeout(300)
async def test_a_verification_killed_before_its_batches_left_is_sent_again_when_that_is_safe_or_allowed(
    tmp_path: Path, sim: ForkedRehearsal
) -> None:
    proof = Proof(tmp_path, sim, FILES)
    expected = await proof.undisturbed()
    await proof.kill_at("batch.claimed:1", "batch.claimed:1")
    outcome = await proof.end(expected)
    assert len(outcome.books.uncertain) > 0  # at one of the two nobody knows, until somebody decides
