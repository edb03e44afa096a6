"""Scoring: votes are normalised per evaluator, damped by a square root, and summed. Pure, and the same in any order.

Shares are exact fractions and sums are correctly rounded, so that no permutation of members or votes changes a bit.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from math import copysign, fsum, sqrt
from random import Random

from muster.councils.order import ScoreScale
from muster.councils.rules.values import MAX_WEIGHT, MIN_WEIGHT, Evaluation, Proposal, Vote
from muster.domain.errors import BadArgument
from muster.text.words import count

# Sums of square roots that are equal on paper differ in the last bits of a float; at 12 digits they are equal again.
_DIGITS = 12

SELF_VOTE = "agents do not weigh their own proposals"
UNKNOWN_TARGET = "there is no such proposal"
WEIGHED_TWICE = "it is weighed more than once"


class TieBreak(StrEnum):
    """The rule that decided between proposals with the same support, in the order in which they are tried."""

    IN_FAVOUR = "in_favour"  # more evaluators with a positive weight
    TOKENS = "tokens"  # fewer tokens written
    DRAW = "draw"  # drawn by the seed of the run over the names of all agents
    SUPPORT = "support"  # too few evaluations prefer one, so that all are tied that have support; the one with the most


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One cell of the score matrix: what a vote adds to the support of its target."""

    evaluator: str
    target: str
    weight: float
    share: float  # of all that its evaluator gave: weight / sum of absolute weights
    value: float  # signed square root of the share


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A vote, or with no target a whole evaluation, that does not count, and why."""

    evaluator: str
    target: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where one proposal stands."""

    agent: str
    support: float  # the sum of its contributions, times its factor
    in_favour: int  # evaluators with a positive weight
    against: int  # evaluators with a negative weight
    tokens: int
    controversy: float  # 0: all on one side; 1: for and against cancel each other
    factor: float = 1.0  # below 1: its author weighed nobody, so that one evaluator more could weigh it


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundScore:
    """The outcome of one round."""

    standings: tuple[Standing, ...]  # best first
    winner: str | None  # None: no proposal has a support above 0
    tied: tuple[str, ...]  # all that share the highest support, when it is more than one
    tie_break: TieBreak | None
    contributions: tuple[Contribution, ...]
    rejections: tuple[Rejection, ...]
    missing: tuple[tuple[str, str], ...]  # evaluator and a proposal of another that it did not weigh
    needed: int = 0  # the quorum of evaluations that count; 0: nobody asked for one when it was stored
    alike: tuple[str, ...] = ()  # evaluators that weighed all others alike, which decides nothing between those

    @property
    def counted(self) -> int:
        """How many evaluations count: those with a weight other than 0 that do not weigh all others alike."""
        return len({cell.evaluator for cell in self.contributions if cell.weight}.difference(self.alike))

    @property
    def supporting(self) -> int:
        """How many evaluations count, or are in favour of all others alike: a tie needs a quorum of them."""
        in_favour = {cell.evaluator for cell in self.contributions if cell.weight > 0}
        return self.counted + len(in_favour.intersection(self.alike))

    def support_of(self, agent: str) -> float:
        """Return the support of one agent's proposal; of an agent without one it is 0."""
        return next((one.support for one in self.standings if one.agent == agent), 0.0)

    @property
    def scaled(self) -> tuple[Standing, ...]:
        """The standings whose support was multiplied by a factor below 1, since their authors weighed nobody."""
        return tuple(one for one in self.standings if one.factor < 1)

    @property
    def undecided(self) -> str:
        """Why no proposal won; empty when one did."""
        if self.winner is not None:
            return ""
        if not self.contributions or not self.standings:
            return "no evaluation counted"
        best = self.standings[0].support
        if best >= 0 and self.counted < self.needed:
            return few_votes(self.counted, self.needed)
        return f"no proposal is supported: the best has {best:.3f}"


def few_votes(counted: int, needed: int) -> str:
    """Return that too few evaluations count for a decision."""
    return f"{count(counted, 'evaluation')} {'counts' if counted == 1 else 'count'}, and {needed} are needed"


