"""A council told again from its recorded replies: proposals and evaluations are read and scored anew. Pure; no call.

What a person told the members stands in their requests alone, so that it is taken from there.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muster.councils.deadlines import quorum_of
from muster.councils.endings import BY_RULE, CouncilEnd, HeardRound
from muster.councils.members.answers import UnreadableAnswer, read_evaluation, read_proposal, settled
from muster.councils.members.prompts import repair_of, request_of
from muster.councils.members.turns import Council, CouncilTurn, evaluate_turn, propose_turn
from muster.councils.phase import Said, counts, phase_key
from muster.councils.rules.outcome import CouncilOutcome, CouncilRound
from muster.councils.rules.scoring import RoundScore, score_round
from muster.councils.rules.stopping import StopDecision, StopReason
from muster.councils.rules.values import (
    AbstentionCause,
    CouncilAbstention,
    CouncilMember,
    CouncilPhase,
    Evaluation,
    Proposal,
)
from muster.councils.spec import REPAIR, CouncilSpec, read_spec
from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.domain.rules import CURRENT, DefaultRules
from muster.judging.asked import RecordedCall, request_flaw
from muster.text import typed
from muster.text.secrets.redaction import MARK

Calls = Mapping[str, RecordedCall]  # by key


def retell(spec: Json, outcome: Json, calls: Calls, rules: DefaultRules, has_budget: bool | None = None) -> Any:
    """Return the outcome of a council as its calls bear it out.

    Raises BadArgument for a spec or an outcome that cannot be read, for rounds and an end that the replies do not bear
    out, for a complete round that the outcome does not tell, and for calls that nobody has made in these rounds, or
    that ask something else. What clocks, money and people decided is believed where the spec, or a budget above it,
    lets them decide; whether there is one is None where nobody knows.
    """
    wanted = read_spec(spec)
    try:
        told = typed.convert(outcome, CouncilOutcome)
    except typed.ValidationError as error:
        raise BadArgument(f"not the outcome of a council: {error}") from None
    seed = told.seed if wanted.seed is None else wanted.seed
    retelling = _Retelling(spec=wanted, seed=seed, calls=calls, rules=rules, checks=True)
    rounds = retelling.rounds(told.result.rounds, told.result.stop)
    left = retelling.open_round(told.result.stop)
    ended = CouncilEnd(
        spec=wanted,
        rounds=rounds,
        stop=told.result.stop,
        open_round=told.result.open_round,
        spent=told.spent,
        has_budget=has_budget,
        heard=left,
    )
    flaws = (*retelling.flaws, *ended.flaws(rules), *retelling.strays)
    if flaws:
        raise BadArgument("; ".join(flaws[:_MAX_FLAWS]))
    result = replace(told.result, question=wanted.question, members=wanted.members, rounds=rounds)
    return typed.to_builtins(replace(told, result=result))


def said_in(
    spec: CouncilSpec,
    seed: int,
    past: Sequence[CouncilRound],
    replies: Mapping[str, Reply],
    phase: CouncilPhase,
    proposals: tuple[Proposal, ...] = (),
) -> list[Said]:
    """Return what members said in a phase of the round after the past ones, as far as its replies can be read."""
    calls = {key: RecordedCall(agent="", request=None, reply=reply) for key, reply in replies.items()}
    heard = _Retelling(spec=spec, seed=seed, calls=calls, past=list(past)).all_said(phase, proposals)
    return [one for one in heard.values() if one is not None and not isinstance(one, UnreadableAnswer)]


Heard = Mapping[str, Said | UnreadableAnswer | None]  # by member; None: there is no reply


@dataclass(slots=True, kw_only=True)
class _Retelling:
    spec: CouncilSpec
    seed: int
    calls: Calls
    rules: DefaultRules = CURRENT
    checks: bool = False  # requests too
    past: list[CouncilRound] = field(default_factory=list)
    flaws: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)  # keys of calls that a council makes
    unrepaired: set[str] = field(default_factory=set)  # those of them whose answer had to be repaired, and was not
    injections: tuple[str, ...] = ()

    def rounds(self, recorded: Sequence[CouncilRound], stop: StopDecision) -> tuple[CouncilRound, ...]:
        """Return all rounds, each read again after those before it."""
        for one in recorded:
            number, is_stopped = len(self.past) + 1, one is recorded[-1] and stop.reason is StopReason.STOPPED
            proposed = self.all_said(CouncilPhase.PROPOSE, absent=_absent(one, CouncilPhase.PROPOSE))
            proposals = tuple(said for said in proposed.values() if isinstance(said, Proposal))
            evaluated = self.all_said(CouncilPhase.EVALUATE, proposals, _absent(one, CouncilPhase.EVALUATE))
            evaluations = tuple(said for said in evaluated.values() if isinstance(said, Evaluation))
            score = self._score(proposals, evaluations, one.score, is_stopped=is_stopped)
            again = replace(one, number=number, proposals=proposals, evaluations=evaluations, score=score)
            self.flaws += [f"round {number} is not what its replies say: {what}" for what in _unlike(one, again)]
            self.flaws += [*_absence_flaws(one, CouncilPhase.PROPOSE, proposed)]
            self.flaws += [*_absence_flaws(one, CouncilPhase.EVALUATE, evaluated)]
            self.past.append(again)
        return tuple(self.past)

    def _score(
        self,
        proposals: Sequence[Proposal],
        evaluations: Sequence[Evaluation],
        recorded: RoundScore | None = None,
        *,
        is_stopped: bool,
    ) -> RoundScore:
        """Return the score of a round; only in one that a person stopped may fewer evaluations than a quorum decide."""
        needed = quorum_of(len(self.spec.members), self.spec.quorum) if self.rules.strict_councils else 0
        made = [
            score_round(
                proposals,
                evaluations,
                seed=self.seed,
                needed=needed,
                lenient=lenient,
                orders=self.rules.orders_councils,
            )
            for lenient in ((False, True) if is_stopped else (False,))
        ]
        return next((one for one in made if one == recorded), made[0])

    def open_round(self, stop: StopDecision) -> HeardRound | None:
        """Return what is heard of a round after the complete ones; None where a rule ended the council before it.

        Notes one that is complete: the outcome does not tell it.
        """
        if stop.reason in BY_RULE:
            return None
        number, members = len(self.past) + 1, len(self.spec.members)
        proposed = self.all_said(CouncilPhase.PROPOSE)
        proposals = tuple(said for said in proposed.values() if isinstance(said, Proposal))
        evaluated = self.all_said(CouncilPhase.EVALUATE, proposals)
        found = HeardRound(
            is_begun=any(key in self.calls for key in self._keys(number)),
            proposals=len(proposals),
            proposed=self._answers(CouncilPhase.PROPOSE, proposed),
            evaluated=self._answers(CouncilPhase.EVALUATE, evaluated),
        )
        if found.phase_flaw(self.spec):
            return found
        evaluations = tuple(said for said in evaluated.values() if isinstance(said, Evaluation))
        score = self._score(proposals, evaluations, is_stopped=False)
        one = CouncilRound(number=number, proposals=proposals, evaluations=evaluations, abstentions=(), score=score)
        decided = any(before.score.winner is not None for before in self.past)
        is_cut = stop.reason is StopReason.STOPPED and found.evaluated[-1] < members
        if counts(one, self.spec, stopped=is_cut, decided=decided):
            self.flaws.append(f"round {number} is complete by its replies, and the outcome does not tell it")
        return found

    def _answers(self, phase: CouncilPhase, heard: Heard) -> tuple[int, ...]:
        """Return how many members may have answered in a phase of the next round, from the least to the most.

        Whose repair failed has no part, whatever may be read of the first answer; no reply shows whether it failed.
        """
        below = phase_key(len(self.past) + 1, phase)
        answered = [name for name, said in heard.items() if said is not None and not isinstance(said, UnreadableAnswer)]
        most, unsure = len(answered), sum(f"{below}/{name}" in self.unrepaired for name in answered)
        return tuple(range(most - unsure, most + 1))

    def _keys(self, number: int) -> Iterator[str]:
        for phase in CouncilPhase:
            yield from (f"{phase_key(number, phase)}/{member.name}" for member in self.spec.members)

    @property
    def strays(self) -> list[str]:
        """The calls that no member makes in the rounds that were held."""
        return [f"{key} belongs to no recorded round" for key in sorted(self.calls) if key not in self.known]

    def all_said(
        self,
        phase: CouncilPhase,
        proposals: tuple[Proposal, ...] = (),
        absent: Mapping[str, CouncilAbstention] | None = None,
    ) -> Heard:
        """Return what each member said in a phase of the next round, repaired if it had to be."""
        self._take_injections(phase)
        return {
            member.name: self._said(member, phase, proposals, member.name in (absent or {}))
            for member in self.spec.members
        }

    def _said(
        self, member: CouncilMember, phase: CouncilPhase, proposals: tuple[Proposal, ...], is_absent: bool
    ) -> Said | UnreadableAnswer | None:
        """Return what a member said, repaired if it had to be; None without a reply.

        Without a repaired reply the member may have been absent since its repair failed; the record knows.
        """
        key, turn = f"{phase_key(len(self.past) + 1, phase)}/{member.name}", self._turn(member, phase, proposals)
        first = self._read(turn, proposals, key)
        if key not in self.calls or (first is not None and not isinstance(first, UnreadableAnswer)):
            return first
        again = self._read(turn, proposals, key, is_repair=True)
        if again is None:
            self.unrepaired.add(key)
            return first if first is None or is_absent else settled(first)
        return settled(again)

    def _turn(self, member: CouncilMember, phase: CouncilPhase, proposals: tuple[Proposal, ...]) -> CouncilTurn:
        council = Council(
            question=self.spec.question, members=self.spec.members, rounds=self.spec.rounds, seed=self.seed
        )
        if phase is CouncilPhase.PROPOSE:
            return propose_turn(council, member, self.past, self.injections)
        return evaluate_turn(council, member, proposals, self.past, self.injections)

    def _read(
        self, turn: CouncilTurn, proposals: tuple[Proposal, ...], key: str, *, is_repair: bool = False
    ) -> Said | UnreadableAnswer | None:
        """Read one reply, after a look at what was asked."""
        found = self.calls.get(key + REPAIR if is_repair else key)
        self.known.add(key + REPAIR if is_repair else key)
        if found is not None and self.checks:
            self._require_asked(turn, found, key, is_repair=is_repair)
        if found is None or found.reply is None:
            return None
        member, reply = turn.member, found.reply
        if turn.phase is CouncilPhase.PROPOSE:
            schema, form = self.spec.proposal_schema, self.spec.verdict_form
            return read_proposal(reply, member.name, person=member.person, schema=schema, form=form)
        return read_evaluation(reply, turn.labels, proposals, member.scale, person=member.person)

    def _require_asked(self, turn: CouncilTurn, found: RecordedCall, key: str, *, is_repair: bool) -> None:
        """Note a call that was made to somebody else, or with another request."""
        asked = request_of(turn)
        if is_repair:
            first = self.calls.get(key)
            said = "" if first is None or first.reply is None else first.reply.text
            asked, key = repair_of(asked, said, ""), key + REPAIR
        if found.agent != turn.member.name:
            self.flaws.append(f"{key} was asked of {found.agent}")
        if part := request_flaw(asked, found.request, repairs=is_repair):
            self.flaws.append(f"the request of {key} does not hold what was said before it: its {part} is another")

    def _take_injections(self, phase: CouncilPhase) -> None:
        """Take what a person has told the members so far from their requests, if it goes on with what it was before."""
        below = phase_key(len(self.past) + 1, phase)
        for member in self.spec.members:
            found = self.calls.get(f"{below}/{member.name}")
            context = found.request.get("context") if found and isinstance(found.request, Mapping) else None
            told = context.get("user_injections") if isinstance(context, Mapping) else None
            if isinstance(told, list) and tuple(told[: len(self.injections)]) == self.injections:
                self.injections = tuple(map(str, told))
                return


_MAX_FLAWS = 5  # in a sentence


def _absent(one: CouncilRound, phase: CouncilPhase) -> Mapping[str, CouncilAbstention]:
    return {each.agent: each for each in one.abstentions if each.phase is phase}


def _absence_flaws(one: CouncilRound, phase: CouncilPhase, heard: Heard) -> Iterator[str]:
    """Yield who is told to be missing and was heard, or the other way round."""
    absent = _absent(one, phase)
    yield from (f"round {one.number} misses {name}, who is no member" for name in absent if name not in heard)
    for name, said in heard.items():
        each = absent.get(name)
        if isinstance(said, Proposal | Evaluation):
            is_wrong = each is not None
        elif isinstance(said, CouncilAbstention):
            is_wrong = each is None or (each != said and MARK not in each.reason + said.reason)
        else:
            is_wrong = each is None or each.cause is AbstentionCause.SKIPPED
        if is_wrong:
            yield f"round {one.number} does not say rightly whether {name} is missing in the phase {phase}"


def _unlike(was: CouncilRound, now: CouncilRound) -> Iterator[str]:
    """Yield what of a round is another; texts from which a secret was taken out are not compared."""
    if _shown(was.proposals) != _shown(now.proposals):
        yield "proposals"
    if _shown(was.evaluations) != _shown(now.evaluations):
        yield "evaluations"
    if replace(was.score, rejections=()) != replace(now.score, rejections=()):
        yield "score"


def _shown(said: Sequence[Proposal | Evaluation]) -> Json:
    ordered = sorted(said, key=lambda one: one.agent)
    return [_unmarked(typed.to_builtins(_without_reasons(one))) for one in ordered]


def _without_reasons(said: Proposal | Evaluation) -> Proposal | Evaluation:
    """Leave out the words that say why a vote does not count: they are no part of a version."""
    if isinstance(said, Proposal):
        return said
    return replace(said, rejected=tuple(replace(one, reason="") for one in said.rejected))


def _unmarked(value: Json) -> Json:
    if isinstance(value, str):
        return "" if MARK in value else value
    if isinstance(value, Mapping):
        return {name: _unmarked(part) for name, part in value.items()}
    return [_unmarked(part) for part in value] if isinstance(value, list | tuple) else value
