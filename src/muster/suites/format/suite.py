"""Suites as they are run: every case resolved, streamed, and refused with file, line and id when something is wrong."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.domain.canonical import Json
from muster.suites.format.filling import FilledCase, filled, verify
from muster.suites.format.forms import CaseForm, HeadForm, RubricForm, is_reason
from muster.suites.format.reading import SuiteReader, WrittenCase
from muster.suites.format.resolve import MAX_ID, CaseResolver, is_usable_id, require_id
from muster.suites.values.case import Case
from muster.suites.values.rules import DEFAULT_THRESHOLD
from muster.text.document_tree import MAX_FLAWS, Flaw, Place, Unreadable

DOMINANT = 0.9  # share of the weights; 0.7 and 0.3 are common, and meant
NOTHING = 1e-9  # a score reaches a threshold that is higher by this, so that such a share does not count

Finding = tuple[Place, str, str]  # where, its code, what

_CONFIG = "evaluator_config"
_ANY_SCORE = "with a threshold of 0 the case passes with any score"
_ANY_ANSWER = "with a golden_threshold of 0 every answer passes"


def lenient(form: CaseForm) -> Iterator[Finding]:
    """Return the thresholds and weights of a case that let a failing answer pass."""
    yield from lenient_thresholds(form)
    if form.expected.rubric:
        yield from _lenient_weights(form)


def lenient_thresholds(form: CaseForm) -> Iterator[Finding]:
    """Return the thresholds of a case that let a failing answer pass; these can be told of a part of a case too."""
    config = form.evaluator_config
    if _is_zero(form.threshold):
        yield ("threshold",), "zero-threshold", _ANY_SCORE
    if _is_zero(config.effectiveness_threshold):
        yield (_CONFIG, "effectiveness_threshold"), "zero-threshold", _ANY_SCORE
    if _is_zero(config.golden_threshold):
        yield (_CONFIG, "golden_threshold"), "zero-threshold", _ANY_ANSWER
    for index, check in enumerate(form.expected.output):
        if _is_zero(check.golden_threshold):
            yield ("expected", "output", index, "golden_threshold"), "zero-threshold", _ANY_ANSWER
    for index, item in enumerate(form.expected.rubric):
        if item.auto_check is not None and _is_zero(item.auto_check.golden_threshold):
            place = ("expected", "rubric", index, "auto_check", "golden_threshold")
            yield place, "zero-threshold", _ANY_ANSWER


def _is_zero(threshold: float | None) -> bool:
    return threshold is not None and threshold <= NOTHING


def _lenient_weights(form: CaseForm) -> Iterator[Finding]:
    rubric = form.expected.rubric
    total = sum(item.weight for item in rubric)
    if total <= 0:  # which is refused
        return
    for index, item in enumerate(rubric):
        place: Place = ("expected", "rubric", index, "weight")
        if item.weight / total <= NOTHING and not item.critical:
            yield place, "weightless-item", f"{item.id} weighs nothing: the case passes also when it fails"
        if _dominates(item, rubric, _threshold(form)):
            what = f"{item.id} weighs so much that the case passes also when every other item fails"
            yield place, "dominant-item", what


def _threshold(form: CaseForm) -> float:
    own = form.evaluator_config.effectiveness_threshold if form.threshold is None else form.threshold
    return DEFAULT_THRESHOLD if own is None else own


def _dominates(item: RubricForm, rubric: list[RubricForm], threshold: float) -> bool:
    """Return whether an item alone reaches the threshold by far; a threshold of 0 is told by itself."""
    others = [other for other in rubric if other is not item]
    weight = sum(other.weight for other in others)
    if threshold <= NOTHING or weight <= 0 or any(other.critical for other in others):
        return False
    return item.weight / (item.weight + weight) >= max(threshold, DOMINANT) - NOTHING


_SHOWN = 3  # reasons that are named in one sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite whose head is sound."""

    name: str
    file: str
    prompt: str | None
    bundle: Mapping[str, Json]
    _reading: SuiteReader = field(repr=False, compare=False)

    @property
    def media(self) -> Mapping[str, Path]:
        """Where the images and documents are that cases show, by digest; of those cases that came by."""
        return self._reading.files.media

    @property
    def doubts(self) -> tuple[Flaw, ...]:
        """What is doubtful in everything but the cases."""
        return tuple(self._reading.doubts)

    def cases(self) -> Iterator[Case]:
        """Yield the cases one by one; raises BadFile at the first that is wrong."""
        for found in resolved(self._reading):
            for flaw in found.flaws if isinstance(found, FilledCase) else (found,):
                raise flaw.error()
            if isinstance(found, FilledCase):
                yield found.case

    def cases_to_run(self) -> Iterator[tuple[Case, tuple[Flaw, ...]]]:
        """Return every case with what was said about it; one that is damaged says so itself and is not asked.

        Raises BadFile when the file cannot be read any further.
        """
        for found in resolved(self._reading):
            if isinstance(found, Flaw):
                raise found.error()
            told = (*found.flaws, *found.doubts)
            reasons = [flaw.message for flaw in told if flaw.breaking]
            yield (replace(found.case, flaw=_reasons(reasons)) if reasons else found.case), told


def _reasons(messages: Sequence[str]) -> str:
    more = f" (and {len(messages) - _SHOWN} more)" if len(messages) > _SHOWN else ""
    return "; ".join(messages[:_SHOWN]) + more


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    """What is in a suite, and what is wrong with it."""

    name: str
    cases: int
    flaws: tuple[Flaw, ...]
    doubts: tuple[Flaw, ...] = ()  # it can be run all the same


