"""The rules by which answers are read and checked, by version: a run stores the version that it is judged by.

It stands beside the versions of packages, so that an archive of evidence has it too. Whoever resumes a run, or scores
an archive again, uses the rules that are stored; where none are, the first. A version that is here never changes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from muster.domain.errors import BadConfiguration

NAME = "scoring_rules"  # in the environment of a run


DEFAULT_THRESHOLD = 0.7  # of a score that passes


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringRules:
    """What holds of answers and checks."""

    recorded_like_live: bool = True  # else a recorded answer stands for all turns and epochs, and is always good
    strict_json: bool = True  # else JSON is the last value in any prose, with NaN, and formats are not checked
    strict_commands: bool = True  # else misspelt keys in the answer of a command are ignored
    complete_json: bool = True  # else parts of broken JSON are documents, and lists beside objects are not
    every_recorded_turn: bool = True  # else recorded answers behind a missing turn are ignored
    hidden_escapes: bool = True  # else an answer of nothing but sequences for terminals is good
    no_references: bool = True  # else "see [1]" is a JSON document where nothing else is one
    finite_equals: bool = True  # else numbers beyond all bounds are equal to each other
    no_contrary_keys: bool = True  # else a key with which a command says that it failed is ignored


FIRST = 1  # of runs that store none
CURRENT = 4  # of runs that are started now
_THIRD = ScoringRules(no_references=False, finite_equals=False, no_contrary_keys=False)
_SECOND = replace(_THIRD, complete_json=False, every_recorded_turn=False, hidden_escapes=False)
_RULES: Mapping[int, ScoringRules] = {
    1: replace(
        _SECOND,
        recorded_like_live=False,
        strict_json=False,
        strict_commands=False,
    ),
    2: _SECOND,
    3: _THIRD,
    4: ScoringRules(),
}
CURRENT_RULES = _RULES[CURRENT]


def rules_in(environment: Mapping[str, Any]) -> ScoringRules:
    """Return the rules of a run by its environment; raises BadConfiguration for those of a later Muster."""
    version = environment.get(NAME, FIRST)
    if version not in _RULES:
        raise BadConfiguration(
            f"the run is judged by scoring rules of version {version}, and this Muster knows up to {CURRENT}",
            suggestions=("use the version of Muster that started it, or a later one",),
        )
    return _RULES[version]
