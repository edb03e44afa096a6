"""A council told again from its recorded replies: proposals and evaluations are read and scored anew. Pure; no call."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isclose

from muster.councils.deadlines import quorum_of
from muster.councils.members.answers import UnreadableAnswer, read_evaluation, read_proposal, settled
from muster.councils.members.turns import Council, CouncilTurn, evaluate_turn, propose_turn
from muster.councils.outcome import CouncilOutcome, CouncilRound
from muster.councils.phase import Said, phase_key, round_key
from muster.councils.scoring import score_round
from muster.councils.spec import REPAIR, CouncilSpec, read_spec
from muster.councils.stopping import Conditions, StopDecision, StopReason, conviction_of, decide
from muster.councils.values import CouncilMember, CouncilPhase, Evaluation, Proposal
from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.text import typed
from muster.text.redaction import MARK


def retell(spec: Json, outcome: Json, replies: Mapping[str, Reply], asked: Mapping[str, str]) -> Json:
    """Return the outcome of a council as its replies bear it out; they are named by the keys of their calls.

    How many rounds were held, and why members abstained, is taken from the recorded outcome. Raises BadArgument for a
    spec or an outcome that cannot be read, for rounds that their replies do not bear out, and for calls that belong to
    no round or were not asked (`asked` has the texts of all requests) what was said before.
    """
    wanted = read_spec(spec)
    try:
        told = typed.convert(outcome, CouncilOutcome)
    except typed.ValidationError as error:
        raise BadArgument(f"not the outcome of a council: {error}") from None
    seed = told.seed if wanted.seed is None else wanted.seed
    retelling = _Retelling(spec=wanted, seed=seed, replies=replies, asked=asked)
    rounds = retelling.rounds(told.result.rounds)
    flaws = (*retelling.flaws, *_stop_flaws(wanted, rounds, told.result.stop), *_stray(asked, rounds, told.result.stop))
    if flaws:
        raise BadArgument("; ".join(flaws[:_MOST_FLAWS]))
    result = replace(told.result, question=wanted.question, members=wanted.members, rounds=rounds)
    return typed.to_builtins(replace(told, result=result))


_TOLERANCE = 1e-9


def said_in(
    spec: CouncilSpec,
    seed: int,
    past: Sequence[CouncilRound],
    replies: Mapping[str, Reply],
    phase: CouncilPhase,
    proposals: tuple[Proposal, ...] = (),
) -> list[Said]:
    """Return what members said in a phase of the round after the past ones, as far as its replies can be read."""
    heard = _Retelling(spec=spec, seed=seed, replies=replies, past=list(past)).all_said(phase, proposals)
    return [one for one in heard if one is not None and not isinstance(one, UnreadableAnswer)]


@dataclass(slots=True, kw_only=True)
class _Retelling:
    spec: CouncilSpec
    seed: int
    replies: Mapping[str, Reply]
    asked: Mapping[str, str] = field(default_factory=dict)  # texts of requests; none: they are not looked at
    past: list[CouncilRound] = field(default_factory=list)
    flaws: list[str] = field(default_factory=list)

    def rounds(self, recorded: tuple[CouncilRound, ...]) -> tuple[CouncilRound, ...]:
        """Return all rounds, each read again after those before it."""
        for one in recorded:
            absent = {each.agent for each in one.abstentions if each.phase is CouncilPhase.EVALUATE}
            proposals = tuple(said for said in self.all_said(CouncilPhase.PROPOSE) if isinstance(said, Proposal))
            heard = self.all_said(CouncilPhase.EVALUATE, proposals, absent)
            evaluations = tuple(said for said in heard if isinstance(said, Evaluation))
            score = score_round(
                proposals,
                evaluations,
                seed=self.seed,
                needed=quorum_of(len(self.spec.members), self.spec.quorum) if one.score.needed else 0,
                lenient=one.score.winner is not None and one.score.counted < one.score.needed,
            )
            number = len(self.past) + 1
            again = replace(one, number=number, proposals=proposals, evaluations=evaluations, score=score)
            self.flaws += [] if _said(again) == _said(one) else [f"round {number} is not what its replies say"]
            self.past.append(again)
        return tuple(self.past)

    def all_said(
        self, phase: CouncilPhase, proposals: tuple[Proposal, ...] = (), absent: Collection[str] = ()
    ) -> list[Said | UnreadableAnswer | None]:
        """Return what each member said in a phase of the next round, repaired if it had to be; None without a reply."""
        return [self._said(member, phase, proposals, member.name in absent) for member in self.spec.members]

    def _said(
        self, member: CouncilMember, phase: CouncilPhase, proposals: tuple[Proposal, ...], is_absent: bool
    ) -> Said | UnreadableAnswer | None:
        """Return what a member said, repaired if it had to be; None without a reply.

        Without a repaired reply the member may have been absent since its repair failed; the record knows.
        """
        key = f"{phase_key(len(self.past) + 1, phase)}/{member.name}"
        first = self._read(member, phase, proposals, key)
        if first is not None and not isinstance(first, UnreadableAnswer):
            return first
        again = self._read(member, phase, proposals, key + REPAIR)
        if again is None:
            return first if first is None or is_absent else settled(first)
        return settled(again)

    def _read(
        self, member: CouncilMember, phase: CouncilPhase, proposals: tuple[Proposal, ...], key: str
    ) -> Said | UnreadableAnswer | None:
        reply = self.replies.get(key)
        if reply is None:
            return None
        council = Council(
            question=self.spec.question, members=self.spec.members, rounds=self.spec.rounds, seed=self.seed
        )
        if phase is CouncilPhase.PROPOSE:
            self._require_asked(propose_turn(council, member, self.past), key)
            schema, form = self.spec.proposal_schema, self.spec.verdict_form
            return read_proposal(reply, member.name, person=member.person, schema=schema, form=form)
        turn = evaluate_turn(council, member, proposals, self.past)
        self._require_asked(turn, key)
        return read_evaluation(reply, turn.labels, proposals, member.scale, person=member.person)

    def _require_asked(self, turn: CouncilTurn, key: str) -> None:
        """Note a request that does not hold the question, or what the others had proposed; people see quotations."""
        if not self.asked or turn.member.person:
            return
        shown = (turn.council.question.strip(), *(one.text for one in turn.candidates))
        text = self.asked.get(key, "")
        if not all(part in text for part in shown if MARK not in part):
            self.flaws.append(f"the request of {key} does not hold what was said before it")


_MOST_FLAWS = 5  # in a sentence
# Whatever else ended a council, clocks and money did, which no reply shows: then a round may be incomplete.
_BY_RULE = frozenset({StopReason.CONVINCED, StopReason.ROUNDS})


def _said(one: CouncilRound) -> Json:
    """Return what a round holds of its members; texts from which a secret was taken out are not compared."""
    proposed = sorted((made.agent, "" if MARK in made.text else made.text) for made in one.proposals)
    return proposed, sorted(
        (said.agent, sorted((vote.target, str(vote.weight)) for vote in said.votes)) for said in one.evaluations
    )


def _stop_flaws(spec: CouncilSpec, rounds: Sequence[CouncilRound], stop: StopDecision) -> Iterator[str]:
    """Yield why a council cannot have ended as it is recorded, by the convictions of its rounds."""
    if not rounds:
        return
    convictions = [conviction_of(one.score) for one in rounds]
    ends = [_decided(spec, rounds[:place], convictions[:place]) for place in range(1, len(rounds) + 1)]
    if any(one.reason in _BY_RULE for one in ends[:-1]):
        yield "it went on after it was convinced"
    if not isclose(ends[-1].evidence, stop.evidence, abs_tol=_TOLERANCE):
        yield f"its evidence is {ends[-1].evidence:.3f}, and {stop.evidence:.3f} is recorded"
    if stop.reason in _BY_RULE and ends[-1].reason is not stop.reason:
        yield f"after {len(rounds)} rounds it was not over by the reason {stop.reason}"


def _decided(spec: CouncilSpec, rounds: Sequence[CouncilRound], convictions: Sequence[float]) -> StopDecision:
    conditions = Conditions(candidates=len(rounds[-1].score.standings), members=len(spec.members))
    return decide(spec.rule, convictions, conditions)


def _stray(asked: Mapping[str, str], rounds: Sequence[CouncilRound], stop: StopDecision) -> Iterator[str]:
    """Yield the calls that belong to no round: to one of the complete ones, or to one that was left incomplete."""
    held = len(rounds) + (stop.reason not in _BY_RULE)
    known = tuple(f"{round_key(number)}/" for number in range(1, held + 1))
    yield from (f"{key} belongs to no recorded round" for key in sorted(asked) if not key.startswith(known))
