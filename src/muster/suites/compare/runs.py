"""Two suite runs compared, subject by subject, from what stands in their stores."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.domain.canonical import canonical
from muster.domain.errors import BadArgument, NotFound, state_verb
from muster.domain.money import Microdollars
from muster.domain.run import RunState
from muster.suites.compare.test import ALPHA, NOTICE, THRESHOLD, compare
from muster.suites.compare.values import Change, Comparison, ComparisonVerdict, EpochOutcome, Gate
from muster.suites.reports.run import SuiteRun
from muster.suites.values.verdict import CaseResult
from muster.text import typed

__all__ = [
    "Change",
    "Comparison",
    "ComparisonTerms",
    "ComparisonVerdict",
    "RunComparison",
    "Side",
    "SubjectComparison",
    "compare_runs",
]


# From the worst on: of several subjects the worst counts.
_WORST_FIRST = (
    ComparisonVerdict.WORSE,
    ComparisonVerdict.UNSURE,
    ComparisonVerdict.NOT_WORSE,
    ComparisonVerdict.BETTER,
    ComparisonVerdict.SAME,
)
GOOD = frozenset({ComparisonVerdict.BETTER, ComparisonVerdict.SAME, ComparisonVerdict.NOT_WORSE})


_EVERYTHING = (None, (), None)  # filter, tags and ids of a run that leaves out no case
_WORST_GATE_FIRST = (Gate.FAILED, Gate.BLIND, Gate.PASSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two runs, by the name that a person gave, and the one subject of it that is meant, if one is."""

    name: str
    suite: SuiteRun
    subject: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonTerms:
    """How sure one wants to be: differences below the threshold do not matter, false alarms are rarer than alpha.

    With a margin it is asked whether B is not worse by more than that. An inconclusive result passes if the two runs
    would have noticed a drop of the pass rate by `notice`, and without a margin; `accept_unsure` overrides that.
    """

    threshold: float = THRESHOLD
    alpha: float = ALPHA
    margin: float | None = None
    notice: float = NOTICE
    accept_unsure: bool | None = None

    def __post_init__(self) -> None:
        """Refuse what is no share."""
        if not 0 <= self.threshold < 1:
            raise BadArgument(f"must be at least 0 and less than 1, not {self.threshold:g}", argument="threshold")
        if not 0 < self.alpha < 1:
            raise BadArgument(f"must be between 0 and 1, not {self.alpha:g}", argument="alpha")
        if self.margin is not None and not 0 < self.margin < 1:
            raise BadArgument(f"must be between 0 and 1, for example 0.05, not {self.margin:g}", argument="margin")
        if not 0 < self.notice < 1:
            raise BadArgument(f"must be between 0 and 1, for example 0.20, not {self.notice:g}", argument="notice")


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectComparison:
    """One subject of A against one of B; None: B does not have it."""

    before: str
    after: str | None
    comparison: Comparison


@dataclass(frozen=True, slots=True, kw_only=True)
class RunComparison:
    """All that is said about B in the light of A."""

    a: Side
    b: Side
    subjects: tuple[SubjectComparison, ...]
    notes: tuple[str, ...]
    terms: ComparisonTerms

    @property
    def verdict(self) -> ComparisonVerdict:
        """The worst that is said about any subject."""
        found = {one.comparison.verdict for one in self.subjects}
        return next(verdict for verdict in _WORST_FIRST if verdict in found)

    @property
    def why(self) -> str:
        """What the verdict rests on."""
        worst = [one for one in self.subjects if one.comparison.verdict is self.verdict]
        telling = min(worst, key=lambda one: _WORST_GATE_FIRST.index(self._gate_of(one.comparison)))
        if len(self.subjects) == 1:
            return telling.comparison.why
        return f"{telling.before}: {telling.comparison.why}"

    @property
    def gate(self) -> Gate:
        """Return whether B can take the place of A: the worst that is decided about any subject."""
        return min((self._gate_of(one.comparison) for one in self.subjects), key=_WORST_GATE_FIRST.index)

    @property
    def ok(self) -> bool:
        """Return whether B can take the place of A."""
        return self.gate is Gate.PASSED

    def _gate_of(self, found: Comparison) -> Gate:
        """Decide on one subject; where nothing has a result in both, it never passes."""
        if found.verdict in GOOD:
            return Gate.PASSED
        if found.verdict is ComparisonVerdict.WORSE or not found.compared:
            return Gate.FAILED
        if self.terms.accept_unsure is not None:
            return Gate.PASSED if self.terms.accept_unsure else Gate.FAILED
        if self.terms.margin is not None or found.contradictory or not self._whole(found):
            return Gate.FAILED
        return Gate.PASSED if found.noticing is not None and found.noticing.enough else Gate.BLIND

    def _whole(self, found: Comparison) -> bool:
        """Return whether both runs ended, and what was asked has a result in both; new cases are only in B."""
        ended = all(side.suite.run.state is RunState.COMPLETED for side in (self.a, self.b))
        return ended and found.compared == found.pairs and not (found.new and _left_out(self.a.suite, self.b.suite))


