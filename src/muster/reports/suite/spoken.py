"""What was said in one epoch of a case, read from the journal; recorded answers count like any other."""

from collections.abc import Mapping

from muster.domain.case import Case
from muster.domain.suite import ANSWERS
from muster.domain.verdict import CaseResult
from muster.reports.suite.talk import FAILURE, Turn, last_answer, turns
from muster.reports.suite_run import SuiteRun


class Spoken:
    """Gives answers and conversations of one run."""

    def __init__(self, suite: SuiteRun) -> None:
        self._suite = suite
        self._recorded: Mapping[str, str] | None = None  # read when it is first needed

    async def answer(self, result: CaseResult) -> str:
        """Give the last answer."""
        if not result.keys:
            return await self._record(result.case)
        return last_answer(await self._suite.calls(result.keys))

    async def conversation(self, case: Case, result: CaseResult) -> tuple[Turn, ...]:
        """Give the whole conversation, and why it ended when it broke off."""
        said = turns(await self._suite.calls(result.keys)) or await self._retold(case)
        broke_off = result.error is not None and (not said or said[-1].role != FAILURE)
        if result.error is None or not broke_off:
            return said
        return (*said, Turn(role=FAILURE, text=str(result.error.get("message", "it failed"))))

    async def _retold(self, case: Case) -> tuple[Turn, ...]:
        asked = tuple(Turn(role=str(message.role), text=message.text) for message in case.messages)
        answer = await self._record(case.id)
        return (*asked, Turn(role="assistant", text=answer)) if answer else asked

    async def _record(self, case: str) -> str:
        if self._suite.spec.answers is None:
            return ""
        if self._recorded is None:
            entry = await self._suite.store.journal.find(self._suite.run.id, ANSWERS)
            self._recorded = entry.value if entry is not None and isinstance(entry.value, Mapping) else {}
        return str(self._recorded.get(case, ""))
