"""A council summed up from the store, whatever state its run is in: rounds, costs by agent, position bias, verdict."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from muster.councils.kind import COUNCIL
from muster.councils.phase import (
    BENCHED_EVENT,
    PhaseRecord,
    Said,
    complete_round,
    counts,
    phase_key,
    read_record,
    record_key,
)
from muster.councils.retelling import said_in
from muster.councils.rules.anonymity import PositionBias, labels_for, position_biases, position_effects, without_names
from muster.councils.rules.outcome import CouncilOutcome, CouncilResult, CouncilRound
from muster.councils.rules.stopping import StopReason, conviction_of
from muster.councils.rules.values import AbstentionCause, CouncilAbstention, CouncilPhase, Evaluation, Proposal
from muster.councils.spec import REPAIR, CouncilSpec, read_spec
from muster.councils.workload import INJECTED, SEED
from muster.domain.call import Reply
from muster.domain.entry import EntryKind, EntryState, Event
from muster.domain.errors import state_verb
from muster.domain.kind import require_kind
from muster.domain.money import NOTHING, Microdollars
from muster.domain.rules import DefaultRules, rules_of
from muster.domain.run import TERMINAL, Run, RunState
from muster.store.base import Store
from muster.text import typed
from muster.text.words import count

_PAGE = 1000  # events that are read at once


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCost:
    """What one agent cost in all its calls."""

    agent: str
    calls: int = 0  # those that failed too
    tokens: int = 0  # that it wrote
    cost: Microdollars = NOTHING  # of all attempts

    def plus(self, tokens: int, cost: Microdollars) -> "AgentCost":
        """Return the same with one more call."""
        return AgentCost(
            agent=self.agent,
            calls=self.calls + 1,
            tokens=self.tokens + tokens,
            cost=Microdollars(self.cost + cost),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What a person told all members, and the phase from which on they knew it."""

    round_number: int
    phase: CouncilPhase
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UncountedPhase:
    """What was said in a phase of a round that is not complete: it may be paid for, and decides nothing."""

    round_number: int
    record: PhaseRecord
    is_over: bool  # else it is being held, or ended without a quorum
    is_final: bool  # the council has ended, so the round stays as it is

    @property
    def title(self) -> str:
        """Return on one line which phase it is."""
        place = f"Round {self.round_number}, {self.record.phase}"
        if not self.is_final:
            return f"{place}: the round is not complete yet"
        over = "" if self.is_over else ", and the phase is not complete"
        return f"{place}: the round is not complete and does not count{over}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilReport:
    """All that is known of a council."""

    run: Run
    spec: CouncilSpec
    rounds: tuple[CouncilRound, ...]  # those that are complete
    open_round: tuple[UncountedPhase, ...]  # the phases of a round that is not complete
    outcome: CouncilOutcome | None  # None: it has not ended, or it failed
    costs: tuple[AgentCost, ...]
    biases: tuple[PositionBias, ...]
    injections: tuple[Injection, ...] = ()
    open_calls: tuple[str, ...] = ()  # keys of calls that were asked and not answered yet

    @property
    def result(self) -> CouncilResult | None:
        """What it came to."""
        return None if self.outcome is None else self.outcome.result

    @property
    def winner(self) -> Proposal | None:
        """The proposal that won, or is ahead so far."""
        if self.result is not None:
            return self.result.winner
        deciding = next((one for one in reversed(self.rounds) if one.score.winner is not None), None)
        return None if deciding is None else deciding.proposal_of(deciding.score.winner or "")

    @property
    def convictions(self) -> tuple[float, ...]:
        """The conviction of each round."""
        return tuple(conviction_of(one.score) for one in self.rounds)

    def as_read(self, proposal: Proposal) -> str:
        """Return a proposal as the other members read it, without the names of agents."""
        return without_names(proposal.text, [member.name for member in self.spec.members])

    @property
    def ok(self) -> bool:
        """Return whether there is an answer."""
        return self.result is not None and self.result.winner is not None

    @property
    def word(self) -> str:
        """Return in one or two words what it came to."""
        if self.result is None or self.result.winner is None:
            return "Not decided"
        convinced = self.result.stop.reason is StopReason.CONVINCED and not self.result.overturned
        return "Convinced" if convinced else "Decided without conviction"

    @property
    def verdict(self) -> str:
        """Return on one line what it came to."""
        after = f"after {count(len(self.rounds), 'round')}"
        if self.result is None:
            why = f": {self.run.error['message']}" if self.run.error and "message" in self.run.error else ""
            return f"the council {state_verb(self.run.state)} {after}{why}"
        stop = self.result.stop
        won = "no proposal won" if self.winner is None else f"the proposal of {self.winner.agent} won"
        notes = "; ".join(filter(None, (self.result.undecided, self.result.overturned, self.result.decided_by)))
        won += f" ({notes})" if notes else ""
        return f"{won} {after}; {REASONS[stop.reason] if stop.reason else 'it goes on'}: {stop.detail}"


