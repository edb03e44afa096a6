"""Anonymity: labels and orders for candidates, names taken out of texts, and whether position decided. Pure.

Each member sees the others' proposals under labels and in an order of its own, new in every phase of every round.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import fsum
from random import Random
from unicodedata import normalize

from muster.councils.rules.scoring import RoundScore
from muster.councils.rules.values import CouncilPhase
from muster.domain.errors import BadArgument
from muster.statistics.intervals import CONFIDENCE, Interval, percentile_of_sorted

# Neither vowels, so that no label is a word, nor characters that look alike.
_CHARACTERS = "bcdfghjkmnpqrstvwxz23456789"
_LENGTH = 3
_SOMEBODY = "[agent]"
_DIGITS = 12  # an interval that ends at 0 on paper ends there
_OWN, _OTHER = "[your proposal]", "[another proposal]"


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateLabels:
    """The candidates as one member sees them in one phase, in the order in which they are shown."""

    viewer: str
    shown: tuple[tuple[str, str], ...]  # label and agent

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels in their order."""
        return tuple(label for label, _ in self.shown)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents behind them, in the same order."""
        return tuple(agent for _, agent in self.shown)

    def agent_of(self, label: str) -> str | None:
        """Return the agent behind a label; None for a label that was not shown."""
        return next((agent for shown, agent in self.shown if shown == label), None)

    def label_of(self, agent: str) -> str:
        """Return the label of an agent's proposal."""
        found = next((label for label, shown in self.shown if shown == agent), None)
        if found is None:
            raise BadArgument(f"the proposal of {agent!r} was not shown to {self.viewer!r}")
        return found


def labels_for(
    viewer: str, agents: Iterable[str], *, round_number: int, phase: CouncilPhase, seed: int | str
) -> CandidateLabels:
    """Return labels and order for the proposals of all agents but the viewer; the order of `agents` is irrelevant."""
    names = sorted(set(agents) - {viewer})
    draw = Random(f"{seed}/labels/{round_number}/{phase}/{viewer}")  # noqa: S311 - orders; nobody gains by a guess
    draw.shuffle(names)
    taken = {name.casefold() for name in (*names, viewer)}
    labels: list[str] = []
    while len(labels) < len(names):
        label = "".join(draw.choices(_CHARACTERS, k=_LENGTH))
        if label not in taken:
            taken.add(label)
            labels.append(label)
    return CandidateLabels(viewer=viewer, shown=tuple(zip(labels, names, strict=True)))


def without_names(text: str, agents: Iterable[str]) -> str:
    """Return a text with the names of agents replaced: whole words, in any case, of `provider/model` the model too."""
    names = {part for agent in agents for part in (agent, agent.rpartition("/")[2]) if part.strip()}
    return _replaced(text, names, lambda _: _SOMEBODY)


def without_labels(text: str, labels: CandidateLabels, target: str) -> str:
    """Return a critique for its target to read, to whom the labels of its evaluator mean nothing."""
    own = _folded(labels.label_of(target))[0]
    return _replaced(text, labels.labels, lambda found: _OWN if found == own else _OTHER)


def _replaced(text: str, words: Iterable[str], replacement: Callable[[str], str]) -> str:
    """Replace whole words, compared by Unicode's full case folding after composition; an underscore ends a word."""
    composed = normalize("NFC", text)
    folded, places = _folded(composed)
    wanted = sorted({_folded(normalize("NFC", word))[0] for word in words}, key=lambda word: (-len(word), word))
    if not wanted:
        return composed
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, wanted))})(?![^\W_])")
    parts, end = [], 0
    for found in pattern.finditer(folded):
        parts += [composed[end : places[found.start()]], replacement(found.group())]
        end = places[found.end()]
    return "".join([*parts, composed[end:]])


def _folded(text: str) -> tuple[str, list[int]]:
    """Return a text in folded case, and for each of its characters and its end the place in the text itself."""
    folded = [character.casefold() for character in text]
    places = [place for place, characters in enumerate(folded) for _ in characters]
    return "".join(folded), [*places, len(text)]


_RESAMPLES = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionEffect:
    """What position did in one evaluation: how much larger the share of the first was than the mean of the rest."""

    evaluator: str
    effect: float
    possible: tuple[float, ...]  # the effects there would be, had each of the candidates been the first


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionBias:
    """The mean effect of position over all evaluations, or those of one evaluator."""

    evaluator: str  # "": all of them
    evaluations: int
    effect: float  # 0: position did not matter; positive: the first was favoured
    interval: Interval  # of 95 %

    @property
    def is_shown(self) -> bool:
        """Return whether the interval excludes that position did not matter."""
        return not self.interval.holds(0.0)


def position_effects(labels: Sequence[CandidateLabels], score: RoundScore) -> list[PositionEffect]:
    """Return the effects of position in one round, of every evaluator that weighed all it was shown."""
    found = []
    for one in sorted(labels, key=lambda one: one.viewer):
        given = {cell.target: cell.share for cell in score.contributions if cell.evaluator == one.viewer}
        shares = [given[agent] for agent in one.agents if agent in given]
        if len(shares) == len(one.agents) > 1:
            possible = [share - (fsum(shares) - share) / (len(shares) - 1) for share in shares]
            found.append(PositionEffect(evaluator=one.viewer, effect=possible[0], possible=tuple(sorted(possible))))
    return found


def position_biases(effects: Iterable[PositionEffect]) -> list[PositionBias]:
    """Return the bias of all evaluators together, then of each, from the effects of all rounds."""
    listed = sorted(effects, key=lambda one: (one.evaluator, one.effect, one.possible))
    groups: dict[str, list[PositionEffect]] = {"": listed} if listed else {}
    for one in listed:
        groups.setdefault(one.evaluator, []).append(one)
    return [_bias(name, found) for name, found in groups.items()]


def _bias(name: str, effects: Sequence[PositionEffect]) -> PositionBias:
    """Return a bias with the interval of the randomization test.

    The order was drawn, so without a bias each candidate was as likely to be the first: the spread of the mean is
    known, however few evaluations there are.
    """
    draw = Random(0).choice  # noqa: S311 - statistics, no secrets
    means = sorted(abs(fsum(draw(one.possible) for one in effects)) / len(effects) for _ in range(_RESAMPLES))
    half, mean = percentile_of_sorted(means, 100 * CONFIDENCE), fsum(one.effect for one in effects) / len(effects)
    low, high = round(mean - half, _DIGITS), round(mean + half, _DIGITS)
    return PositionBias(evaluator=name, evaluations=len(effects), effect=mean, interval=Interval(low=low, high=high))
