"""Figures over all results of a run, and where two of them differ. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping
from math import isclose
from typing import Any

from muster.domain.canonical import Json
from muster.suites.evidence.accounts import FigureDifference
from muster.suites.statistics import SubjectTally
from muster.suites.values.verdict import CaseResult
from muster.text import typed

TOLERANCE = 1e-9


class SubjectTallies:
    """The growing figures of all subjects."""

    def __init__(self) -> None:
        self._tallies: dict[str, SubjectTally] = {}
        self.statuses: Counter[str] = Counter()

    def add(self, result: CaseResult) -> None:
        """Add one result."""
        self.statuses[str(result.status)] += 1
        self._tallies.setdefault(result.subject, SubjectTally()).add(result)

    def json(self) -> Mapping[str, Json]:
        """Return the figures as they stand in an archive."""
        stats = {label: typed.to_builtins(tally.stats()) for label, tally in self._tallies.items()}
        for one in stats.values():
            if not one["thinking_tokens"]:
                del one["thinking_tokens"]  # as in archives of before it was counted
        return {"subjects": stats, "statuses": dict(self.statuses)}


def differences(where: str, was: Any, now: Any) -> Iterator[FigureDifference]:
    """Find the figures that differ; what is compared is never deeper than the figures of today."""
    if isinstance(was, Mapping) and isinstance(now, Mapping):
        for name in sorted({*map(str, was), *map(str, now)}):
            yield from differences(f"{where}/{name}", was.get(name), now.get(name))
    elif _is_list(was) and _is_list(now) and len(was) == len(now):
        for place, (left, right) in enumerate(zip(was, now, strict=True), 1):
            yield from differences(f"{where}/{place}", left, right)
    elif not _alike(was, now):
        yield FigureDifference(where=where, was=was, now=now)


def _alike(was: Any, now: Any) -> bool:
    if _is_number(was) and _is_number(now):
        return isclose(was, now, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(was) is type(now) and bool(was == now)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_list(value: Json) -> bool:
    return isinstance(value, list | tuple)