REASONS = {
    StopReason.STOPPED: "a person stopped it",
    StopReason.CONVINCED: "the council is convinced",
    StopReason.ROUNDS: "its rounds are used up",
    StopReason.MEMBERS: "too few members are left",
    StopReason.BUDGET: "its money is used up",
    StopReason.TIME: "its time is used up",
}


async def summarize_council(store: Store, run: Run) -> CouncilReport:
    """Sum a council up; raises BadArgument for a run of another workload."""
    require_kind(run, COUNCIL)
    spec, outcome = read_spec(run.spec), _outcome_of(run)
    seed = await _seed(store, run)
    if outcome is None:
        rounds = tuple(_rounds([one async for one in _records(store, run, spec)], spec, seed, rules_of(run.rules)))
    else:
        rounds = outcome.result.rounds
    return CouncilReport(
        run=run,
        spec=spec,
        rounds=rounds,
        open_round=tuple([one async for one in _open_phases(store, run, spec, seed, rounds)]),
        outcome=outcome,
        costs=tuple(await _costs(store, run, spec)),
        biases=tuple(biases_of(rounds, spec, seed)),
        injections=tuple([one async for one in _injections(store, run)]),
        open_calls=tuple([one async for one in _open_calls(store, run)]),
    )


def _outcome_of(run: Run) -> CouncilOutcome | None:
    return typed.convert(run.result, CouncilOutcome) if run.state is RunState.COMPLETED else None


async def _seed(store: Store, run: Run) -> int:
    entry = await store.journal.find(run.id, SEED)
    return 0 if entry is None or entry.value is None else int(entry.value)


async def _records(store: Store, run: Run, spec: CouncilSpec) -> AsyncIterator[PhaseRecord]:
    """Yield the phases that are over, in their order."""
    for number in range(1, spec.rounds + 1):
        for phase in CouncilPhase:
            entry = await store.journal.find(run.id, record_key(number, phase))
            if entry is None or entry.value is None:
                return
            yield read_record(entry.value)


def _rounds(
    records: Sequence[PhaseRecord], spec: CouncilSpec, seed: int, rules: DefaultRules
) -> Iterator[CouncilRound]:
    decided = False
    for number, (proposed, evaluated) in enumerate(zip(records[::2], records[1::2], strict=False), 1):
        one = complete_round(number, proposed, evaluated, spec, seed, rules)
        if not counts(one, spec, stopped=evaluated.stopped, decided=decided):
            return
        decided = decided or one.score.winner is not None
        yield one


async def _open_phases(
    store: Store, run: Run, spec: CouncilSpec, seed: int, past: Sequence[CouncilRound]
) -> AsyncIterator[UncountedPhase]:
    """Yield the phases of the round after the complete ones; of one without a record, what its calls answered."""
    number, proposals = len(past) + 1, tuple[Proposal, ...]()
    for phase in CouncilPhase if number <= spec.rounds else ():
        entry = await store.journal.find(run.id, record_key(number, phase))
        is_over = entry is not None and entry.value is not None
        if entry is not None and entry.value is not None:
            record = read_record(entry.value)
        else:
            replies = await _replies(store, run, spec, phase_key(number, phase))
            benched = [one async for one in _benched(store, run, number, phase)]
            record = _unfinished(spec, phase, said_in(spec, seed, past, replies, phase, proposals), benched)
        proposals = record.proposals
        if is_over or record.proposals or record.evaluations or record.abstentions:
            is_final = run.state in TERMINAL
            yield UncountedPhase(round_number=number, record=record, is_over=is_over, is_final=is_final)


