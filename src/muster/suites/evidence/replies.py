"""What an archive holds about each result: calls to the agent and to judges, and recorded answers, in their order."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import chain
from typing import Any

from muster.domain.call import Quality, Reply, ToolCall
from muster.domain.canonical import Json
from muster.domain.money import Microdollars
from muster.suites.cases import Unit
from muster.suites.checks.tool_calls import quality_in, use, wants_tools
from muster.suites.evidence.accounts import CallAccount, FigureDifference, account_of, call_differences
from muster.suites.evidence.archive import EvidenceArchive, read_as
from muster.suites.evidence.councils import CouncilRetelling
from muster.suites.evidence.export import keys_of
from muster.suites.evidence.layout import ANSWERS, CALLS, CHILDREN, RUN, EvidenceFault
from muster.suites.evidence.marks import is_marked
from muster.suites.evidence.requests import asked_flaw, judged_flaw
from muster.suites.journal import SuiteSnapshot, case_key
from muster.suites.judge.council import OLDER, VERSION
from muster.suites.judge.rubric import Calls, Heard, retell_command, retell_judge
from muster.suites.recorded import ONLY, observe_recorded
from muster.suites.spec import SuiteSpec
from muster.suites.values.case import Case, Evaluator
from muster.suites.values.rules import ScoringRules
from muster.suites.values.verdict import OUT_OF_TIME, CaseResult, ItemScore, Judgement, Observation

Call = Mapping[str, Any]  # a line of calls.jsonl
MAX_FLAWS = 1000  # of records that are told one by one


def observe(case: Case, calls: Sequence[Call], result: CaseResult, rules: ScoringRules) -> Observation:
    """Return what was observed; what no call can show, such as time that was over, is taken from the result."""
    replies, error = _replies(calls)
    error = error or result.error
    if len(calls) < len(result.keys):
        error = error or {"code": "no_call", "message": "a call of this result is not in the archive"}
    return Observation(
        answers=tuple(reply.text for reply in replies if not wants_tools(case, reply)),
        tool_calls=tuple(call for reply in replies for call in _used(case, reply)),
        quality=_quality(case, replies, rules),
        error=error,
        timed_out=_is_late(error),
        seconds=round(sum(reply.timings.wire for reply in replies), 6),
        cost=Microdollars(sum(reply.cost for reply in replies)),
        input_tokens=sum(reply.usage.all_input for reply in replies),
        output_tokens=sum(reply.usage.output for reply in replies),
        # Results of older archives have no such figure.
        thinking_tokens=sum(reply.usage.thinking for reply in replies) if result.thinking_tokens else 0,
        model=next((reply.model for reply in reversed(replies) if reply.model), ""),
        keys=result.keys,
    )


def _quality(case: Case, replies: Sequence[Reply], rules: ScoringRules) -> Quality:
    """Return the quality of the first reply that is not good: it is not made good by what is said after it."""
    bad = (quality for reply in replies if (quality := quality_in(case, reply, rules)) is not Quality.GOOD)
    return next(bad, Quality.GOOD)


def _replies(calls: Sequence[Call]) -> tuple[list[Reply], Mapping[str, Json] | None]:
    """Return the replies up to the first call that has none, and why it has none."""
    replies: list[Reply] = []
    for call in calls:
        if call.get("reply") is None:
            return replies, call.get("error") or {"code": "no_reply", "message": "there is no reply"}
        replies.append(read_as(Reply, call["reply"], CALLS))
    return replies, None


def _used(case: Case, reply: Reply) -> tuple[ToolCall, ...]:
    """Return the tools that were called, those of the case with what they gave."""
    if not wants_tools(case, reply):
        return reply.tool_calls
    return tuple(use(case.tools, call) for call in reply.tool_calls)


def _is_late(error: Mapping[str, Json] | None) -> bool:
    return error is not None and error.get("code") in OUT_OF_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedVerdict:
    """What the archive holds about one result."""

    case: Mapping[str, Json]  # its line
    asked: tuple[Call, ...] = ()  # of the agent, those that are there
    judged: tuple[Call, ...] = ()
    unheard: tuple[str, ...] = ()  # keys of judgements under which there is nothing
    children: tuple[Mapping[str, Json], ...] = ()  # runs of councils that judged, those that are there
    answers: tuple[Mapping[str, Json], ...] = ()  # recorded, when nobody was asked
    recorded: bool = False  # recorded answers were scored

    def observation(self, case: Case, result: CaseResult, rules: ScoringRules) -> Observation:
        """Return what the agent did."""
        if self.recorded:
            return observe_recorded(case, result.epoch, {_place(one): _text(one) for one in self.answers}, rules)
        return observe(case, self.asked, result, rules)

    def heard(self) -> dict[str, Heard]:
        """Return what judges and commands replied, by key."""
        return {str(call["key"]): _heard(call) for call in self.judged}

    def asked_flaw(self, unit: Unit, spec: SuiteSpec, result: CaseResult, rules: ScoringRules) -> str:
        """Return which request is not the one that the case, or the judge's question about the answer, asks."""
        if not self.recorded and (flaw := asked_flaw(unit, spec, self.asked)):
            return flaw
        if self.unheard:
            return f"nothing is recorded under {min(self.unheard)}, which its judgement names"
        if not self.judged:
            return ""
        return judged_flaw(unit.case, self.observation(unit.case, result, rules), spec, unit.key, self.judged)

    @property
    def redacted(self) -> bool:
        """Return whether a secret was really taken out of any text that the result was made from."""
        return any(map(is_marked, (self.case, *self.asked, *self.judged, *self.children, *self.answers)))


