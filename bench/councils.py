"""Simulated councils of members with known skill: how often they are right, against one agent and against a majority.

`python -m bench.councils` writes the tables of docs/COUNCILS.md. The same seed gives the same tables.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import fmean

from muster.councils.rules.scoring import RoundScore, score_round
from muster.councils.rules.stopping import (
    ROUND_WEIGHT,
    Conditions,
    StopRule,
    conviction_of,
    decide,
    evidence_budget,
    evidence_of,
)
from muster.councils.rules.values import Evaluation, Proposal, Vote
from muster.statistics.intervals import wilson
from muster.text.words import percent

PAGE = Path(__file__).parent.parent / "docs" / "COUNCILS.md"
BEGIN = "<!-- made by python -m bench.councils -->"
END = "<!-- end of what is made -->"

COUNCILS = 1000
ROUNDS = 3
WEIGHTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
EFFORTS = (0.3, 0.6, 0.8, 1.0)
RIGHT, WRONG = 0, (1, 2, 3)  # answers: members that are wrong need not be wrong in the same way
KEPT = 0.5  # probability that a member thinks of an answer what it thought of it in the round before
QUESTION, PROPOSAL, CRITIQUE = 300, 400, 100  # tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """How often a member proposes the right answer, and how often it is right about an answer that it evaluates."""

    proposes: float
    votes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One composition of a council."""

    name: str
    skills: tuple[Skill, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRound:
    """What a round came to, if it was the last."""

    is_right: bool
    conviction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedCouncil:
    """One council over all rounds, whether it would have stopped before or not."""

    rounds: tuple[SimulatedRound, ...]
    best_is_right: bool  # what its best member proposed first
    majority_is_right: bool  # what most proposed first


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How councils of one setting did under one rule."""

    right: int
    rounds: float  # mean


def equal(count: int, proposes: float, votes: float) -> tuple[Skill, ...]:
    return (Skill(proposes=proposes, votes=votes),) * count


SETTINGS = (
    Setting(name="3 equal: 60 % / 70 %", skills=equal(3, 0.6, 0.7)),
    Setting(name="5 equal: 50 % / 70 %", skills=equal(5, 0.5, 0.7)),
    Setting(name="5 strong: 70 % / 85 %", skills=equal(5, 0.7, 0.85)),
    Setting(name="5 that check better than they write: 30 % / 85 %", skills=equal(5, 0.3, 0.85)),
    Setting(name="an expert 85 % / 85 %, four of 40 % / 60 %", skills=(*equal(1, 0.85, 0.85), *equal(4, 0.4, 0.6))),
    Setting(name="5 that vote by chance: 60 % / 50 %", skills=equal(5, 0.6, 0.5)),
    Setting(name="5 that vote worse than chance: 60 % / 40 %", skills=equal(5, 0.6, 0.4)),
)


class SimulatedMember:
    """A member that proposes and votes by its skill, and takes over the winner when it believes in it."""

    def __init__(self, name: str, skill: Skill, random: Random) -> None:
        self.name, self._skill, self._random = name, skill, random
        self.answer = self._draw()
        self._beliefs: dict[int, bool] = {}

    def evaluate(self, members: "Sequence[SimulatedMember]") -> Evaluation:
        """Weigh the others: for what it believes to be right, against the rest, with more or less force."""
        others = [other for other in members if other is not self]
        for answer in sorted({other.answer for other in others}):
            if answer not in self._beliefs or self._random.random() >= KEPT:
                is_recognized = self._random.random() < self._skill.votes
                self._beliefs[answer] = is_recognized == (answer == RIGHT)
        return Evaluation(agent=self.name, votes=tuple(self._vote(other) for other in others))

    def revise(self, winner: int | None, score: RoundScore) -> None:
        """Take over the winning answer if it believes in it; else replace its own if that was disliked."""
        if winner is not None and self._beliefs.get(winner):
            self.answer = winner
        elif score.support_of(self.name) < 0:
            self.answer = self._draw()

    def _draw(self) -> int:
        return RIGHT if self._random.random() < self._skill.proposes else self._random.choice(WRONG)

    def _vote(self, other: "SimulatedMember") -> Vote:
        force = self._random.randint(20, 100)
        return Vote(target=other.name, weight=force if self._beliefs[other.answer] else -force)


def simulate(setting: Setting, seed: int) -> SimulatedCouncil:
    """Let one council argue for all rounds."""
    random = Random(f"{setting.name}/{seed}")
    members = [SimulatedMember(f"m{place}", skill, random) for place, skill in enumerate(setting.skills)]
    best = max(range(len(members)), key=lambda place: setting.skills[place].proposes)
    first = [member.answer for member in members]
    return SimulatedCouncil(
        rounds=tuple(_rounds(members, seed)),
        best_is_right=first[best] == RIGHT,
        majority_is_right=_majority(first, random) == RIGHT,
    )


def _rounds(members: Sequence[SimulatedMember], seed: int) -> Iterator[SimulatedRound]:
    by_name = {member.name: member for member in members}
    decided: int | None = None  # the answer that won last: a round without a winner leaves it
    for number in range(ROUNDS):
        proposals = [Proposal(agent=member.name, text=str(member.answer), tokens=PROPOSAL) for member in members]
        score = score_round(proposals, [member.evaluate(members) for member in members], seed=f"{seed}/{number}")
        winner = None if score.winner is None else by_name[score.winner].answer
        decided = decided if winner is None else winner
        yield SimulatedRound(is_right=decided == RIGHT, conviction=conviction_of(score))
        for member in members:
            member.revise(winner, score)


def _majority(answers: Sequence[int], random: Random) -> int:
    counted = Counter(answers).most_common()
    return random.choice([answer for answer, count in counted if count == counted[0][1]])


def apply(rule: StopRule, members: int, councils: Iterable[SimulatedCouncil]) -> Outcome:
    """Stop each council by a rule, and count how often it is right then."""
    ends = [_stopped(rule, members, council) for council in councils]
    last = [(council.rounds[rounds - 1], rounds) for council, rounds in ends]
    return Outcome(right=sum(one.is_right for one, _ in last), rounds=fmean(rounds for _, rounds in last))


def _stopped(rule: StopRule, members: int, council: SimulatedCouncil) -> tuple[SimulatedCouncil, int]:
    convictions = [one.conviction for one in council.rounds]
    conditions = Conditions(candidates=members, members=members)
    numbers = range(1, rule.max_rounds + 1)
    return council, next(n for n in numbers if decide(rule, convictions[:n], conditions).reason is not None)


def fixed(councils: Sequence[SimulatedCouncil], rounds: int) -> int:
    """Return how many councils are right that always argue for so many rounds."""
    return sum(council.rounds[rounds - 1].is_right for council in councils)


def swept(councils: Mapping[Setting, Sequence[SimulatedCouncil]], weight: float, effort: float) -> tuple[float, float]:
    """Return the share of right councils and the mean of rounds over settings, for another weight of rounds."""
    ends = [
        _end(council, weight, effort * evidence_budget(len(setting.skills), weight))
        for setting, group in councils.items()
        for council in group
    ]
    return fmean(is_right for is_right, _ in ends), fmean(rounds for _, rounds in ends)


def _end(council: SimulatedCouncil, weight: float, needed: float) -> tuple[bool, int]:
    convictions = [one.conviction for one in council.rounds]
    reached = (rounds for rounds in range(1, ROUNDS) if 0 < evidence_of(convictions[:rounds], weight) >= needed)
    rounds = next(reached, ROUNDS)
    return council.rounds[rounds - 1].is_right, rounds


def tokens_of(members: int, rounds: float) -> float:
    """Return the tokens of a council: everybody reads the question and all others' proposals, but for the first one."""
    others = members - 1
    proposing = QUESTION + PROPOSAL + others * PROPOSAL
    evaluating = QUESTION + others * (PROPOSAL + CRITIQUE)
    return members * (rounds * (proposing + evaluating) - others * PROPOSAL)


def row(setting: Setting, councils: Sequence[SimulatedCouncil]) -> str:
    """Return the row of one setting in the first table."""
    members, count = len(setting.skills), len(councils)
    outcome = apply(StopRule(max_rounds=ROUNDS), members, councils)
    interval = wilson(outcome.right, count)
    cells = [
        setting.name,
        percent(sum(council.best_is_right for council in councils) / count),
        percent(sum(council.majority_is_right for council in councils) / count),
        f"**{percent(outcome.right / count)}** ({percent(interval.low)} to {percent(interval.high)})",
        percent(fixed(councils, 1) / count),
        percent(fixed(councils, ROUNDS) / count),
        f"{outcome.rounds:.2f}",
        f"{2 * members * outcome.rounds:.0f}",
        f"{tokens_of(members, outcome.rounds) / 1000:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def first_table(councils: Mapping[Setting, Sequence[SimulatedCouncil]]) -> str:
    head = [
        "members: right proposals / right votes", "best alone", "majority", "council", "1 round", f"{ROUNDS} rounds",
        "rounds", "calls", "1,000 tokens",
    ]  # fmt: skip
    return "\n".join([*_head(head), *(row(setting, group) for setting, group in councils.items())])


def second_table(councils: Mapping[Setting, Sequence[SimulatedCouncil]]) -> str:
    """Return the sweep: weights of rounds by efforts, each with the share of right councils and the rounds used."""
    lines = _head(["weight of each further round", *(f"effort {effort:g}" for effort in EFFORTS)])
    for weight in WEIGHTS:
        found = [swept(councils, weight, effort) for effort in EFFORTS]
        name = f"**{weight:g}**" if weight == ROUND_WEIGHT else f"{weight:g}"
        cells = [name, *(f"{percent(share)} in {rounds:.2f}" for share, rounds in found)]
        lines.append(f"| {' | '.join(cells)} |")
    shares = [fmean(fixed(group, rounds) / len(group) for group in councils.values()) for rounds in (1, 2, 3)]
    return "\n".join(lines) + "\n\nAlways one round: {}; always two: {}; always three: {}.".format(
        *map(percent, shares)
    )


def _head(cells: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(cells)} |", "|---" * len(cells) + "|"]


def tables() -> str:
    """Simulate everything and return the part of the page that is made from it."""
    councils = {setting: [simulate(setting, seed) for seed in range(COUNCILS)] for setting in SETTINGS}
    able = {setting: group for setting, group in councils.items() if fmean(one.votes for one in setting.skills) > 0.5}
    parts = [BEGIN, first_table(councils), f"The {len(able)} settings whose votes are better than chance:"]
    return "\n\n".join([*parts, second_table(able), END])


def main() -> None:
    """Write the tables into the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(before + tables() + after, encoding="utf-8")


if __name__ == "__main__":
    main()
