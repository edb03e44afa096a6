"""The summary of a verification: who found what, what was never done, and whether it is a success."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, TypeVar

from muster.domain.batch import BatchShare
from muster.domain.canonical import Json
from muster.domain.errors import state_verb
from muster.domain.money import NOTHING, Microdollars, show_usd
from muster.domain.run import Run, RunState
from muster.text import typed
from muster.text.secrets.redaction import Redactor
from muster.text.words import count, one_line
from muster.verify.declaration.verification import Kind, LeftOut
from muster.verify.findings.assessment import add, less
from muster.verify.findings.assessment import count as count_findings
from muster.verify.findings.finding import Counts, Merged, Rejected
from muster.verify.findings.journal import AgentReport, Ending, WaveReport, wave_prefix
from muster.verify.findings.merging import merge
from muster.verify.reports.run import WavesRun, planned, planned_waves
from muster.verify.sources.source import FileInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a verification cost, and what it would have cost live in the standard tier."""

    billed: Microdollars = NOTHING
    imputed: Microdollars = NOTHING  # covered by a subscription
    uncertain: Microdollars = NOTHING  # may have been charged besides
    batches: int = 0
    batch: Microdollars = NOTHING  # the part of it that was spent in batches
    batch_live: Microdollars = NOTHING  # what the same calls cost when they are sent live
    parked: int = 0  # calls whose batch has not ended
    flex_saved: Microdollars = NOTHING  # what the standard tier would have cost more

    @property
    def known(self) -> Microdollars:
        """What is known to have been spent, by whoever pays for it."""
        return Microdollars(self.billed + self.imputed)

    @property
    def has_savings(self) -> bool:
        """Return whether a part of it was asked in another way than live in the standard tier."""
        return self.batches > 0 or self.flex_saved != 0

    @property
    def live(self) -> Microdollars:
        """What all of it would have cost live in the standard tier."""
        return Microdollars(self.known - self.batch + self.batch_live + self.flex_saved)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The facts of a run that stand at the head of every report."""

    id: str
    name: str | None
    title: str
    state: RunState
    epoch: int  # how often somebody has taken it up
    ended_reason: str | None
    error: str
    root: str
    dispatch: str
    created_at: float
    started_at: float | None
    ended_at: float | None
    cost: Cost

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        return None if self.started_at is None or self.ended_at is None else max(0.0, self.ended_at - self.started_at)


async def run_facts(waves: WavesRun) -> Facts:
    """Read the facts of a run."""
    run = waves.run
    return Facts(
        id=run.id,
        name=run.name,
        title=run.name or f"verification of {PurePath(waves.spec.root).name or waves.spec.root}",
        state=run.state,
        epoch=run.lease.epoch,
        ended_reason=run.ended_reason,
        error="" if not run.error else str(run.error.get("message", "")),
        root=waves.spec.root,
        dispatch="live" if waves.spec.live else str(run.dispatch.mode),
        created_at=run.created_at,
        started_at=run.started_at,
        ended_at=run.ended_at,
        cost=await _cost(waves, run),
    )


async def _cost(waves: WavesRun, run: Run) -> Cost:
    saving = await waves.store.batches.saving(run.id)
    return Cost(
        billed=run.spent.billed,
        imputed=run.spent.imputed,
        uncertain=run.spent.uncertain,
        batches=saving.batches,
        batch=saving.cost,
        batch_live=saving.live_cost,
        parked=saving.parked,
        flex_saved=saving.flex_saved,
    )


T = TypeVar("T")

_HALF = re.compile("[\ud800-\udfff]")


class ReportCleaner:
    """Cleans many values, with one numbering of secrets for all of them."""

    def __init__(self) -> None:
        self._redactor = Redactor()

    def value(self, value: T, kind: type[T]) -> T:
        """Return a value of the domain whose texts are clean."""
        return typed.convert(self._json(typed.to_builtins(value)), kind)

    def text(self, text: str) -> str:
        """Return a clean text."""
        return _HALF.sub("\ufffd", self._redactor.text(text))

    def _json(self, value: Json) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self._json(inner) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._json(inner) for inner in value]
        return value


NAMED = 5  # so many are named in a sentence, the others are counted
MAX_QUOTE = 300

Quote = Callable[[str], str]


def plain(text: str) -> str:
    """Quote nothing, but keep to one line."""
    return one_line(text, MAX_QUOTE)


def listed(names: Sequence[str], quote: Quote) -> str:
    """Name some, and count the others."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(quote(name) for name in names[:NAMED]) + more


