"""The council as a judge: a child run in which members propose verdicts; the winning one is the judgement.

The workload is started by its name. What its outcome comes to is told by one function, when it is heard and whenever it
is read again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.domain.canonical import Json, digest
from muster.domain.errors import AuthRefused, BadArgument, BudgetExhausted, ChildFailed
from muster.domain.money import NOTHING, Microdollars
from muster.domain.rules import DefaultRules
from muster.engine.context import Context
from muster.suites.checks.opinions import weighted_mean
from muster.suites.judge.question import JudgeQuestion, pose, read_verdict, verdict_schema
from muster.suites.judge.rubric import Sample, agreement_of, items_of, missing, passes
from muster.suites.values.case import Case
from muster.suites.values.verdict import ItemScore, Judgement, MemberVerdict, Observation
from muster.text import typed
from muster.text.words import count

WORKLOAD = "deliberation"
VERSION = "council/4"  # changed with every change of what a council is asked, or of how its answers count
COMPLETE = "council/3"  # of judgements that were made when rounds that were begun and not complete did not matter
BEFORE = "council/2"  # of judgements that were made when evaluations that weigh all others alike counted
LENIENT = "council/1"  # of judgements that were made before evaluations without a weight were told from votes
OLDER = (LENIENT, BEFORE, COMPLETE)
_MIN_VOTES = 2  # where no quorum is recorded: one evaluator has nobody to agree with
_SEED_DIGITS = 7  # hexadecimal
_STOPS = {kind.code: kind for kind in (BudgetExhausted, AuthRefused)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilJudge:
    """A council that judges, and where the threshold lies that its members are compared at."""

    name: str  # "council:" and the file
    policy: Mapping[str, Any]
    threshold: float  # where a case names none
    version: str = VERSION  # of the rules by which it is read: evidence is read by those that it recorded

    def key(self, unit: str) -> str:
        """Return the key of the child run about the answer of a unit."""
        return f"{unit}/judge/{self.name}/1"

    def spec(self, question: JudgeQuestion, key: str) -> dict[str, Json]:
        """Return the spec of the child run; the seed follows from the key, so that a replay draws the same labels."""
        form = {"ids": list(question.form.ids), "texts": list(question.form.texts)}
        return {
            **self.policy,
            "question": question.for_council,
            "seed": int(digest(key)[:_SEED_DIGITS], 16),
            "proposal_schema": verdict_schema(question.rubric),
            **({} if self.version == LENIENT else {"verdict_form": form}),
        }

    @property
    def members(self) -> tuple[str, ...]:
        """The names of the members."""
        return tuple(str(member["name"]) for member in self.policy.get("members", ()))

    def failed(self, why: str, *keys: str) -> Judgement:
        """Return the judgement of a council that said nothing that counts."""
        return Judgement(by=self.name, version=self.version, model=", ".join(self.members), failures=(why,), keys=keys)


def council_of(judge: str | None, policy: Mapping[str, Json] | None, threshold: float) -> CouncilJudge:
    """Return the council that judges in a run; raises BadArgument when its policy was never read."""
    if judge is None or policy is None:
        raise BadArgument(
            f"the policy of the judge {judge} is not part of the run",
            suggestions=("start the run with muster run, or with m.suites.start, which reads the file",),
        )
    return CouncilJudge(name=judge, policy=policy, threshold=threshold)


def version_of(rules: DefaultRules) -> str:
    """Return how a council is read in a run with these rules: a replay must come to what was stored."""
    if not rules.strict_councils:
        return LENIENT
    if not rules.orders_councils:
        return BEFORE
    return VERSION if rules.whole_councils else COMPLETE


def rules_for(version: str) -> DefaultRules:
    """Return the rules of councils that belong to the version of a judgement."""
    return DefaultRules(
        section_holds=True,
        strict_councils=version != LENIENT,
        orders_councils=version in (COMPLETE, VERSION),
        whole_councils=version == VERSION,
    )


async def judge_by_council(
    ctx: Context, case: Case, observation: Observation, judge: CouncilJudge, *, unit: str, dispatch: str | None = None
) -> Judgement:
    """Have an answer judged by a council; its failure is a value, what stops the run passes through."""
    judge = replace(judge, version=version_of(ctx.rules))
    if why := missing(case, observation):
        return judge.failed(why)
    question, key = pose(case, observation), judge.key(unit)
    try:
        outcome = await ctx.child(key, WORKLOAD, judge.spec(question, key), dispatch=dispatch)
    except ChildFailed as error:
        if error.reason in _STOPS:  # as it would be with a single judge
            raise _STOPS[error.reason](error.message) from error
        return without_verdict(judge, key, error.cause)
    return judgement_of(judge, case, question, outcome, key)


def without_verdict(judge: CouncilJudge, key: str, cause: str) -> Judgement:
    """Return the judgement of a council whose run did not complete."""
    return judge.failed(f"the council gave no verdict: {cause}", key)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedVerdict:
    """A proposal of a council, as far as a judgement needs it."""

    agent: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictStanding:
    """Where a verdict stands in a round."""

    support: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictScore:
    """Who won a round, and with whom it was tied."""

    winner: str | None
    standings: tuple[VerdictStanding, ...] = ()  # best first
    contributions: tuple[Mapping[str, Any], ...] = ()
    tied: tuple[str, ...] = ()
    tie_break: str | None = None
    needed: int = 0  # evaluations that must count; 0: not recorded
    alike: tuple[str, ...] = ()  # evaluators that weighed all others alike

    @property
    def counted(self) -> int:
        """How many evaluations count: those with a weight other than 0 that do not weigh all others alike."""
        weighing = {str(cell.get("evaluator")) for cell in self.contributions if cell.get("weight")}
        return len(weighing.difference(self.alike))

    @property
    def supporting(self) -> int:
        """How many evaluations count, or are in favour of all others alike."""
        in_favour = {str(cell.get("evaluator")) for cell in self.contributions if cell.get("weight", 0) > 0}
        return self.counted + len(in_favour.intersection(self.alike))

    @property
    def few_votes(self) -> str:
        """Why its evaluations decide nothing, whoever leads: fewer count than a quorum."""
        needed = self.needed or _MIN_VOTES
        if self.counted >= needed or (self.tied and self.supporting >= needed):
            return ""
        return (
            f"{count(self.counted, 'evaluation')} {'counts' if self.counted == 1 else 'count'}, and {needed} are needed"
        )

    @property
    def undecided(self) -> str:
        """Why there is no winner, or none that counts."""
        if not self.contributions or not self.standings:
            return "no evaluation counted"
        best = self.standings[0].support
        if best >= 0 and (self.needed or self.winner is not None) and self.few_votes:
            return self.few_votes
        return f"no verdict is supported: the best has {best:.3f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRound:
    """One round of a council."""

    proposals: tuple[ProposedVerdict, ...]
    score: VerdictScore


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictStop:
    """Why a council ended."""

    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRounds:
    """All complete rounds of a council, and how it ended."""

    rounds: tuple[VerdictRound, ...]
    stop: VerdictStop = VerdictStop(reason="", detail="")
    open_round: int | None = None  # that was begun after them


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilVerdicts:
    """The outcome of a council, as far as a judgement needs it; its other fields are not read."""

    result: VerdictRounds
    spent: Microdollars = NOTHING


def judgement_of(judge: CouncilJudge, case: Case, question: JudgeQuestion, outcome: Json, key: str) -> Judgement:
    """Return what the outcome of a council comes to as a judgement: the verdict of its winner, and each member's."""
    try:
        found = typed.convert(outcome, CouncilVerdicts)
    except typed.ValidationError as error:
        return judge.failed(f"the result of the council cannot be read: {error}", key)
    deciding = _deciding(found.result, judge.version)
    if isinstance(deciding, str):
        return replace(judge.failed(f"the council has no winning verdict: {deciding}", key), cost=found.spent)
    threshold = judge.threshold if case.threshold is None else case.threshold
    return replace(_judged(judge, question, deciding, threshold), cost=found.spent, keys=(key,))


