"""Councils that judged, in an archive: their runs with all replies, from which their judgements are read again."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.entry import Entry, EntryKind
from muster.domain.errors import MusterError
from muster.domain.ids import RunId
from muster.domain.run import Run, RunState
from muster.store.base import Store
from muster.suites.case import Case
from muster.suites.evidence.accounts import account_of, settled_of
from muster.suites.evidence.archive import read_as
from muster.suites.evidence.layout import CHILDREN, EvidenceFault
from muster.suites.evidence.requests import is_about, text_of
from muster.suites.judge.council import council_of, judgement_of, without_verdict
from muster.suites.judge.question import pose
from muster.suites.judge.rubric import missing
from muster.suites.spec import SuiteSpec
from muster.suites.verdict import Judgement, Observation

_PAGE = 20  # entries that are held at a time


async def calls_of_child(store: Store, run: Run) -> list[Entry]:
    """Return the calls of a child run, also those that it has from the run it continues, in the order of their keys."""
    found: dict[str, Entry] = {}
    seen: set[RunId] = set()
    current: Run | None = run
    while current is not None and current.id not in seen:
        seen.add(current.id)
        async for entry in store.archive.entries(current.id, page=_PAGE):
            if entry.kind is EntryKind.CALL and (entry.key not in found or found[entry.key].reply is None):
                found[entry.key] = entry
        current = None if current.origin is None else await store.runs.get(current.origin.run)
    return [found[key] for key in sorted(found)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedCouncil:
    """The run of a council that judged, as the archive holds it."""

    key: str
    spec: Mapping[str, Json]
    state: str
    cause: str  # why it did not complete
    outcome: Json
    replies: Mapping[str, Reply]
    asked: Mapping[str, str]  # the texts of all requests, by key
    figures: tuple[str, ...] = ()  # that do not follow from its calls

    @staticmethod
    def of(child: Mapping[str, Any]) -> "RecordedCouncil":
        """Read a line of children.jsonl."""
        try:
            run, calls = child["run"], child["calls"]
            account = account_of(calls)
            figures = [figure.where for figure in account.differences("run", run)]
            if run["origin"] is None and isinstance(run["result"], Mapping):
                figures += ["run/result/spent"] if run["result"].get("spent") != settled_of(run) else []
            return RecordedCouncil(
                key=str(child["key"]),
                spec=dict(run["spec"]),
                state=str(run["state"]),
                cause=str((run["error"] or {}).get("message", run["ended_reason"])),
                outcome=run["result"],
                replies={
                    str(call["key"]): read_as(Reply, call["reply"], CHILDREN)
                    for call in calls
                    if call["reply"] is not None
                },
                asked={str(call["key"]): text_of(call) for call in calls},
                figures=tuple(figures),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EvidenceFault(CHILDREN, "a line is not a valid child run") from error


# Reads the replies of a council again: takes its spec, its recorded outcome, its replies and the texts of its requests,
# returns the outcome that they bear out; raises what does not fit. Councils are another feature, so whoever puts the
# two together brings it.
RetellCouncil = Callable[[Json, Json, Mapping[str, Reply], Mapping[str, str]], Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilRetelling:
    """The council that judged one answer, and what reads it again."""

    children: tuple[Mapping[str, Any], ...]
    retell: RetellCouncil | None

    def judgement(self, case: Case, seen: Observation, spec: SuiteSpec, unit: str, version: str) -> Judgement:
        """Return the judgement that the replies of the council come to, by the rules of the recorded one."""
        judge = replace(council_of(spec), version=version)
        if why := missing(case, seen):
            return judge.failed(why)
        key = judge.key(unit)
        found = next((one for child in self.children if (one := RecordedCouncil.of(child)).key == key), None)
        if found is None or self.retell is None:
            return judge.failed("its run is not recorded" if found is None else "nobody can read councils again", key)
        if found.state != RunState.COMPLETED:
            return without_verdict(judge, key, found.cause)
        question = pose(case, seen)
        if _without_question(found.spec) != _without_question(judge.spec(question, key)):
            return judge.failed("the council that is recorded is not the one of the policy", key)
        if not is_about(question, str(found.spec.get("question", ""))):
            return judge.failed("the council that is recorded was asked about something else", key)
        if found.figures:
            return judge.failed(f"figures of the council do not follow from its calls: {', '.join(found.figures)}", key)
        try:
            outcome = self.retell(found.spec, found.outcome, found.replies, found.asked)
        except MusterError as error:
            return judge.failed(f"the recorded council cannot be read: {error.message}", key)
        return judgement_of(judge, case, question, outcome, key)


def _without_question(spec: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in spec.items() if name != "question"}