def open_suite(path: Path, *, once: bool = False) -> Suite:
    """Open a suite; raises NotFound, or BadFile when its head is wrong or the file cannot be parsed.

    With `once` it may be parsed while its cases are read, and what cannot be parsed is raised then.
    """
    reading = SuiteReader(path, once=once)
    if reading.flaws or reading.head is None:
        raise reading.flaws[0].error()
    return Suite(
        name=reading.name,
        file=reading.file,
        prompt=reading.prompt,
        bundle=reading.head.bundle,
        _reading=reading,
    )


def examine(path: Path, most_doubts: int = MAX_FLAWS) -> Examination:
    """Look through a whole suite and say everything that is wrong with it, up to a bound."""
    reading = SuiteReader(path)
    cases = 0
    flaws: list[Flaw] = []
    doubts = list(reading.doubts[:most_doubts])
    for found in resolved(reading):
        if isinstance(found, Flaw):
            flaws.append(found)
        else:
            cases += not found.flaws
            flaws += found.flaws
            doubts += found.doubts[: most_doubts - len(doubts)]
        if len(flaws) >= MAX_FLAWS:
            del flaws[MAX_FLAWS:]
            flaws.append(Flaw(file=reading.file, message=f"stopped after {MAX_FLAWS} problems"))
            break
    return Examination(name=reading.name, cases=cases, flaws=tuple(flaws), doubts=tuple(doubts))


def resolved(reading: SuiteReader) -> Iterator[FilledCase | Flaw]:
    """Return every case with what is wrong with it, as they come, and the flaws of the file itself."""
    yield from reading.flaws
    seen = _Seen()
    try:
        empty = True
        for written in reading.written():
            empty = False
            for outcome in _resolve(reading, written):
                yield seen.once(outcome)
        if empty and "cases" in reading.tree:
            raise Unreadable("cases: the list is empty", reading.tree.lines["cases"])
    except Unreadable as error:
        yield reading.flaw(error)


def _resolve(reading: SuiteReader, written: WrittenCase) -> Iterator[FilledCase]:
    head, form, diagnostics = reading.head, written.form, written.diagnostics
    if head is None or form is None:
        _look_at_rest(reading, written)
        yield FilledCase.of(_draft(reading, written), diagnostics)
        return
    for place, code, message in lenient(form):
        diagnostics.doubt(place, message, code)
    case = CaseResolver(head, reading.files, reading.file).resolve(form, written.line, diagnostics)
    yield from filled(case, diagnostics, {**head.variables, **form.variables}, form.dataset, reading.files)


def _look_at_rest(reading: SuiteReader, written: WrittenCase) -> None:
    """Complain about everything else in a case that does not fit, or whose head does not: all is told at once."""
    form = written.form or written.rest
    if form is None:
        return
    for place, code, message in lenient_thresholds(form):
        written.diagnostics.doubt(place, message, code)
    head = reading.head or HeadForm(schema_version=1, skill_or_agent="unknown")
    if reading.head is not None and isinstance(written.tree.get("id"), str):
        require_id(form.id, head.skill_or_agent, written.diagnostics.say)
    case = CaseResolver(head, reading.files, reading.file, partial=True).resolve(
        form, written.line, written.diagnostics
    )
    if not (reading.tree.get("variables") or form.variables or form.dataset):
        verify(case, written.diagnostics)


def _draft(reading: SuiteReader, written: WrittenCase) -> Case:
    """Return what can be said of a case that fits no form: enough to choose it, to skip it and to report it."""
    tree = written.tree if isinstance(written.tree, Mapping) else {}
    head = reading.head
    return Case(
        id=_text(tree.get("id")),
        suite=reading.name,
        file=reading.file,
        line=written.line,
        messages=(),
        description=_text(tree.get("description")),
        tags=_texts(tree.get("tags")) or (tuple(head.defaults.tags) if head is not None else ()),
        skip=_text(tree["skip"]) if is_reason(tree.get("skip")) else "",
        agents=_texts(tree.get("agent")) or _texts(tree.get("agents")),
        model_effort=_text(tree.get("model_effort")) or None,
    )


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str) else ""


def _texts(value: Any) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(text for one in listed if (text := _text(one))))


class _Seen:
    """Knows all ids that came by; by their digests, so that many long ones take little room."""

    def __init__(self) -> None:
        self._digests: set[bytes] = set()
        self._renamed = 0

    def once(self, outcome: FilledCase) -> FilledCase:
        """Return a case under an id of its own; one whose id another case has is wrong."""
        case = outcome.case
        usable = is_usable_id(case.id, case.suite)
        if usable and self._is_new(case.id):
            return outcome
        flaws = outcome.flaws
        if usable:
            message = "id: duplicate id of a case"
            flaws = (*flaws, Flaw(file=case.file, line=case.line, case=case.id, message=message))
        return replace(outcome, case=replace(case, id=self._free_id(case)), flaws=flaws)

    def _free_id(self, case: Case) -> str:
        name = f"{case.suite[: MAX_ID // 2]}/line-{case.line}"
        while not self._is_new(name):
            self._renamed += 1
            name = f"{case.suite[: MAX_ID // 2]}/line-{case.line}-{self._renamed}"
        return name

    def _is_new(self, name: str) -> bool:
        digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if digest in self._digests:
            return False
        self._digests.add(digest)
        return True
