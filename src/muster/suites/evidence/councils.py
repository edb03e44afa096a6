"""Councils that judged, in an archive: their runs with all replies, from which their judgements are read again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muster.domain.call import Reply
from muster.domain.canonical import Json
from muster.domain.entry import Entry, EntryKind
from muster.domain.errors import MusterError
from muster.domain.ids import RunId
from muster.domain.rules import DefaultRules, rules_of
from muster.domain.run import Run, RunState
from muster.judging.asked import RecordedCall, text_flaw
from muster.store.base import Store
from muster.suites.evidence.accounts import BOOKINGS, account_of, call_differences, settled_of
from muster.suites.evidence.archive import read_as
from muster.suites.evidence.layout import CHILDREN, EvidenceFault
from muster.suites.judge.council import CouncilJudge, council_of, judgement_of, rules_for, version_of, without_verdict
from muster.suites.judge.question import pose
from muster.suites.judge.rubric import missing
from muster.suites.spec import SuiteSpec
from muster.suites.values.case import Case
from muster.suites.values.verdict import Judgement, Observation

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
    calls: Mapping[str, RecordedCall]  # by key
    rules: int | None = None  # the version of its default rules; None: it was written before archives had it
    figures: tuple[str, ...] = ()  # that do not follow from its calls
    has_budget: bool | None = None  # beside that of the suite; None: it was written before archives had it

    @staticmethod
    def of(child: Mapping[str, Any]) -> "RecordedCouncil":
        """Read a line of children.jsonl."""
        try:
            run, calls = child["run"], child["calls"]
            return RecordedCouncil(
                key=str(child["key"]),
                spec=dict(run["spec"]),
                state=str(run["state"]),
                cause=str((run["error"] or {}).get("message", run["ended_reason"])),
                outcome=run["result"],
                calls={str(call["key"]): _recorded(call) for call in calls},
                rules=run.get("rules"),
                figures=tuple(_figures(run, calls)),
                has_budget=child.get(HAS_BUDGET),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EvidenceFault(CHILDREN, "a line is not a valid child run") from error


def _recorded(call: Mapping[str, Any]) -> RecordedCall:
    reply = None if call["reply"] is None else read_as(Reply, call["reply"], CHILDREN)
    return RecordedCall(agent=str(call["agent"]), request=call["request"], reply=reply, error=call["error"])


def _figures(run: Mapping[str, Any], calls: Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """Yield the figures of a council that its calls do not give; what it took over from another run it did not pay."""
    own = [call for call in calls if call.get("reused_from") is None]
    yield from (found.where for call in calls for found in call_differences("calls", call))
    if run["origin"] is not None:
        is_told = all(isinstance(call.get(BOOKINGS), list) for call in calls)  # who made which call
        account = replace(account_of(own if is_told else ()), is_exact=False)
        yield from (found.where for found in account.money_differences("run", run["spent"]))
        return
    yield from (found.where for found in account_of(calls).differences("run", run))
    if isinstance(run["result"], Mapping) and run["result"].get("spent") != settled_of(run):
        yield "run/result/spent"


# Reads the replies of a council again: takes its spec, its recorded outcome, its calls, the rules of its run and if a
# budget bounds it (None: nobody knows), returns the outcome that they bear out; raises what does not fit. Councils are
# another feature, so whoever puts the two together brings it.
RetellCouncil = Callable[[Json, Json, Mapping[str, RecordedCall], DefaultRules, bool | None], Any]
HAS_BUDGET = "has_budget"  # of a child: whether anything but the suite's own budget may bound what it spends
# What ended a council, where no reply shows it.
_UNPROVEN = {"stopped": "a person stopped it", "budget": "its money was used up", "time": "its time was used up"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CouncilRetelling:
    """The council that judged one answer, and what reads it again."""

    children: tuple[Mapping[str, Json], ...]
    retell: RetellCouncil | None
    has_budget: bool = False  # of the suite
    flaws: list[str] = field(default_factory=list)  # why the record of the council cannot be right
    unproven: list[str] = field(default_factory=list)  # what of it rests on the signature

    def judgement(self, case: Case, seen: Observation, spec: SuiteSpec, unit: str, version: str) -> Judgement:
        """Return the judgement that the replies of the council come to, by the rules of the recorded one."""
        judge = replace(council_of(spec.judge, spec.council, spec.threshold), version=version)
        if why := missing(case, seen):
            return judge.failed(why)
        key = judge.key(unit)
        found = next((one for child in self.children if (one := RecordedCouncil.of(child)).key == key), None)
        if found is None or self.retell is None:
            why = "its run is not recorded" if found is None else "nobody can read councils again"
            return self._flawed(judge, why, key)
        if found.state != RunState.COMPLETED:
            return without_verdict(judge, key, found.cause)
        question = pose(case, seen)
        if flaw := _flaw(judge, found, judge.spec(question, key)):
            return self._flawed(judge, flaw, key)
        try:
            has_budget = True if self.has_budget else found.has_budget
            outcome = self.retell(found.spec, found.outcome, found.calls, rules_for(version), has_budget)
        except MusterError as error:
            return self._flawed(judge, f"the recorded council cannot be read: {error.message}", key)
        if what := _UNPROVEN.get(outcome["result"]["stop"]["reason"]):
            self.unproven.append(f"the council of {key} ended since {what}, which no reply shows")
        return judgement_of(judge, case, question, outcome, key)

    def _flawed(self, judge: CouncilJudge, why: str, key: str) -> Judgement:
        """Note a flaw of the record: a judgement that says the same of itself does not mend it."""
        self.flaws.append(f"{judge.name}: {why}")
        return judge.failed(why, key)


_SHOWN = 5  # figures that are named


def _flaw(judge: CouncilJudge, found: RecordedCouncil, wanted: Mapping[str, Json]) -> str:
    """Return why a recorded council is not the one that judged."""
    if _without_question(found.spec) != _without_question(wanted):
        return "the council that is recorded is not the one of the policy"
    if text_flaw(str(wanted["question"]), str(found.spec.get("question"))):
        return "the council that is recorded was asked about something else"
    if found.rules is not None and version_of(rules_of(found.rules)) != judge.version:
        return f"the council was held by the default rules of version {found.rules}, and is not read by them"
    if found.has_budget is None and rules_for(judge.version).whole_councils:
        return "it is not recorded whether a budget bounds the council"
    if found.figures:
        return f"figures of the council do not follow from its calls: {', '.join(found.figures[:_SHOWN])}"
    return ""


def _without_question(spec: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in spec.items() if name != "question"}