def _deciding(found: VerdictRounds, version: str) -> VerdictRound | str:
    """Return the round whose winner is the judgement, or why there is none.

    It is the last one that was begun: what the members rejected after a winner was found is no verdict of theirs, and
    neither is one that they were to think over and could not.
    """
    rounds, is_lenient = found.rounds, version == LENIENT
    if version == VERSION and rounds and found.open_round is not None:
        return f"round {found.open_round}, its last, is not complete ({found.stop.detail})"
    last, winning = (rounds[-1] if rounds else None), [one for one in rounds if one.score.winner is not None]
    if last is None:
        return "no round is complete"
    if winning and (is_lenient or (last is winning[-1] and not last.score.few_votes)):
        return winning[-1]
    why = last.score.undecided
    return f"round {len(rounds)}, its last, has none ({why})" if winning and last is not winning[-1] else why


def _judged(judge: CouncilJudge, question: JudgeQuestion, deciding: VerdictRound, threshold: float) -> Judgement:
    """Return what the deciding round comes to, apart from what it cost."""
    is_strict, score = judge.version != LENIENT, deciding.score
    samples = {one.agent: _sample(one, question) for one in deciding.proposals}
    good = [samples[name] for name in judge.members if name in samples and samples[name].verdicts]
    winner = samples.get(score.winner or "", Sample(failure="it is not among the proposals"))
    flaw = _flaw(score, winner, {name: _passes(samples.get(name), question, threshold) for name in score.tied})
    return Judgement(
        by=judge.name,
        version=judge.version,
        model=", ".join(judge.members),
        items=() if flaw else _items(question, winner, good),
        failures=(flaw,) if flaw else (),
        agreement=agreement_of(question.rubric, good, threshold, critical=is_strict),
        members=tuple(
            _member(name, samples.get(name), question, threshold, won=name == score.winner, critical=is_strict)
            for name in judge.members
        ),
        tie=f"tie, decided by {score.tie_break}" if score.tied and not flaw else "",
        votes=_votes(score, len(judge.members)) if is_strict and not flaw else "",
    )