def because(why: str, quote: Quote) -> str:
    """Write a reason, as far as there is one."""
    return f": {quote(why)}" if why else ""


def looked(agent: AgentReport) -> bool:
    """Return whether an agent has looked at all that was for it."""
    return agent.ending in (Ending.PASSED, Ending.FAILED) and agent.answered == agent.chunks > 0


def fine(agent: AgentReport) -> bool:
    """Return whether an agent has no objection; that it passed is believed only if its numbers agree."""
    if agent.ending is Ending.IDLE:
        return agent.chunks == 0
    return agent.ending is Ending.PASSED and looked(agent) and all(held.holds for held in agent.thresholds)


def run_flaws(run: Facts, quote: Quote) -> Iterator[str]:
    """Return that a run has not completed, or exceeded a budget."""
    if run.state is not RunState.COMPLETED:
        state = state_verb(run.state)
        yield f"the run {state}{because(run.error, quote)}"
    elif run.error:
        yield f"budget exceeded{because(run.error, quote)}"


def agent_flaws(agents: Sequence[AgentReport], quote: Quote) -> Iterator[str]:
    """Return which agents did not pass, and why."""
    bad = [agent for agent in agents if not fine(agent)]
    for agent in bad[:NAMED]:
        yield f"agent {quote(agent.agent)} {_ending(agent, quote)}"
    if len(bad) > NAMED:
        yield f"{count(len(bad) - NAMED, 'more agent')} did not pass"


def _ending(agent: AgentReport, quote: Quote) -> str:
    if agent.ending is Ending.BROKEN and agent.why.startswith("no report"):  # which says the same, and for how much
        how_much, _, reason = agent.why.partition(": ")
        return f"gave {how_much}{because(reason, quote)}"
    because_of = because(agent.why, quote)
    if agent.ending is Ending.FAILED:
        return f"failed{because_of}"
    if agent.ending is Ending.BROKEN:
        return f"gave no valid report{because_of}"
    return f"is reported as {agent.ending}, but its numbers do not agree{because_of}"