def _place(answer: Mapping[str, Json]) -> str:
    """Return which answer a line of recorded answers is; an older archive has one for each case."""
    return str(answer.get("place", ONLY))


def _text(answer: Mapping[str, Json]) -> str:
    return str(answer.get("text"))


class RecordedReplies:
    """Goes through calls and recorded answers side by side with the results that they belong to."""

    def __init__(self, archive: EvidenceArchive, *, recorded: bool, children: bool) -> None:
        self._calls = archive.stream(CALLS, lambda call: str(call["key"]))
        self._children = archive.stream(CHILDREN, lambda child: str(child["key"])) if children else None
        self._answers = archive.stream(ANSWERS, lambda answer: str(answer["case"])) if recorded else None
        self._of = RecordedVerdict(case={}, recorded=recorded)
        self._own = CallAccount()  # of all calls that were gone through
        self._councils = CallAccount()
        self.flaws: list[FigureDifference] = []  # the first in their records

    def turn_to(self, line: Mapping[str, Json], case: Case) -> None:
        """Go on to the next case."""
        answers = []
        while self._answers is not None and (answer := self._answers.take(case.id)) is not None:
            answers.append(answer)
        self._of = RecordedVerdict(case=line, answers=tuple(answers), recorded=self._of.recorded)

    def hear(self, result: CaseResult) -> RecordedVerdict:
        """Return everything about the next result."""
        found = [self._calls.take(key) for key in keys_of(result)]
        asked, judged = found[: len(result.keys)], found[len(result.keys) :]
        councils = [] if self._children is None else [self._children.take(key) for key in keys_of(result)]
        for call in found:
            self._count(call)
        for child in councils:
            self._count(child)
        return RecordedVerdict(
            case=self._of.case,
            asked=tuple(call for call in asked if call is not None),
            judged=tuple(call for call in judged if call is not None),
            unheard=tuple(set(keys_of(result)[len(asked) :]) - _keys(judged) - _keys(councils)),
            children=tuple(child for child in councils if child is not None),
            answers=self._of.answers,
            recorded=self._of.recorded,
        )

    def unheard(self) -> Iterator[Call]:
        """Return the calls and child runs that belong to no result."""
        for one in chain(self._calls.rest(), () if self._children is None else self._children.rest()):
            self._count(one)
            yield one

    def _count(self, one: Mapping[str, Json] | None) -> None:
        """Add a call, or the calls of a child run, to what the run cost."""
        if one is None:
            return
        if "calls" not in one:
            self._own.add(one)
            self._note(CALLS, one)
            return
        calls, run = one["calls"], one.get("run")
        listed = [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []
        for call in listed:
            self._note(f"{CHILDREN}/{one.get('key')}", call)
        is_whole = isinstance(run, Mapping) and run.get("origin") is None
        self._councils.add_run(account_of(listed) if is_whole else CallAccount(is_exact=False))

    def account_of(self, run: Mapping[str, Json]) -> CallAccount:
        """Return what all calls come to; councils of a run that continues another may have been paid by that one."""
        is_paid = run.get("origin") is None or self._councils == CallAccount()
        account = CallAccount(counts=self._own.counts, has_bookings=self._own.has_bookings)
        account.add_run(self._own)
        account.add_run(self._councils if is_paid else CallAccount(is_exact=False))
        return account

    def _note(self, where: str, call: Call) -> None:
        if len(self.flaws) < MAX_FLAWS:
            self.flaws += call_differences(where, call)


def _keys(found: Iterable[Mapping[str, Json] | None]) -> set[str]:
    return {str(one["key"]) for one in found if one is not None}


def _heard(call: Call) -> Heard:
    reply, error = call.get("reply"), call.get("error")
    return Heard(
        reply=None if reply is None else read_as(Reply, reply, CALLS),
        error=error if isinstance(error, Mapping) else None,
    )


_SHOWN = 80  # characters of a value


def retold(
    case: Case,
    seen: Observation,
    result: CaseResult,
    spec: SuiteSpec,
    evaluators: Sequence[Evaluator],
    calls: Calls,
    council: CouncilRetelling,
    rules: ScoringRules,
) -> dict[Evaluator, Judgement]:
    """Return what judges and commands said about an answer, from their replies; nothing without an answer."""
    if case.skip or case.flaw or seen.error is not None:
        return {}
    key = case_key(result.case, result.subject, result.epoch)
    said = {}
    if Evaluator.PROCESS in evaluators:
        said[Evaluator.PROCESS] = retell_command(case, calls, key=key, rules=rules)
    if Evaluator.JUDGE in evaluators and spec.judge_file is not None:
        said[Evaluator.JUDGE] = council.judgement(case, seen, spec, key, _council_version(result))
    elif Evaluator.JUDGE in evaluators:
        said[Evaluator.JUDGE] = retell_judge(
            case,
            seen,
            calls,
            judge=spec.judge,
            samples=spec.judge_samples,
            key=key,
            threshold=spec.threshold,
        )
    return said


def _council_version(result: CaseResult) -> str:
    """Return the rules by which a council was read: the recorded ones if they are older, else those of today."""
    recorded = {one.version for one in result.judgements}
    return next((older for older in OLDER if older in recorded), VERSION)


def unsaid(was: Sequence[Judgement], now: Sequence[Judgement]) -> str:
    """Return which judgement the replies do not support; empty when they support all of them."""
    if len(was) != len(now):
        return f"{len(was)} judgements are recorded, but there are replies for {len(now)}"
    for recorded, told in zip(was, now, strict=True):
        if found := _unlike(recorded, told):
            where, left, right = found
            by = told.by or recorded.by or "an unnamed judge"
            return f"the replies of {by} do not support its judgement:{where} is {left}, and they give {right}"
    return ""


def _unlike(was: Judgement, now: Judgement) -> tuple[str, str, str] | None:
    """Find what differs; failures first, since all else follows from them.

    The version says how a judge was asked: its replies can be read also when judges are asked otherwise by now.
    """
    return _first(was.failures, now.failures, " failures") or _first(replace(was, version=now.version), now, "")


def _first(was: Any, now: Any, where: str) -> tuple[str, str, str] | None:
    """Find the first place where two judgements differ."""
    if was == now:
        return None
    if is_dataclass(was) and type(was) is type(now):
        inner = ((f"{where} {field.name}", getattr(was, field.name), getattr(now, field.name)) for field in fields(was))
    elif isinstance(was, tuple) and len(was) == len(now):
        inner = ((f"{where} {place}", *pair) for place, pair in enumerate(zip(was, now, strict=True), 1))
    else:
        return where, _short(was), _short(now)
    return next((found for name, left, right in inner if (found := _first(left, right, name))), None)


def _short(value: object) -> str:
    text = "; ".join(map(_name, value)) if isinstance(value, tuple) else str(value)
    return (text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…") or "nothing"


def _name(value: object) -> str:
    return f"{value.id} {value.score}" if isinstance(value, ItemScore) else str(value)


MAX_SUBJECTS = 10_000  # of one case; nobody tests more, and a forged spec must not keep anybody busy for ever


class UnitRoll:
    """The units of one case; each must be judged once."""

    def __init__(self, labels: Mapping[str, None], epochs: int) -> None:
        self._labels, self._epochs = labels, epochs
        self._seen: set[tuple[str, int]] = set()

    def tick(self, result: CaseResult) -> str:
        """Tick a verdict off, and say what is wrong with its being there."""
        if result.subject not in self._labels or not 1 <= result.epoch <= self._epochs:
            return "unexpected verdict: the run has no such subject, or no such epoch"
        unit = (result.subject, result.epoch)
        if unit in self._seen:
            return "duplicate verdict: there is another one for the same case"
        self._seen.add(unit)
        return ""

    @property
    def missing(self) -> int:
        """How many units have no verdict."""
        return len(self._labels) * self._epochs - len(self._seen)

    def gaps(self) -> Iterator[tuple[str, int]]:
        """Return the units without a verdict, one after the other."""
        units = ((label, epoch) for label in self._labels for epoch in range(1, self._epochs + 1))
        return (unit for unit in units if unit not in self._seen)


class EvidenceUnits:
    """The units of a run, and which of them a verdict mentions."""

    def __init__(self, spec: SuiteSpec, snapshot: SuiteSnapshot) -> None:
        self._spec, self._snapshot = spec, snapshot
        self._usual: Mapping[str, None] | None = None
        self._mentioned: set[bytes] = set()  # by digest: the keys of 100,000 units would fill the memory

    def roll(self, case: Case) -> UnitRoll:
        """Return the units of a case."""
        if case.has_own_subjects or case.flaw:
            return UnitRoll(self._labels(case), self._spec.epochs)
        if self._usual is None:
            self._usual = self._labels(case)
        return UnitRoll(self._usual, self._spec.epochs)

    def mention(self, result: CaseResult) -> None:
        """Note that there is a verdict on a unit."""
        key = case_key(result.case, result.subject, result.epoch)
        self._mentioned.add(_digest(hashlib.sha256(_bytes(key))))

    def mentions(self, key: str) -> bool:
        """Return whether a call stands below a unit that has a verdict; every beginning of its key may be that unit."""
        beginning = hashlib.sha256()
        for place, part in enumerate(key.split("/")):
            beginning.update(_bytes(f"/{part}" if place else part))
            if _digest(beginning) in self._mentioned:
                return True
        return False

    def _labels(self, case: Case) -> Mapping[str, None]:
        agents, prompts = case.agents or self._spec.agents, self._snapshot.prompts
        if len(agents) * max(1, len(prompts)) > MAX_SUBJECTS:
            raise EvidenceFault(RUN, f"a case is run with more than {MAX_SUBJECTS:,} subjects")
        return dict.fromkeys(subject.label for subject in self._spec.tested_on(case, self._snapshot))


def _digest(of: "hashlib._Hash") -> bytes:
    return of.digest()[:16]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