def _votes(score: VerdictScore, members: int) -> str:
    """Return how many evaluations decided, where it was not those of all members; of a tie none did."""
    if score.counted >= members or (score.tied and score.counted < (score.needed or _MIN_VOTES)):
        return ""
    return f"decided by {score.counted} of {members} evaluations"


def _flaw(score: VerdictScore, winner: Sample, tied: Mapping[str, bool | None]) -> str:
    """Return why the winning verdict is not a judgement: it cannot be used, or a tied one says the opposite."""
    if not winner.verdicts:
        return f"the winning verdict, of {score.winner}, cannot be used: {winner.failure}"
    if len(set(tied.values())) < 2:
        return ""
    said = ", ".join(f"{member} {_PASSING[passes]}" for member, passes in tied.items())
    if score.tie_break == _BY_SUPPORT:
        return f"the council is split: too few evaluations prefer one of the verdicts, which differ ({said})"
    return f"the council is split: verdicts with the same support differ ({said})"


_BY_SUPPORT = "support"  # a tie of all verdicts, since too few evaluations prefer one


def _passes(sample: Sample | None, question: JudgeQuestion, threshold: float) -> bool | None:
    """Return whether an answer passes by one verdict alone, its critical items too; None without a verdict."""
    if sample is None or not sample.verdicts:
        return None
    return passes(question.rubric, sample, threshold, critical=True)


_PASSING = {True: "passes it", False: "fails it", None: "gives no verdict that can be used"}


def _sample(proposed: ProposedVerdict, question: JudgeQuestion) -> Sample:
    """Read the verdict of a member: evidence that does not stand in the answer is kept with its mark, as of a judge."""
    reading = read_verdict(proposed.text, question)
    return Sample(verdicts=reading.verdicts, failure="" if reading.verdicts else reading.flaw)


def _items(question: JudgeQuestion, winner: Sample, good: Sequence[Sample]) -> tuple[ItemScore, ...]:
    """Return the scores of the winner, each with those of all members beside it."""
    alone = items_of(question.rubric, [winner])
    return tuple(
        replace(item, samples=tuple(sample.verdicts[place].score for sample in good))
        for place, item in enumerate(alone)
    )


def _member(
    name: str, sample: Sample | None, question: JudgeQuestion, threshold: float, *, won: bool, critical: bool
) -> MemberVerdict:
    if sample is None or not sample.verdicts:
        flaw = "it proposed nothing in the deciding round" if sample is None else sample.failure
        return MemberVerdict(member=name, won=won, flaw=flaw)
    score = weighted_mean(items_of(question.rubric, [sample]))
    passed = passes(question.rubric, sample, threshold, critical=critical)
    return MemberVerdict(member=name, score=score, passed=passed, won=won)
