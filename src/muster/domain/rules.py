"""The rules that hold where nobody names others, by version: they decide what a run asks, and how its answers count.

The limits of tokens, and the blocks that go back, are part of the digests of requests; the rules of councils decide
whether a call is made at all.
A run stores the version with which it was started. Resumes, replays, forks and children use that of the run that they
come from, so that they ask what it asked. A run without one has the first. A change of a default is a new version;
those that are here never change.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from muster.domain.canonical import Json
from muster.domain.effort import OutputTraits
from muster.domain.errors import BadConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultRules:
    """How many tokens an agent may write, which thinking goes back to it, and which votes of a council count."""

    max_tokens: int = 2048  # where neither the caller, nor the question, nor the section of the agent says anything
    section_holds: bool  # what the section says holds for every request; else it is only a default
    leaves_room: bool = False  # beside what is usual for an answer, a model that thinks has room for its thinking
    # Blocks of earlier answers go back where they fit what is sent, of which others are left out; else all or none.
    keeps_fitting_blocks: bool = False
    # A round of a council needs a quorum of evaluations that count, and the verdicts of a council that judges are
    # repaired like those of one judge; else who abstains, or weighs nothing, counts for the quorum.
    strict_councils: bool = False
    # Beside that, an evaluation that weighs all proposals of others alike decides nothing between them: with fewer
    # than a quorum of others, the supported proposals are tied.
    orders_councils: bool = False
    # Beside that, a council that judges has no verdict when a round was begun after its winner and is not complete.
    whole_councils: bool = False

    def limit(
        self,
        asked: int | None,
        usual: int | None,
        section: int | None,
        traits: OutputTraits,
        settings: Mapping[str, Json],
    ) -> int:
        """Return the limit of a request: as its caller asks, as is usual for its question, as its agent's section says.

        What is usual for a question gives way to the section in both directions, and is what its answer needs: its
        agent may think beside it. What a caller or a section says is the whole limit.
        """
        if section is not None and self.section_holds:
            return section if asked is None else min(asked, section)
        if asked is not None:
            return asked
        if usual is None and section is not None:
            return section
        answer = self.max_tokens if usual is None else usual
        thinks = self.leaves_room and (settings or traits.thinks_at is not None)
        return traits.limit(answer, settings) if thinks else answer


FIRST_RULES = 1  # of runs that store none
CURRENT_RULES = 10  # of runs that are started now
_RULES: Mapping[int, DefaultRules] = {
    1: DefaultRules(section_holds=False),
    2: DefaultRules(section_holds=True),
    3: DefaultRules(section_holds=True, strict_councils=True),
    4: DefaultRules(section_holds=False, strict_councils=True),  # of a run of version 1 that was judged anew
    5: DefaultRules(section_holds=True, strict_councils=True, orders_councils=True),
    6: DefaultRules(section_holds=False, strict_councils=True, orders_councils=True),  # as 4 is to 3
    7: DefaultRules(section_holds=True, strict_councils=True, orders_councils=True, whole_councils=True),
    8: DefaultRules(section_holds=False, strict_councils=True, orders_councils=True, whole_councils=True),
    9: DefaultRules(
        section_holds=True, leaves_room=True, strict_councils=True, orders_councils=True, whole_councils=True
    ),
    10: DefaultRules(
        section_holds=True,
        leaves_room=True,
        keeps_fitting_blocks=True,
        strict_councils=True,
        orders_councils=True,
        whole_councils=True,
    ),
}
_ANEW: Mapping[int, int] = {1: 8, 2: 7, 3: 7, 4: 8, 5: 7, 6: 8}  # the same limits with the counting of today
CURRENT = _RULES[CURRENT_RULES]


def rules_of(version: int) -> DefaultRules:
    """Return the rules of a version; raises BadConfiguration for one that a later Muster has stored."""
    if version not in _RULES:
        raise BadConfiguration(
            f"the run was started with the default rules of version {version}, and this Muster knows up to "
            f"{max(_RULES)}",
            suggestions=("use the version of Muster that started it, or a later one",),
        )
    return _RULES[version]


def counted_anew(version: int) -> int:
    """Return the version of a run that takes over calls of another and decides anew: its limits, today's counting."""
    return _ANEW.get(version, version)
