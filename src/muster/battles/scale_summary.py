"""A scale test summed up: counts, rates, turns, times and costs, recounted from the stored conversations."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import fmean, median

from muster.battles.kind import SCALE
from muster.battles.revision import PromptRevision
from muster.battles.scale import PLAYED, PLAYED_EVENT, ScaleOutcome
from muster.battles.scale_spec import PlannedBattle, ScaleSpec, known_scale, plan_battles, plan_revised
from muster.battles.summary import (
    BattleReport,
    BattleUsage,
    events_until,
    summarize_battle,
    unended,
)
from muster.battles.values import PLAYED as OWN_ENDS
from muster.battles.values import BattleEnding, failed_verdict
from muster.domain.entry import Event
from muster.domain.errors import state_verb
from muster.domain.ids import RunId
from muster.domain.kind import require_kind
from muster.domain.money import Microdollars
from muster.domain.run import TERMINAL, Run, RunState
from muster.statistics.intervals import Interval, percentile, wilson
from muster.statistics.paired_tests import mcnemar_exact
from muster.store.base import Store
from muster.text import typed
from muster.text.scores import reaches
from muster.text.words import count, percent

ALPHA = 0.05
_MIN_P = 0.001  # that is written as a number
QUANTILES = (50, 90, 99)
ENDING_NAMES: Mapping[BattleEnding, str] = {  # as counts name them
    BattleEnding.GOAL: "goal",
    BattleEnding.LIMIT: "limit",
    BattleEnding.ERROR: "error",
    BattleEnding.MANUAL: "canceled",
    BattleEnding.TIMEOUT: "timeout",
    BattleEnding.BUDGET: "budget",
}
_OTHERWISE = {  # what is said of battles that did not reach the goal
    "limit": "reached the turn limit",
    "unjudged": "judged by nobody",
    "error": "failed",
    "canceled": "canceled",
    "timeout": "ran out of time",
    "budget": "ran out of money",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledBattle:
    """One battle of a scale test, and what became of it; without a report it has not begun."""

    plan: PlannedBattle
    report: BattleReport | None = None

    @property
    def ending(self) -> BattleEnding | None:
        """Return why it ended; None when it has not."""
        return None if self.report is None else self.report.ending

    @property
    def unjudged(self) -> str:
        """Return why nobody could say whether its goal was reached, though it was played to its end; else nothing."""
        report = self.report
        if report is None or report.ending is not BattleEnding.LIMIT or not report.spec.decides:
            return ""
        return failed_verdict(report.decisions)

    @property
    def ended_as(self) -> str:
        """Return how it ended in a word or two."""
        return f"{self.ending or 'not over'}" + (", unjudged" if self.unjudged else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFigures:
    """How many replies of the agent under test the battles had."""

    mean: float
    median: float
    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectRate:
    """How often one agent with one prompt reached its goals."""

    agent: str
    prompt: str
    reached: int
    battles: int
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedComparison:
    """The revised prompt against the one before, on the same goals."""

    pairs: int  # those that were played to their ends, with both prompts
    before: int  # goals reached with the prompt as it was
    after: int
    gained: int  # reached only with the revised prompt
    lost: int  # reached only before
    p: float
    left_out: int = 0  # pairs with a battle that says nothing of a prompt: not played to its end, or judged by nobody
    unjudged: int = 0  # those of them that were both played to their ends

    @property
    def p_words(self) -> str:
        """Return the p of the test; what would be rounded to nothing is written as a bound."""
        return f"p = {self.p:.3f}" if self.p >= _MIN_P else f"p < {_MIN_P}"

    @property
    def word(self) -> str:
        """Return what is shown: better, worse, or nothing."""
        if not self.pairs:
            return "no pair can be compared"
        if self.p > ALPHA or self.gained == self.lost:
            return "no difference is shown"
        return "better" if self.gained > self.lost else "worse"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleReport:
    """Everything that is known of a scale test."""

    run: Run
    spec: ScaleSpec
    battles: tuple[ScaledBattle, ...]
    revised: tuple[ScaledBattle, ...] = ()
    revision: PromptRevision | None = None

    @property
    def reports(self) -> tuple[BattleReport, ...]:
        """Return the battles that have begun, without those of a revised prompt."""
        return tuple(one.report for one in self.battles if one.report is not None)

    @property
    def ended(self) -> tuple[BattleReport, ...]:
        """Return the battles that are over."""
        return tuple(one for one in self.reports if one.ending is not None)

    @property
    def counts(self) -> Mapping[str, int]:
        """Return how many battles ended in each way."""
        found = Counter(ENDING_NAMES[one.ending] for one in self.ended if one.ending is not None)
        return {name: found[name] for name in ENDING_NAMES.values()}

    @property
    def unjudged(self) -> int:
        """Return how many battles came to their limit while nobody could say whether the goal was reached."""
        return sum(bool(one.unjudged) for one in self.battles)

    @property
    def unjudged_reason(self) -> str:
        """Return why the first battle was judged by nobody, with whichever prompt; empty when there is none."""
        return next((one.unjudged for one in (*self.battles, *self.revised) if one.unjudged), "")

    @property
    def intervals(self) -> Mapping[str, Interval]:
        """Return the Wilson interval of the share of each ending among the battles that are over."""
        return {name: wilson(number, len(self.ended)) for name, number in self.counts.items()}

    @property
    def goal_rate(self) -> float | None:
        """Return the share of battles that reached their goal; None when none is over."""
        return self.counts["goal"] / len(self.ended) if self.ended else None

    @property
    def turns(self) -> TurnFigures | None:
        """Return how long the battles were that are over."""
        found = [one.turns for one in self.ended]
        if not found:
            return None
        return TurnFigures(mean=fmean(found), median=median(found), least=min(found), most=max(found))

    @property
    def latency(self) -> Mapping[int, float | None]:
        """Return percentiles of the time of a reply of the agents under test, in milliseconds."""
        times = [one.latency_ms for report in self.reports for one in report.replies]
        return {q: percentile(times, q) for q in QUANTILES}

    @property
    def usage(self) -> BattleUsage:
        """Return the tokens of all conversations, also of those with a revised prompt."""
        everything = (one.report.usage for one in (*self.battles, *self.revised) if one.report is not None)
        return reduce(BattleUsage.plus, everything, BattleUsage())

    @property
    def cost(self) -> Microdollars:
        """Return what was booked for it, in all lanes."""
        return self.run.spent.settled

    @property
    def rates(self) -> tuple[SubjectRate, ...]:
        """Return how often each agent with each prompt reached its goals."""
        return tuple(_rate(agent, prompt.name, self.battles) for agent, prompt in self.spec.subjects)

    @property
    def comparison(self) -> PairedComparison | None:
        """Return the revised prompt against the one before; None when it was not played."""
        before = {one.plan.number: one for one in self.battles}
        pairs = [(before[one.plan.number], one) for one in self.revised]
        over = [(_judged(was), _judged(now)) for was, now in pairs if was.ending and now.ending]
        return compared(over) if over else None

    @property
    def samples(self) -> tuple[BattleReport, ...]:
        """Return one conversation of each ending, the first that ended so."""
        found: dict[BattleEnding, BattleReport] = {}
        for one in self.ended:
            if one.ending is not None:
                found.setdefault(one.ending, one)
        return tuple(found.values())

    @property
    def is_played(self) -> bool:
        """Return whether any battle came to an end by its own rules and was judged; others measure nothing."""
        return any(_judged(one) in OWN_ENDS for one in self.battles)

    @property
    def ok(self) -> bool:
        """Return whether it is a success; nothing played is none.

        With a gate the share of goals decides, if any battle was played to its end and judged. Without one that holds
        of every battle.
        """
        if self.run.state is not RunState.COMPLETED or len(self.ended) < len(self.battles) or not self.ended:
            return False
        if self.spec.min_goal_rate is not None:
            return self.is_played and reaches(self.goal_rate or 0.0, self.spec.min_goal_rate)
        return all(_judged(one) in OWN_ENDS for one in self.battles)

    @property
    def verdict(self) -> str:
        """Return on one line what it came to."""
        ended, total = len(self.ended), len(self.battles)
        if self.run.state not in TERMINAL:
            return f"the scale test {state_verb(self.run.state)}: {ended} of {total} battles are over"
        if not ended:
            return "no battle was played"
        low, high = self.intervals["goal"].low, self.intervals["goal"].high
        words = f"{self.counts['goal']} of {count(ended, 'battle')} reached the goal"
        words += f" ({percent(self.goal_rate)}, 95% interval {percent(low)} to {percent(high)})"
        numbers = {**self.counts, "limit": self.counts["limit"] - self.unjudged, "unjudged": self.unjudged}
        others = [f"{numbers[name]} {what}" for name, what in _OTHERWISE.items() if numbers[name]]
        words += f"; {', '.join(others)}" if others else ""
        if ended < total:
            words += f"; {total - ended} not played"
        judged = " and judged" if self.unjudged else ""
        words += "" if self.is_played else f"; no battle was played to its end{judged}"
        if self.spec.min_goal_rate is not None:
            words += f"; {percent(self.spec.min_goal_rate)} {'is met' if self.ok else 'is asked for'}"
        return words


def _rate(agent: str, prompt: str, battles: Iterable[ScaledBattle]) -> SubjectRate:
    own = [one for one in battles if (one.plan.agent, one.plan.prompt) == (agent, prompt) and one.ending is not None]
    reached = sum(one.ending is BattleEnding.GOAL for one in own)
    return SubjectRate(
        agent=agent, prompt=prompt, reached=reached, battles=len(own), interval=wilson(reached, len(own))
    )


def _judged(battle: ScaledBattle) -> BattleEnding | None:
    """Return how a battle ended; None where nobody judged it."""
    return None if battle.unjudged else battle.ending


def compared(pairs: Sequence[tuple[BattleEnding | None, BattleEnding | None]]) -> PairedComparison:
    """Compare pairs of battles by their endings, None of those that nobody judged.

    Where one was not judged, or not played to its end, nothing can be compared.
    """
    played = [(was, now) for was, now in pairs if was in OWN_ENDS and now in OWN_ENDS]
    reached = [(was is BattleEnding.GOAL, now is BattleEnding.GOAL) for was, now in played]
    gained = sum(now and not was for was, now in reached)
    lost = sum(was and not now for was, now in reached)
    return PairedComparison(
        pairs=len(played),
        before=sum(was for was, _ in reached),
        after=sum(now for _, now in reached),
        gained=gained,
        lost=lost,
        p=mcnemar_exact(gained, lost),
        left_out=len(pairs) - len(played),
        unjudged=sum(None in pair and OWN_ENDS.issuperset({*pair} - {None}) for pair in pairs),
    )


async def summarize_scale(store: Store, run: Run) -> ScaleReport:
    """Sum a scale test up; raises BadArgument for a run of another workload."""
    require_kind(run, SCALE)
    spec = known_scale(run.spec)
    outcome = typed.convert(run.result, ScaleOutcome) if run.state is RunState.COMPLETED else None
    revision = None if outcome is None else outcome.revision
    again: tuple[PlannedBattle, ...] = ()
    if spec.try_revised and revision is not None and revision.prompt:
        again = plan_revised(spec, revision.prompt)
    return ScaleReport(
        run=run,
        spec=spec,
        battles=tuple([await _scaled(store, run, one) for one in plan_battles(spec)]),
        revised=tuple([await _scaled(store, run, one) for one in again]),
        revision=revision,
    )


async def _scaled(store: Store, run: Run, plan: PlannedBattle) -> ScaledBattle:
    """Find the conversation of a battle: the one that was noted at its end, else the one that is being played."""
    entry = await store.journal.find(run.id, f"{plan.key}{PLAYED}")
    noted = entry.value if entry is not None and isinstance(entry.value, Mapping) else None
    child = (
        await store.runs.get(RunId(str(noted["run"]))) if noted else await store.journal.newest_child(run.id, plan.key)
    )
    return ScaledBattle(plan=plan, report=None if child is None else await summarize_battle(store, child))


async def scale_at(store: Store, run: Run, event: Event, state: RunState) -> ScaleReport:
    """Sum a scale test up as it stood after one of its events: which battles were over, its own events tell."""
    found = await summarize_scale(store, run)
    if state in TERMINAL:
        return found
    over = {one.data["number"] async for one in events_until(store, run.id, event.seq) if one.kind == PLAYED_EVENT}
    battles = tuple(one if one.plan.number in over else _unended(one, event.at) for one in found.battles)
    return replace(found, run=unended(run, state), battles=battles)


def _unended(battle: ScaledBattle, at: float) -> ScaledBattle:
    """Return a battle as it was at a time before its end."""
    report = battle.report
    if report is None or report.run.created_at > at:
        return replace(battle, report=None)
    said = tuple(one for one in report.messages if one.created_at <= at)
    return replace(battle, report=replace(report, run=unended(report.run, RunState.RUNNING), messages=said))