def wave_flaws(waves: Sequence[WaveReport], quote: Quote) -> Iterator[str]:
    """Return which waves did not pass although all their agents did."""
    bad = [wave for wave in waves if not wave.passed and all(fine(agent) for agent in wave.agents)]
    for wave in bad[:NAMED]:
        yield f"wave {wave.wave} did not pass{because(wave.why, quote)}"
    if len(bad) > NAMED:
        yield f"{count(len(bad) - NAMED, 'more wave')} did not pass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """An agent that was to run and of which there is no report."""

    agent: str
    wave: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedBy:
    """A finding that cannot be, with who came up with it."""

    agent: str
    wave: int
    rejected: Rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """Everything that reports say of a verification; all texts in it are clean."""

    run: Facts
    waves: tuple[WaveReport, ...]  # that have ended
    not_started: tuple[int, ...]  # waves without a report
    absent: tuple[Absent, ...]
    only_waves: tuple[int, ...]  # empty: all of them
    only_agents: tuple[str, ...]  # empty: all of them
    files: tuple[FileInfo, ...]
    unseen: tuple[str, ...]  # files that nobody has looked at
    left_out: tuple[LeftOut, ...]
    merged: tuple[Merged, ...]  # over all waves, the worst first
    counts: Counts  # of the merged ones, and of those that are too many to be kept
    rejected: tuple[RejectedBy, ...]
    cleared: tuple[str, ...]  # markers
    markers: int = 0  # that there were
    batches: Mapping[int, tuple[BatchShare, ...]] = field(default_factory=dict)  # of each wave that has ended

    @property
    def ok(self) -> bool:
        """Return whether it is a success: everything that was to be checked was checked, and passed."""
        return not any(self.flaws())

    @property
    def pending(self) -> bool:
        """Return whether it waits for a batch, and nothing speaks against what was done so far."""
        done = all(fine(agent) for agent in self.agents) and all(wave.passed for wave in self.waves)
        return self.run.state is RunState.WAITING and done

    @property
    def verdict(self) -> str:
        """The verdict in a sentence."""
        return self.sentence()

    @property
    def partial(self) -> bool:
        """Return whether only some of those who were declared were to be asked."""
        return bool(self.only_waves or self.only_agents)

    @property
    def agents(self) -> tuple[AgentReport, ...]:
        """The reports of all agents, wave by wave."""
        return tuple(agent for wave in self.waves for agent in wave.agents)

    @property
    def redactions(self) -> int:
        """How many secrets were taken out of the files before anybody saw them."""
        return sum(file.redacted for file in self.files)

    def sentence(self, quote: Quote = plain) -> str:
        """Return the verdict with somebody else's words quoted."""
        partly = [f"this is only a part of the verification: {self.part(quote)}"] if self.partial else []
        text = "; ".join([*(list(self.flaws(quote)) or [self._success()]), *partly])
        return f"{text[:1].upper()}{text[1:]}."

    def part(self, quote: Quote = plain) -> str:
        """Return which part was to be verified; nothing when it was everything."""
        waves, agents = [str(wave) for wave in self.only_waves], self.only_agents
        parts = [f"wave{'s' * (len(waves) > 1)} {listed(waves, str)}"] if waves else []
        return " and ".join([*parts, *([f"agent{'s' * (len(agents) > 1)} {listed(agents, quote)}"] if agents else [])])

    def flaws(self, quote: Quote = plain) -> Iterator[str]:
        """Return everything that keeps the verification from being a success."""
        yield from run_flaws(self.run, quote)
        yield from agent_flaws(self.agents, quote)
        if gone := [one.agent for one in self.absent if one.wave not in self.not_started]:
            yield f"no report of {listed(gone, quote)}"
        yield from wave_flaws(self.waves, quote)
        if waves := [str(wave) for wave in self.not_started]:
            done = "started" if self.run.state is RunState.COMPLETED else "done"
            yield f"wave{'s' * (len(waves) > 1)} {listed(waves, str)} {'were' if len(waves) > 1 else 'was'} not {done}"
        yield from self._coverage_flaws()

    def _coverage_flaws(self) -> Iterator[str]:
        """Return what was not verified: where nothing was checked nothing has passed."""
        if not self.waves and not self.not_started:
            yield "there was no agent to run"
        if not self.files:
            yield "there was no file to verify"
        elif self.waves and not any(looked(agent) for agent in self.agents):
            yield "no file was verified"
        elif self.waves and self.unseen:
            yield f"{len(self.unseen):,} of {count(len(self.files), 'file')} not verified"

    def _success(self) -> str:
        passed = sum(agent.ending is Ending.PASSED for agent in self.agents)
        idle = len(self.agents) - passed
        whom = "the only agent" if passed == 1 else f"all {count(passed, 'agent')}"
        nothing = f", {idle:,} had no file to verify" if idle else ""
        found = f" with {count(self.counts.total, 'finding')}" if self.counts.total else ""
        return (
            f"{whom} in {count(len(self.waves), 'wave')} over {count(len(self.files), 'file')} passed{found}{nothing}"
        )

    def notes(self, quote: Quote = plain) -> Iterator[str]:
        """Return what a reader must know besides the verdict."""
        if self.redactions:
            holders = sum(bool(file.redacted) for file in self.files)
            yield f"Secrets removed before anything was sent: {self.redactions:,} in {count(holders, 'file')}."
        for file in [file for file in self.files if file.note][:NAMED]:
            yield f"{quote(file.path)}: {quote(file.note)}."
        kept, made = sum(map(_kept, self.agents)), sum(agent.counts.total for agent in self.agents)
        if kept < made:
            yield f"Only {kept:,} of {made:,} findings are kept; all of them are counted."
        if self.ok and not self.partial and (kept_back := self.markers - len(self.cleared)):
            are = "marker is" if kept_back == 1 else "markers are"
            yield f"{kept_back:,} {are} kept: the marked files were changed, or not all of them were verified."
        cost = self.run.cost
        if cost.uncertain:
            yield f"{show_usd(cost.uncertain)} more may have been charged: the outcome of some calls is unknown."
        if cost.parked:
            yield f"Calls that still wait in batches: {cost.parked:,}. The cost is not final."


