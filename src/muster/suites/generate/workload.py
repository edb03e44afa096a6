"""Cases written by a model: asked for in rounds until there are enough, validated, and none nearly twice.

What a model writes is data. It is never run or expanded, and names no file, command or agent.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any

from muster.domain.call import Quality, Reply
from muster.domain.canonical import Json
from muster.domain.errors import BadOutput, CallFailed, RetriesExhausted, TryLater, WireError
from muster.domain.flaw import FieldFlaw
from muster.domain.order import field_flaws
from muster.engine.context import Context
from muster.engine.workload import workload
from muster.suites.generate.draft import (
    GenerationSubject,
    KnownCases,
    RejectedCase,
    asked_in,
    draft_of,
    prove,
    question_for,
    spoken,
    the_suite,
)
from muster.suites.kind import GENERATION
from muster.suites.order import GenerationFields
from muster.text import typed
from muster.text.declared_values import read_value
from muster.text.json_documents import find

A_ROUND = 10  # cases that are asked for at once
_TOLD = 5  # reasons that a model is told
_MAX_LINE = 200


class Known(typed.Struct, frozen=True):
    """What is there before the first round."""

    skill: str
    prompt: str = ""
    cases: tuple[tuple[str, str, str], ...] = ()  # id, description, what is asked


class GeneratedCases:
    """All cases that are there: known before, taken, rejected."""

    def __init__(self, known: Known, description: str) -> None:
        self._known, self._description = known, description
        self._ids = {id_ for id_, _, _ in known.cases}
        self._crowd = KnownCases()
        for id_, _, text in known.cases:
            self._crowd.add(id_, text)
        self.cases: list[dict[str, Any]] = []
        self.rejected: Counter[str] = Counter()
        self.reasons: list[str] = []  # of the last round
        self.all_reasons: list[str] = []

    def missing(self, count: int) -> int:
        """Return how many cases are still to be written."""
        return count - len(self.cases)

    def subject(self) -> GenerationSubject:
        """Return what the next cases are for."""
        there = [(id_, description) for id_, description, _ in self._known.cases]
        there += [(case["id"], case["description"]) for case in self.cases]
        lines = tuple(f"{id_}: {' '.join(description.split())}"[:_MAX_LINE] for id_, description in there)
        known = self._known
        return GenerationSubject(skill=known.skill, description=self._description, prompt=known.prompt, there=lines)

    def take(self, reply: Reply, count: int) -> int:
        """Take what is good of a reply; returns how many that were."""
        before, self.reasons = len(self.cases), []
        try:
            written = _written(reply)
        except RejectedCase as rejected:
            self.spoil(rejected.why)
            return 0
        for place, case in enumerate(written[: 2 * A_ROUND], 1):
            if not self.missing(count):
                break
            try:
                self._take(case)
            except RejectedCase as rejected:
                self._reject(f"case {place}", rejected)
        return len(self.cases) - before

    def spoil(self, why: str) -> None:
        """Note a reply of which nothing can be used."""
        self.reasons = []
        self._reject("the reply", RejectedCase("unusable reply", why))

    def _take(self, written: Json) -> None:
        case = draft_of(written)
        case["id"] = self._name(case.get("id") or "case")
        twin = self._crowd.alike(asked_in(case))
        if twin is not None:
            raise RejectedCase("near-duplicate", f"it asks nearly the same as {twin}")
        prove(self._known.skill, case)
        self._crowd.add(case["id"], asked_in(case))
        self._ids.add(case["id"])
        self.cases.append(case)

    def _name(self, name: str) -> str:
        """Return an id that no other case has."""
        wanted = unused = f"{self._known.skill}/{name}"
        number = 1
        while unused in self._ids:
            number += 1
            unused = f"{wanted}-{number}"
        return unused

    def _reject(self, what: str, rejected: RejectedCase) -> None:
        self.rejected[rejected.kind] += 1
        reason = f"{what}: {rejected.why}"[:_MAX_LINE]
        self.all_reasons.append(reason)
        if len(self.reasons) < _TOLD:
            self.reasons.append(reason)


def _written(reply: Reply) -> list[Json]:
    """Return the cases in a reply."""
    if reply.quality is not Quality.GOOD:
        raise RejectedCase("unusable reply", f"it was {reply.quality}")
    try:
        found = find(reply.text, lambda value: isinstance(value.get("cases"), list))
    except BadOutput as error:
        raise RejectedCase("unusable reply", error.message) from error
    if found is None:
        raise RejectedCase("unusable reply", 'it holds no JSON object with the key "cases"')
    cases: list[Json] = found["cases"]
    return cases


NO_GENERATION = "not a valid spec for generating cases"
_FRUITLESS = 2  # rounds without a single case, after which nothing more is to be hoped for
_SPARE = 3  # rounds for what is rejected, besides twice those that are needed when all is taken
_KEPT = 100  # reasons that are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSpec(GenerationFields):
    """What is to be written, and by whom."""

    extend: str = ""  # the folder or file of a suite, instead of a new skill


def _read(spec: Any) -> GenerationSpec:
    return read_value(spec, GenerationSpec, about=NO_GENERATION, rules=_flaws)


def _flaws(spec: GenerationSpec) -> Iterator[FieldFlaw]:
    yield from field_flaws(spec)
    if bool(spec.extend) == bool(spec.skill):
        yield FieldFlaw(path="extend", message="give either a new skill or a suite to extend, not both", by_itself=True)


@workload(GENERATION.workload, check=_read)
async def generate(ctx: Context, spec: Any) -> Json:
    """Have cases written; gives those that were taken, and why others were not."""
    wanted = _read(spec)
    known = typed.convert(await ctx.step("known", lambda: typed.to_builtins(_look(wanted))), Known)
    generated = GeneratedCases(known, wanted.description)
    failure, number, fruitless = "", 0, 0
    most = _SPARE + 2 * ceil(wanted.count / A_ROUND)
    while generated.missing(wanted.count) and number < most and fruitless < _FRUITLESS and not failure:
        number += 1
        request = question_for(generated.subject(), min(A_ROUND, generated.missing(wanted.count)), generated.reasons)
        taken = 0
        try:
            taken = generated.take(await ctx.call(wanted.agent, request, key=f"round/{number}"), wanted.count)
        except (CallFailed, TryLater) as error:
            failure = _failure(error, generated)
        fruitless = 0 if taken else fruitless + 1
    return {
        "skill": known.skill,
        "asked": wanted.count,
        "cases": generated.cases,
        "rounds": number,
        "rejected": dict(generated.rejected),
        "reasons": generated.all_reasons[:_KEPT],
        "failure": failure,
    }


def _look(spec: GenerationSpec) -> Known:
    """See what is there already."""
    if not spec.extend:
        return Known(skill=spec.skill)
    suite = the_suite(spec.extend)
    cases = tuple((case.id, case.description, spoken(case)) for case in suite.cases())
    return Known(skill=suite.name, prompt=suite.prompt or "", cases=cases)


def _failure(error: WireError, generated: GeneratedCases) -> str:
    """Return why generation cannot continue; an answer of a program in another shape is only rejected.

    It is told as the journal has it, so that a replay says the same.
    """
    cause = error.last if isinstance(error, RetriesExhausted) else error
    record = cause.record()
    message = str(record.get("message", "the call failed"))
    if record.get("code") != BadOutput.code:
        return message
    generated.spoil(message)
    return ""