Outcomes = dict[tuple[str, int], EpochOutcome]


async def compare_runs(a: Side, b: Side, terms: ComparisonTerms) -> RunComparison:
    """Compare two runs, each subject with the one of the same label."""
    before, after = await outcomes_of(a.suite), await outcomes_of(b.suite)
    pairs = paired_subjects(a, b, before, after)
    # Shared between the subjects: with nothing changed the whole comparison sounds an alarm no more often than alpha.
    alpha = terms.alpha / len(pairs)
    subjects = tuple(
        SubjectComparison(
            before=one,
            after=other if other in after else None,
            comparison=compare(
                before[one],
                after.get(other, {}),
                threshold=terms.threshold,
                alpha=alpha,
                margin=terms.margin,
                drop=terms.notice,
                left_out=_left_out(a.suite, b.suite),
            ),
        )
        for one, other in pairs
    )
    notes = (*_subject_notes(pairs, before, after), *await notes_on(a.suite, b.suite))
    return RunComparison(a=a, b=b, subjects=subjects, notes=notes, terms=terms)


def _left_out(a: SuiteRun, b: SuiteRun) -> str:
    """Return why cases of B may be missing in A although they are not new; empty when neither run was narrowed."""
    if a.run.state is not RunState.COMPLETED:
        return f"A {state_verb(a.run.state)}"
    chosen, other = ((spec.filter, tuple(spec.tags), spec.only) for spec in (a.spec, b.spec))
    return "" if chosen in (other, _EVERYTHING) else "A was run with another filter, other tags or some cases only"


async def outcomes_of(suite: SuiteRun) -> dict[str, Outcomes]:
    """Read how every epoch of every case ended, by subject; subjects without any result are there too."""
    found: dict[str, Outcomes] = {subject.label: {} for subject in suite.subjects}
    async for result in suite.results():
        found.setdefault(result.subject, {})[result.case, result.epoch] = _outcome(result)
    return found


def _outcome(result: CaseResult) -> EpochOutcome:
    cost = Microdollars(result.cost + result.judge_cost)
    return EpochOutcome(status=result.status, score=result.score, cost=cost, keys=result.keys)


def paired_subjects(
    a: Side, b: Side, before: Mapping[str, Outcomes], after: Mapping[str, Outcomes]
) -> list[tuple[str, str]]:
    """Return which subject is compared with which."""
    if a.subject is not None or b.subject is not None:
        return [(_chosen(a, before, b.subject), _chosen(b, after, a.subject))]
    if len(before) == len(after) == 1:
        return [(next(iter(before)), next(iter(after)))]
    if not before.keys() & after.keys():
        raise BadArgument(
            f"{a.name} and {b.name} have no subject in common: {_listed(before)} and {_listed(after)}",
            suggestions=(
                f"muster compare {a.name}:{next(iter(before), 'SUBJECT')} {b.name}:{next(iter(after), 'SUBJECT')}",
            ),
        )
    return [(label, label) for label in before]


def _chosen(side: Side, found: Mapping[str, Outcomes], other: str | None) -> str:
    """Return the subject that is meant: the one that was named, the only one, or the one like the other side's."""
    if side.subject is None and len(found) == 1:
        return next(iter(found))
    wanted = side.subject or other or ""
    if wanted not in found:
        raise NotFound(f"{side.name} has no subject {wanted!r}", suggestions=(f"its subjects: {_listed(found)}",))
    return wanted


