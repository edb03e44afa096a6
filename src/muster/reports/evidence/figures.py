"""The figures over the results of an archive: added up when it is written, and again when it is scored again."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isclose

import msgspec

from muster.checks.statistics import Tally
from muster.domain.canonical import Json
from muster.domain.verdict import CaseResult

TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureDifference:
    """A figure that does not follow from the results."""

    where: str
    was: Json  # None: it is not there
    now: Json


class Figures:
    """The growing figures of all subjects."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self.statuses: Counter[str] = Counter()

    def add(self, result: CaseResult) -> None:
        """Add one result."""
        self.statuses[str(result.status)] += 1
        self._tallies.setdefault(result.subject, Tally()).add(result)

    def json(self) -> dict[str, Json]:
        """Give the figures as they stand in an archive."""
        stats = {label: msgspec.to_builtins(tally.stats()) for label, tally in self._tallies.items()}
        return {"subjects": stats, "statuses": dict(self.statuses)}


def differences(where: str, was: Json, now: Json) -> Iterator[FigureDifference]:
    """Find the figures that differ; what is compared is never deeper than the figures of today."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for name in sorted({*map(str, was), *map(str, now)}):
            yield from differences(f"{where}/{name}", was.get(name), now.get(name))
    elif _is_list(was) and _is_list(now) and len(was) == len(now):
        for place, (left, right) in enumerate(zip(was, now, strict=True), 1):
            yield from differences(f"{where}/{place}", left, right)
    elif not _alike(was, now):
        yield FigureDifference(where=where, was=was, now=now)


def _alike(was: Json, now: Json) -> bool:
    if _is_number(was) and _is_number(now):
        return isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(was) is type(now) and bool(was == now)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Json) -> bool:
    return isinstance(value, list | tuple)