def weight_of(score: float, scale: ScoreScale) -> float | None:
    """Return the weight that a score of the exec protocol means; None when it is outside of its scale."""
    if not scale.lowest <= score <= 1:
        return None
    exact = _exact(score)
    return float((exact - Fraction(1, 2)) * 200 if scale is ScoreScale.UNIT else exact * 100)


def score_round(
    proposals: Sequence[Proposal],
    evaluations: Sequence[Evaluation],
    *,
    seed: int | str,
    needed: int = 0,
    lenient: bool = False,
    orders: bool = False,
) -> RoundScore:
    """Return the outcome of a round; the seed decides only what is left of a tie.

    Nobody wins with fewer evaluations that count than are needed, unless the round is lenient. Where `orders` is
    true, those that weigh all others alike do not count; if enough of them are in favour, the supported are tied.
    """
    known = {proposal.agent: proposal for proposal in proposals}
    _require_once("proposal", [proposal.agent for proposal in proposals])
    _require_once("evaluation", [evaluation.agent for evaluation in evaluations])
    ordered = sorted(evaluations, key=lambda one: one.agent)
    rejections = tuple(rejection for one in ordered for rejection in _rejections(one, known))
    refused = {(rejection.evaluator, rejection.target) for rejection in rejections}
    contributions = tuple(cell for one in ordered if not one.coerced for cell in _contributions(one, refused))
    evaluators = {cell.evaluator for cell in contributions if cell.weight}
    factors = _factors(known, evaluators)
    standings = _ranked([_standing(known[name], contributions, factors[name]) for name in sorted(known)], seed)
    alike = tuple(sorted(name for name in evaluators if orders and _is_alike(name, known, contributions)))
    found = RoundScore(
        standings=standings,
        winner=None,
        tied=(),
        tie_break=None,
        contributions=contributions,
        rejections=rejections,
        missing=tuple((one.agent, name) for one in ordered for name in _missing(one, known)),
        needed=needed,
        alike=alike,
    )
    return _decided(found, lenient=lenient)


def _decided(score: RoundScore, *, lenient: bool) -> RoundScore:
    """Return a score with its winner, if it has one, and those that are tied with it."""
    supported = tuple(sorted(one.agent for one in score.standings if one.support > 0))
    if not supported:
        return score
    winner = score.standings[0].agent
    tied, rule = _tie(score.standings)
    if lenient or score.counted >= score.needed:
        return replace(score, winner=winner, tied=tied, tie_break=rule)
    if score.supporting < score.needed or len(supported) < 2:
        return score
    return replace(score, winner=winner, tied=supported, tie_break=rule if tied == supported else TieBreak.SUPPORT)


def _is_alike(evaluator: str, known: Collection[str], contributions: Sequence[Contribution]) -> bool:
    """Return whether an evaluator gives all others the same; whoever has one other to weigh is for or against it."""
    given = {cell.target: round(cell.value, _DIGITS) for cell in contributions if cell.evaluator == evaluator}
    others = [given.get(name, 0.0) for name in known if name != evaluator]
    return len(others) > 1 and len(set(others)) == 1


def _exact(number: float) -> Fraction:
    """Return the number that was written: 0.7 is seven tenths."""
    return Fraction(str(number))


def _require_once(what: str, agents: Sequence[str]) -> None:
    twice = sorted(name for name, times in Counter(agents).items() if times > 1)
    if twice:
        raise BadArgument(f"a round holds one {what} of each agent at most; there are more of: {', '.join(twice)}")


def _rejections(evaluation: Evaluation, known: Mapping[str, Proposal]) -> Iterator[Rejection]:
    """Yield the votes of an evaluation that do not count, and why; only a coerced one is refused as a whole."""
    name = evaluation.agent
    yield from (Rejection(evaluator=name, target=one.target, reason=one.reason) for one in evaluation.rejected)
    if any(vote.target == name for vote in evaluation.votes):
        yield Rejection(evaluator=name, target=name, reason=SELF_VOTE)
    if evaluation.coerced:
        yield Rejection(evaluator=name, target="", reason="it was made of a text that holds no evaluation")
        return
    others = Counter(vote.target for vote in evaluation.votes if vote.target != name)
    for target in sorted(others):
        if target not in known:
            yield Rejection(evaluator=name, target=target, reason=UNKNOWN_TARGET)
        elif others[target] > 1:
            yield Rejection(evaluator=name, target=target, reason=WEIGHED_TWICE)
        elif not all(_is_in_range(vote) for vote in evaluation.votes if vote.target == target):
            yield Rejection(evaluator=name, target=target, reason=_OUT_OF_RANGE)


