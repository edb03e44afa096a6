"""Which rows come on the page, each with its conversations: all of a run, or of a large one what is worth a look."""

import json
from collections.abc import AsyncIterator
from typing import Any

from muster.reports.suite.page_values import epoch_values, row_values, talk_values
from muster.reports.suite.rows import CaseRow, CaseRows
from muster.reports.suite.spoken import Spoken
from muster.reports.suite.summary import NOT_PASSED, SuiteReport
from muster.reports.suite_run import SuiteRun
from muster.reports.words import count

ALL_UP_TO = 2000  # cases; beyond, a page holds what did not pass and a sample of the rest
MOST_TROUBLES = 2000  # rows
SAMPLE = 500  # rows
MOST_TALK = 64_000_000  # characters of conversations


def embedded(value: Any) -> str:
    """Spell a value as JSON that cannot end the element it stands in, nor become part of a script."""
    spelled = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        spelled = spelled.replace(character, f"\\u{ord(character):04x}")
    return spelled


class PageRows:
    """Gives the rows of the page; afterwards `told` says what is not among them."""

    def __init__(self, suite: SuiteRun, report: SuiteReport) -> None:
        self._suite, self._report, self._spoken = suite, report, Spoken(suite)
        self._everything = report.cases <= ALL_UP_TO
        others = report.rows - report.not_passed
        self._step = max(1, -(-others // SAMPLE))  # every so many rows that passed one is shown
        self._room = MOST_TALK
        self._troubles = self._others = self._shown = self._silent = 0

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        """Give the rows as JSON."""
        async for row in CaseRows(self._suite):
            if self._takes(row):
                self._shown += 1
                yield row_values(row) | {"epochs": await self._epochs(row)}

    def _takes(self, row: CaseRow) -> bool:
        if row.status in NOT_PASSED:
            self._troubles += 1
            return self._everything or self._troubles <= MOST_TROUBLES
        self._others += 1
        return self._everything or (self._others - 1) % self._step == 0

    async def _epochs(self, row: CaseRow) -> list[dict[str, Any]]:
        found = []
        for result in row.results:
            talk = talk_values(await self._spoken.conversation(row.case, result))
            size = sum(len(message["text"]) for message in talk)
            self._room -= size
            self._silent += self._room < 0
            found.append(epoch_values(row.case, result) | {"talk": talk if self._room >= 0 else None})
        return found

    def told(self) -> str:
        """Say what is not on the page; nothing when all of it is."""
        parts = []
        if not self._everything:
            parts.append(
                f"This run has {count(self._report.rows, 'row')}, too many for one page. Here are {self._shown:,}: "
                f"{min(self._troubles, MOST_TROUBLES):,} of {self._troubles:,} that did not pass, and of the others "
                f"one in {self._step:,}. The figures and charts above are of all of them."
            )
        if self._silent:
            parts.append(f"{count(self._silent, 'conversation')} did not fit into this file.")
        return " ".join(parts)