def _kept(agent: AgentReport) -> int:
    """Return how many of an agent's counted findings the report has; of a checker the rejected ones count too."""
    return len(agent.findings) + (len(agent.rejected) if agent.kind is Kind.COMMAND else 0)


async def summarize(waves: WavesRun) -> VerifyReport:
    """Sum up a verification."""
    cleaner = ReportCleaner()
    reports = cleaner.value(waves.waves, tuple[WaveReport, ...])
    agents = [agent for wave in reports for agent in wave.agents]
    merged = merge([(agent.agent, agent.findings) for agent in agents])
    done = {(agent.wave, agent.agent) for wave in waves.waves for agent in wave.agents}
    absent = [one for one in planned(waves.spec) if (one.wave, one.name) not in done]
    return VerifyReport(
        run=cleaner.value(await run_facts(waves), Facts),
        waves=reports,
        not_started=tuple(wave for wave in planned_waves(waves.spec) if wave not in {one.wave for one in reports}),
        absent=tuple(Absent(agent=cleaner.text(one.name), wave=one.wave) for one in absent),
        only_waves=waves.spec.waves,
        only_agents=cleaner.value(waves.spec.agents, tuple[str, ...]),
        files=cleaner.value(waves.snapshot.files, tuple[FileInfo, ...]),
        unseen=cleaner.value(tuple(_unseen(waves)), tuple[str, ...]),
        left_out=cleaner.value(waves.snapshot.left_out, tuple[LeftOut, ...]),
        merged=merged,
        counts=_counts(merged, agents),
        rejected=tuple(_rejected(reports)),
        cleared=cleaner.value(await waves.cleared(), tuple[str, ...]),
        markers=len(waves.spec.markers),
        batches={
            one.wave: tuple(await waves.store.batches.shares(waves.run.id, wave_prefix(one.wave))) for one in reports
        },
    )


def _unseen(waves: WavesRun) -> Iterator[str]:
    """Yield the files at which nobody has looked who has a report that counts."""
    names = {(agent.wave, agent.agent) for wave in waves.waves for agent in wave.agents if looked(agent)}
    lookers = [one for one in planned(waves.spec) if (one.wave, one.name) in names]
    for file in waves.snapshot.files:
        if not any(one.looks_at(file.path) for one in lookers):
            yield file.path


def _rejected(waves: Sequence[WaveReport]) -> Iterator[RejectedBy]:
    for wave in waves:
        for agent in wave.agents:
            yield from (RejectedBy(agent=agent.agent, wave=wave.wave, rejected=one) for one in agent.rejected)


def _counts(merged: Sequence[Merged], agents: Sequence[AgentReport]) -> Counts:
    """Count merged findings, and those that are so many that they are not kept."""
    found = count_findings((one.finding for one in merged), sum(agent.counts.rejected for agent in agents))
    for agent in agents:
        found = add(found, less(agent.counts, count_findings(agent.findings, agent.counts.rejected)))
    return found
