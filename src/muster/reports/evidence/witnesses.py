"""What an archive holds about each result: calls to the agent and to judges, and recorded answers, in their order."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from muster.domain.call import Reply
from muster.domain.case import Case
from muster.domain.verdict import CaseResult, Observation
from muster.judges.retelling import Heard
from muster.reports.evidence.archive import Archive
from muster.reports.evidence.exporting import keys_of
from muster.reports.evidence.layout import ANSWERS, CALLS
from muster.reports.evidence.lines import read_as
from muster.reports.evidence.marks import is_marked
from muster.reports.evidence.observing import Call, observe, observe_recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class Testimony:
    """What the archive holds about one result."""

    case: Mapping[str, Any]  # its line
    asked: tuple[Call, ...] = ()  # of the agent, those that are there
    judged: tuple[Call, ...] = ()
    answer: Mapping[str, Any] | None = None  # recorded, when nobody was asked
    recorded: bool = False  # recorded answers were scored

    def observation(self, case: Case, result: CaseResult) -> Observation:
        """Say what the agent did."""
        if self.recorded:
            return observe_recorded(None if self.answer is None else str(self.answer.get("text")), result)
        return observe(case, self.asked, result)

    def heard(self) -> dict[str, Heard]:
        """Give what judges and commands replied, by key."""
        return {str(call["key"]): _heard(call) for call in self.judged}

    @property
    def redacted(self) -> bool:
        """Whether a secret was really taken out of any text that the result was made from."""
        return any(map(is_marked, (self.case, *self.asked, *self.judged, self.answer)))


class Witnesses:
    """Goes through calls and recorded answers side by side with the results that they belong to."""

    def __init__(self, archive: Archive, *, recorded: bool) -> None:
        self._calls = archive.stream(CALLS, lambda call: str(call["key"]))
        self._answers = archive.stream(ANSWERS, lambda answer: str(answer["case"])) if recorded else None
        self._of = Testimony(case={}, recorded=recorded)

    def turn_to(self, line: Mapping[str, Any], case: Case) -> None:
        """Go on to the next case."""
        answer = None if self._answers is None else self._answers.take(case.id)
        self._of = Testimony(case=line, answer=answer, recorded=self._of.recorded)

    def hear(self, result: CaseResult) -> Testimony:
        """Give everything about the next result."""
        found = [self._calls.take(key) for key in keys_of(result)]
        asked, judged = found[: len(result.keys)], found[len(result.keys) :]
        return Testimony(
            case=self._of.case,
            asked=tuple(call for call in asked if call is not None),
            judged=tuple(call for call in judged if call is not None),
            answer=self._of.answer,
            recorded=self._of.recorded,
        )

    def unheard(self) -> Iterator[Call]:
        """Give the calls that belong to no result."""
        return self._calls.rest()


def _heard(call: Call) -> Heard:
    reply, error = call.get("reply"), call.get("error")
    return Heard(
        reply=None if reply is None else read_as(Reply, reply, CALLS),
        error=error if isinstance(error, Mapping) else None,
    )