_OUT_OF_RANGE = f"its weight is not between {MIN_WEIGHT} and {MAX_WEIGHT}"


def _is_in_range(vote: Vote) -> bool:
    return vote.weight is None or MIN_WEIGHT <= vote.weight <= MAX_WEIGHT


def _contributions(evaluation: Evaluation, refused: Collection[tuple[str, str]]) -> Iterator[Contribution]:
    """Yield the cells of one evaluator, by the names of its targets; neutral votes add nothing, and are shown."""
    said = {vote.target: vote.weight for vote in evaluation.votes if (evaluation.agent, vote.target) not in refused}
    given = {target: weight for target, weight in sorted(said.items()) if weight is not None}
    total = sum((abs(_exact(weight)) for weight in given.values()), start=Fraction(0))
    for target, weight in given.items():
        share = float(_exact(weight) / total) if total else 0.0
        value = copysign(sqrt(abs(share)), share)
        yield Contribution(evaluator=evaluation.agent, target=target, weight=weight, share=share, value=value)


def _factors(authors: Collection[str], evaluators: AbstractSet[str]) -> Mapping[str, float]:
    """Return what the support of each author's proposal is multiplied by.

    Nobody weighs its own proposal, so the proposal of an author that weighed nobody has one possible evaluator more
    than those of the others; without the factor, abstaining would help. Where no author evaluates, all are alike.
    """
    number = len(evaluators)
    factor = (number - 1) / number if number > 1 and not evaluators.isdisjoint(authors) else 1.0
    return {name: 1.0 if name in evaluators else factor for name in authors}


def _missing(evaluation: Evaluation, known: Mapping[str, Proposal]) -> Iterator[str]:
    weighed = {vote.target for vote in evaluation.votes} | {vote.target for vote in evaluation.rejected}
    yield from (name for name in sorted(known) if name not in weighed and name != evaluation.agent)


def _standing(proposal: Proposal, contributions: Sequence[Contribution], factor: float) -> Standing:
    values = [cell.value for cell in contributions if cell.target == proposal.agent]
    support, moved = fsum(values), fsum(map(abs, values))
    return Standing(
        agent=proposal.agent,
        support=round(support * factor, _DIGITS) + 0.0,  # never -0.0
        in_favour=sum(value > 0 for value in values),
        against=sum(value < 0 for value in values),
        tokens=proposal.tokens,
        controversy=round(1 - abs(support) / moved, _DIGITS) if moved else 0.0,
        factor=factor,
    )


def _ranked(standings: Sequence[Standing], seed: int | str) -> tuple[Standing, ...]:
    """Return standings best first, with ties broken by the rules of TieBreak.

    Programs and people may not say how many tokens they wrote; among such, tokens decide nothing.
    """
    drawn = sorted(one.agent for one in standings)
    Random(f"{seed}/tie").shuffle(drawn)  # noqa: S311 - it decides an order, it keeps no secrets
    places = {name: place for place, name in enumerate(drawn)}
    uncounted = {(one.support, one.in_favour) for one in standings if not one.tokens}

    def rank(one: Standing) -> tuple[float, int, int, int]:
        tokens = 0 if (one.support, one.in_favour) in uncounted else one.tokens
        return (-one.support, -one.in_favour, tokens, places[one.agent])

    return tuple(sorted(standings, key=rank))


def _tie(standings: Sequence[Standing]) -> tuple[tuple[str, ...], TieBreak | None]:
    """Return who shares the highest support, and the rule by which the first of them won."""
    tied = [one for one in standings if one.support == standings[0].support]
    if len(tied) < 2:
        return (), None
    names = tuple(sorted(one.agent for one in tied))
    first, second = tied[:2]
    if first.in_favour != second.in_favour:
        return names, TieBreak.IN_FAVOUR
    equal = [one for one in tied if one.in_favour == first.in_favour]
    by_tokens = all(one.tokens for one in equal) and first.tokens != second.tokens
    return names, TieBreak.TOKENS if by_tokens else TieBreak.DRAW