async def _replies(store: Store, run: Run, spec: CouncilSpec, below: str) -> Mapping[str, Reply]:
    found = {}
    for key in (f"{below}/{member.name}{more}" for member in spec.members for more in ("", REPAIR)):
        entry = await store.journal.find(run.id, key)
        if entry is not None and entry.reply is not None:
            found[key] = entry.reply
    return found


async def _benched(store: Store, run: Run, number: int, phase: CouncilPhase) -> AsyncIterator[CouncilAbstention]:
    async for event in _events(store, run, BENCHED_EVENT):
        data: Mapping[str, Any] = event.data
        if data["round"] == number and data["phase"] == phase:
            cause, reason = AbstentionCause(data["cause"]), str(data["reason"])
            yield CouncilAbstention(agent=str(data["agent"]), phase=phase, cause=cause, reason=reason)


def _unfinished(
    spec: CouncilSpec, phase: CouncilPhase, said: Sequence[Said], benched: Sequence[CouncilAbstention]
) -> PhaseRecord:
    """Return what is known of a phase without a record; who was benched and then answered has answered."""
    heard = {one.agent for one in said}
    skipped = [one for one in said if isinstance(one, CouncilAbstention)]
    places = {member.name: place for place, member in enumerate(spec.members)}
    absent = [*skipped, *(one for one in benched if one.agent not in heard)]
    return PhaseRecord(
        phase=phase,
        proposals=tuple(one for one in said if isinstance(one, Proposal)),
        evaluations=tuple(one for one in said if isinstance(one, Evaluation)),
        abstentions=tuple(sorted(absent, key=lambda one: places[one.agent])),  # as in a phase that is over
    )


async def _injections(store: Store, run: Run) -> AsyncIterator[Injection]:
    async for event in _events(store, run, INJECTED):
        data: Mapping[str, Any] = event.data
        number, phase = data.get("round", 1), data.get("phase", CouncilPhase.PROPOSE)
        yield Injection(round_number=number, phase=CouncilPhase(phase), text=data["text"])


async def _events(store: Store, run: Run, kind: str) -> AsyncIterator[Event]:
    seen = 0
    while events := await store.events.read(run.id, seen, _PAGE):
        seen = events[-1].seq
        for event in events:
            if event.kind == kind:
                yield event


async def _open_calls(store: Store, run: Run) -> AsyncIterator[str]:
    if run.state not in TERMINAL:
        async for entry in store.archive.entries(run.id):
            if entry.kind is EntryKind.CALL and entry.state is EntryState.OPEN:
                yield entry.key


async def _costs(store: Store, run: Run, spec: CouncilSpec) -> Sequence[AgentCost]:
    """Return what each agent cost, in the order of the council: all its attempts, and replies reused."""
    paid: dict[str, int] = {}
    for attempt in await store.archive.attempts(run.id):
        paid[attempt.key] = paid.get(attempt.key, 0) + attempt.cost
    found = {name: AgentCost(agent=name) for name in spec.agents}
    async for entry in store.archive.entries(run.id):
        if entry.kind is EntryKind.CALL and entry.agent:
            known, reply = found.get(entry.agent, AgentCost(agent=entry.agent)), entry.reply
            cost = paid.get(entry.key, NOTHING if reply is None else reply.cost)
            found[entry.agent] = known.plus(0 if reply is None else reply.usage.output, Microdollars(cost))
    return list(found.values())


def biases_of(rounds: Sequence[CouncilRound], spec: CouncilSpec, seed: int) -> Sequence[PositionBias]:
    """Return how far the place of a proposal decided; the orders are drawn again from the seed."""
    effects = []
    for one in rounds:
        authors = [proposal.agent for proposal in one.proposals]
        labels = [
            labels_for(member.name, authors, round_number=one.number, phase=CouncilPhase.EVALUATE, seed=seed)
            for member in spec.members
        ]
        effects += position_effects(labels, one.score)
    return position_biases(effects)
