"""A council told again from its recorded replies: proposals and evaluations are read and scored anew. Pure; no call."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from muster.councils.deadlines import quorum_of
from muster.councils.members.answers import UnreadableAnswer, read_evaluation, read_proposal, settled
from muster.councils.members.turns import Council, evaluate_turn
from muster.councils.outcome import CouncilOutcome, CouncilRound
from muster.councils.phase import Said, phase_key
from muster.councils.scoring import score_round
from muster.councils.spec import REPAIR, CouncilSpec, read_spec
from muster.councils.values import CouncilMember, CouncilPhase, Evaluation, Proposal
from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument
from muster.text import typed


def retell(spec: Json, outcome: Json, replies: Mapping[str, Reply]) -> Json:
    """Return the outcome of a council as its replies bear it out; they are named by the keys of their calls.

    How many rounds were held, and why members abstained, is taken from the recorded outcome. Raises BadArgument for a
    spec or an outcome that cannot be read.
    """
    wanted = read_spec(spec)
    try:
        told = typed.convert(outcome, CouncilOutcome)
    except typed.ValidationError as error:
        raise BadArgument(f"not the outcome of a council: {error}") from None
    seed = told.seed if wanted.seed is None else wanted.seed
    rounds = _Retelling(spec=wanted, seed=seed, replies=replies).rounds(told.result.rounds)
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
    heard = _Retelling(spec=spec, seed=seed, replies=replies, past=list(past)).all_said(phase, proposals)
    return [one for one in heard if one is not None and not isinstance(one, UnreadableAnswer)]


@dataclass(slots=True, kw_only=True)
class _Retelling:
    spec: CouncilSpec
    seed: int
    replies: Mapping[str, Reply]
    past: list[CouncilRound] = field(default_factory=list)

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
            self.past.append(replace(one, number=number, proposals=proposals, evaluations=evaluations, score=score))
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
        if phase is CouncilPhase.PROPOSE:
            schema, form = self.spec.proposal_schema, self.spec.verdict_form
            return read_proposal(reply, member.name, person=member.person, schema=schema, form=form)
        council = Council(
            question=self.spec.question, members=self.spec.members, rounds=self.spec.rounds, seed=self.seed
        )
        labels = evaluate_turn(council, member, proposals, self.past).labels
        return read_evaluation(reply, labels, proposals, member.scale, person=member.person)
