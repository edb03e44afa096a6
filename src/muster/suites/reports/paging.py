"""Pages of a suite run's rows: only what is asked for is read, however many cases there are."""

import re
from dataclasses import astuple, dataclass, replace

from muster.domain.case import Status
from muster.domain.errors import BadArgument, NotFound
from muster.suites.reports.rows import FIRST_ROW, CaseGroup, CaseRow, CaseRows, RowPlace
from muster.suites.reports.run import SuiteRun

_PLACE = re.compile(r"\d{1,9}(?:\.\d{1,9}){4}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFilter:
    """Which rows are wanted; what is left open does not matter."""

    statuses: frozenset[Status] = frozenset()  # any of them
    subject: str | None = None
    search: str = ""  # in the id, the description, the tags and the reason, whatever the case of letters
    differing: bool = False  # only cases that did not end alike under all subjects

    def takes(self, row: CaseRow) -> bool:
        """Return whether a row is wanted."""
        if self.statuses and row.status not in self.statuses:
            return False
        if self.subject is not None and row.subject != self.subject:
            return False
        return not self.search or self.search.casefold() in _searched(row)

    def takes_group(self, group: CaseGroup) -> bool:
        """Return whether rows of a case may be wanted."""
        return not self.differing or len({row.status for row in group.rows}) > 1


def _searched(row: CaseRow) -> str:
    case = row.case
    return "\n".join((case.id, case.description, row.why, *case.tags)).casefold()


EVERY_ROW = RowFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class CasePage:
    """Some rows, in the order of the suite; `next` is where the page after it begins, None when it is the last."""

    rows: tuple[CaseRow, ...]
    next: str | None


async def page_of_rows(suite: SuiteRun, wanted: RowFilter, *, after: str | None, limit: int) -> CasePage:
    """Return at most so many rows that are wanted; `after` is `next` of the page before."""
    begin = FIRST_ROW if after is None else _read_place(after)
    rows: list[CaseRow] = []
    over = begin.rows
    async for group in CaseRows(suite, begin).groups():
        for number, row in enumerate(group.rows if wanted.takes_group(group) else ()):
            if number < over or not wanted.takes(row):
                continue
            if len(rows) == limit:
                return CasePage(rows=tuple(rows), next=_spell_place(replace(group.place, rows=number)))
            rows.append(row)
        over = 0
    return CasePage(rows=tuple(rows), next=None)


async def find_row(suite: SuiteRun, case: str, subject: str | None) -> CaseRow:
    """Return a case under one subject; without a name, under the first."""
    async for group in CaseRows(suite).groups(only=case):
        found = next((row for row in group.rows if subject in (None, row.subject)), None)
        if found is not None:
            return found
        known = tuple(f"--subject {row.subject}" for row in group.rows)
        raise NotFound(f"{case} was not run with {subject!r}", suggestions=known[:5])
    raise NotFound(f"run {suite.run.id} has no case {case!r}", suggestions=(f"muster cases {suite.run.id}",))


def _spell_place(place: RowPlace) -> str:
    return ".".join(map(str, astuple(place)))


def _read_place(text: str) -> RowPlace:
    if _PLACE.fullmatch(text) is None:
        raise BadArgument("is `next` of the page before", argument="after")
    return RowPlace(**dict(zip(RowPlace.__dataclass_fields__, map(int, text.split(".")), strict=True)))