def _listed(found: Mapping[str, Outcomes]) -> str:
    return ", ".join(found) or "none"


def _subject_notes(
    pairs: Sequence[tuple[str, str]], before: Mapping[str, Outcomes], after: Mapping[str, Outcomes]
) -> list[str]:
    notes = [f"{one} in A is compared with {other} in B" for one, other in pairs if one != other]
    if len(pairs) > 1 or len(before) > 1:
        notes += [
            f"{label} is not in B; to leave it out, choose another one with --subject"
            for label in before
            if label not in after
        ]
    if len(pairs) > 1:
        notes += [f"{label} exists only in B and is not compared" for label in after if label not in before]
    return notes


# What a spec says, and how it is called.
_SETTINGS = {
    "judge": "the judge",
    "judge_samples": "the judge samples",
    "evaluator": "the evaluator",
    "threshold": "the threshold",
    "epochs": "the number of epochs",
    "filter": "the filter",
    "tags": "the tags",
    "max_tokens": "max_tokens",
    "temperature": "the temperature",
    "seed": "the seed",
}


async def notes_on(a: SuiteRun, b: SuiteRun) -> tuple[str, ...]:
    """Return everything that is different except the answers."""
    if a.run.id == b.run.id:
        return tuple(await _unfinished("it", a))
    return (
        *await _unfinished("A", a),
        *await _unfinished("B", b),
        *await _cases(a, b),
        *_prompts(a, b),
        *_settings(a, b),
        *_versions(a, b),
    )


async def _unfinished(side: str, suite: SuiteRun) -> list[str]:
    if suite.run.state is RunState.COMPLETED:
        return []
    done = sum([1 async for _ in suite.results()])
    return [f"{side} {state_verb(suite.run.state)}: it has only {done:,} results"]


async def _cases(a: SuiteRun, b: SuiteRun) -> list[str]:
    """Compare the cases themselves, when some suite is not the same."""
    if [_suite(info) for info in a.snapshot.suites] == [_suite(info) for info in b.snapshot.suites]:
        return []
    before, after = await _digests(a), await _digests(b)
    counts = {
        "new": len(after.keys() - before.keys()),
        "gone": len(before.keys() - after.keys()),
        "changed": sum(after[case] != digest for case, digest in before.items() if case in after),
    }
    told = [f"{number:,} {_noun(number)} {word}" for word, number in counts.items() if number]
    return [f"the suite changed: {', '.join(told)}"] if told else []


def _suite(info: Any) -> tuple[str, str]:
    return info.name, info.digest


def _noun(number: int) -> str:
    return "case" if number == 1 else "cases"


async def _digests(suite: SuiteRun) -> dict[str, bytes]:
    """Name each case by what it asks and expects, wherever it stands."""
    found = {}
    async for case in suite.cases():
        content = canonical(typed.to_builtins(replace(case, file="", line=0)))
        found[case.id] = hashlib.sha256(content).digest()[:8]
    return found


def _prompts(a: SuiteRun, b: SuiteRun) -> Iterator[str]:
    before, after = _prompt_texts(a), _prompt_texts(b)
    for name in before:
        if name in after and before[name] != after[name]:
            yield f"{name} changed"


def _prompt_texts(suite: SuiteRun) -> Mapping[str, str]:
    beside = {f"the prompt beside {info.name}": info.prompt or "" for info in suite.snapshot.suites}
    return beside | {f"the prompt {prompt.name}": prompt.text for prompt in suite.snapshot.prompts}


def _settings(a: SuiteRun, b: SuiteRun) -> Iterator[str]:
    for name, title in _SETTINGS.items():
        before, after = getattr(a.spec, name), getattr(b.spec, name)
        if before != after:
            yield f"{title}: {_shown(before)} in A, {_shown(after)} in B"
    if a.spec.judge == b.spec.judge and a.spec.council != b.spec.council:
        yield f"the policy of {a.spec.judge} changed"


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _versions(a: SuiteRun, b: SuiteRun) -> Iterator[str]:
    before, after = _version(a), _version(b)
    if before != after:
        yield f"run by Muster {before or 'unknown'} in A, {after or 'unknown'} in B"


def _version(suite: SuiteRun) -> str:
    packages = suite.environment.get("packages")
    return str(packages.get("muster-ai") or "") if isinstance(packages, Mapping) else ""
