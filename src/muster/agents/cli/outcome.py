"""What a call of a CLI agent came to, a reply or a failure, when its process is over. Pure."""

from dataclasses import dataclass
from typing import Any

from muster.agents.cli.dialect import Dialect, Output
from muster.agents.cli.output import CliOutput, shown
from muster.agents.local import (
    exit_of,
    retold,
)
from muster.agents.usage import ProcessBill
from muster.domain.call import Reply, Request, Stop, Timings, Trace, says_something
from muster.domain.canonical import Json
from muster.domain.errors import AgentFailed, BadExit, BadOutput, PermissionAsked
from muster.text.schemas.json_schema import shaped

_MAX_LOG = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExit:
    """How a process ended."""

    status: int | None  # None: it did not exit by itself
    log: str
    sample: str  # the beginning of the last thing that it wrote
    broken: bool  # it closed its input before it had all of it


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeReader:
    """Reads what was found when it is all there."""

    agent: str
    dialect: Dialect
    bill: ProcessBill

    def reply(self, request: Request, found: CliOutput, ending: ProcessExit, timings: Timings) -> Reply:
        """Return the reply, or raise the failure."""
        failure = self.failure(found, ending)
        if failure is not None:
            raise failure
        cost, lane = self.bill.settle(found.cost)
        return Reply(
            text=shown(found.answer),
            stop=Stop.END,
            tool_calls=found.tools.calls,
            usage=found.usage,
            cost=cost,
            lane=lane,
            model=self.dialect.model or self.agent,
            id=found.session,
            timings=timings,
            data=self._data(request, found.answer, ending),
            trace=Trace(session=found.session, turns=found.turns, log=ending.log, note=_note(ending)),
        )

    def failure(self, found: CliOutput, ending: ProcessExit) -> AgentFailed | None:
        """Return why there is no reply; None when there is one."""
        if found.permission is not None:
            return self._permission(found, ending)
        if found.error is not None:
            return self._failed(AgentFailed, f"reports that it failed: {found.error}", ending)
        silent = bool(ending.status) and found.answer is not None and not says_something(shown(found.answer))
        if silent or (self.dialect.output is Output.TEXT and ending.status != 0):
            return self._without_answer(ending)
        return None if found.whole else self._without_answer(ending, ended=found.ended)

    def _permission(self, found: CliOutput, ending: ProcessExit) -> AgentFailed:
        tool = found.permission or "a tool that it does not name"
        return PermissionAsked(
            f"agent {self.agent!r}: asks for permission to use {tool}, which cannot be granted here; it was stopped",
            log=ending.log,
            tool=found.permission or None,
            arguments=found.permission_input,
            session=found.session if self.dialect.resume else "",
            suggestions=(f"allow {tool} in its command or its own settings, or disable the tool",),
        )

    def _without_answer(self, ending: ProcessExit, *, ended: bool = False) -> AgentFailed:
        if ending.status is None and not ended:
            return self._failed(BadExit, "closed its output without an answer and did not exit; it was stopped", ending)
        if ending.status and not ended:
            said = f": {ending.log[:_MAX_LOG].strip()}" if ending.log.strip() else ""
            return self._failed(BadExit, f"{exit_of(ending.status)} without an answer{said}", ending)
        wrote = f"; it wrote last: {ending.sample}" if ending.sample else "; it wrote nothing"
        return self._failed(BadOutput, f"ended without an answer{self._at()}{wrote}", ending)

    def _at(self) -> str:
        answer = self.dialect.places.answer
        return "" if answer is None else f" at {answer.text}"

    def _data(self, request: Request, answer: Json, ending: ProcessExit) -> Any:
        """Return the answer as data, if it was asked for as such."""
        if request.schema is None:
            return None
        try:
            return shaped(request, Stop.END, shown(answer), None if isinstance(answer, str) else answer)
        except BadOutput as error:
            raise retold(error, f"agent {self.agent!r}: ", log=ending.log) from error

    def _failed(self, kind: type[AgentFailed], what: str, ending: ProcessExit, *suggestions: str) -> AgentFailed:
        return kind(f"agent {self.agent!r}: {what}", log=ending.log, suggestions=suggestions)


def _note(ending: ProcessExit) -> str:
    notes = []
    if ending.status is None:
        notes.append("it did not exit after its answer")
    elif ending.status:
        notes.append(f"it {exit_of(ending.status)} after its answer")
    if ending.broken:
        notes.append("it did not read all of its input")
    return "; ".join(notes)
