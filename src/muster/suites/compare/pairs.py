"""The pairs of a comparison, page by page: every epoch of every case, how it ended in both runs, and how it changed.

It tells no verdict on the runs: that is `compare_runs`, whose regressions are the pairs that are worse here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import itemgetter

from muster.domain.errors import BadArgument
from muster.suites.compare.pairing import pair_up
from muster.suites.compare.runs import Outcomes, Side, outcomes_of, paired_subjects
from muster.suites.compare.values import EpochOutcome, PairChange
from muster.suites.reports.run import Spoken

_PLACE = re.compile(r"(\d)\.(\d{1,6})\.(\d{1,9})\.(.+)", re.DOTALL)
_ORDER = tuple(PairChange)  # what got worse comes first


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPair:
    """One epoch of a case in both runs; a side that is None does not have it."""

    subject_a: str
    subject_b: str
    case: str
    epoch: int
    change: PairChange
    reason: str
    before: EpochOutcome | None
    after: EpochOutcome | None
    same_answer: bool | None = None  # None: only one side has an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class PairFilter:
    """Which pairs are wanted; what is left open does not matter."""

    changes: frozenset[PairChange] = frozenset()  # any of them
    search: str = ""  # in the id of the case, whatever the case of letters

    def takes(self, pair: ComparedPair) -> bool:
        """Return whether a pair is wanted."""
        return not self.changes or pair.change in self.changes


EVERY_PAIR = PairFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class PairPage:
    """Some pairs, what got worse first; how many there are of each change; `next` is where the page after it begins."""

    a: Side
    b: Side
    pairs: tuple[ComparedPair, ...]
    counts: Mapping[PairChange, int] = field(default_factory=dict)  # of all that fit the search
    next: str | None = None


async def page_of_pairs(a: Side, b: Side, wanted: PairFilter, *, after: str | None, limit: int) -> PairPage:
    """Return at most so many pairs that are wanted; `after` is `next` of the page before."""
    begin = None if after is None else _read_place(after)
    before, later = await outcomes_of(a.suite), await outcomes_of(b.suite)
    subjects = paired_subjects(a, b, before, later)
    found = [
        (_place(number, pair), pair)
        for number, (one, other) in enumerate(subjects)
        for pair in _pairs_of(one, other, before[one], later.get(other, {}))
        if wanted.search.casefold() in pair.case.casefold()
    ]
    rest = (item for item in found if wanted.takes(item[1]) and (begin is None or item[0] > begin))
    taken = sorted(rest, key=itemgetter(0))
    last = _spell_place(taken[limit - 1][0]) if len(taken) > limit else None
    spoken = Spoken(a.suite), Spoken(b.suite)
    told = [await _with_answers(pair, *spoken) for _, pair in taken[:limit]]
    counts = Counter(pair.change for _, pair in found)
    return PairPage(a=a, b=b, pairs=tuple(told), counts={one: counts[one] for one in _ORDER}, next=last)


def _pairs_of(one: str, other: str, before: Outcomes, after: Outcomes) -> Iterator[ComparedPair]:
    """Pair two subjects as the comparison does, and add what only B has."""
    pairing = pair_up(before, after)
    for pair in pairing.pairs:
        yield ComparedPair(
            subject_a=one,
            subject_b=other,
            case=pair.case,
            epoch=pair.epoch,
            change=pair.change,
            reason=pair.reason,
            before=pair.before,
            after=pair.after,
        )
    for case, epoch in pairing.new:
        yield ComparedPair(
            subject_a=one,
            subject_b=other,
            case=case,
            epoch=epoch,
            change=PairChange.NEW,
            reason="only in B",
            before=None,
            after=after[case, epoch],
        )


async def _with_answers(pair: ComparedPair, a: Spoken, b: Spoken) -> ComparedPair:
    """Return a pair with whether its two answers are the same, letter by letter."""
    if pair.before is None or pair.after is None:
        return pair
    first = await a.answer_in(pair.case, pair.epoch, pair.before.keys)
    second = await b.answer_in(pair.case, pair.epoch, pair.after.keys)
    return replace(pair, same_answer=first == second)


Place = tuple[int, int, str, int]


def _place(subject: int, pair: ComparedPair) -> Place:
    return _ORDER.index(pair.change), subject, pair.case, pair.epoch


def _spell_place(place: Place) -> str:
    change, subject, case, epoch = place
    return f"{change}.{subject}.{epoch}.{case}"


def _read_place(text: str) -> Place:
    found = _PLACE.fullmatch(text)
    if found is None:
        raise BadArgument("is `next` of the page before", argument="after")
    change, subject, epoch, case = found.groups()
    return int(change), int(subject), case, int(epoch)
