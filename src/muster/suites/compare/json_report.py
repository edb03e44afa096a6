"""A comparison as JSON: whole, or the pairs that it rests on, page by page."""

from collections.abc import Mapping, Sequence
from dataclasses import fields

from muster.domain.case import Status
from muster.domain.money import Microdollars, to_usd
from muster.domain.run import RunState
from muster.statistics.intervals import Interval
from muster.statistics.sample_size import Needed
from muster.suites.compare.pairs import ComparedPair, PairPage
from muster.suites.compare.report import comparison_markdown
from muster.suites.compare.runs import RunComparison, Side, SubjectComparison
from muster.suites.compare.values import Change, ComparisonVerdict, Gate, Noticing, PairChange
from muster.text.views import UNSET, UnsetType, View

_LISTS = ("regressions", "improvements", "new")


class SideView(View):
    """One of the two runs."""

    name: str
    run: str
    run_name: str | None
    state: RunState
    subject: str | None


class PairView(View):
    """One epoch of a case in both runs."""

    case: str
    epoch: int
    subject_a: str
    subject_b: str
    change: PairChange
    reason: str
    before: Status | None
    after: Status | None
    before_score: float | None
    after_score: float | None
    same_answer: bool | None


class PairPageView(View):
    """Some pairs, and how many there are of each change."""

    a: SideView
    b: SideView
    counts: Mapping[PairChange, int]
    pairs: Sequence[PairView]
    next: str | None


class NewCaseView(View):
    """An epoch of a case that only B has."""

    case: str
    epoch: int


class NoticingView(View):
    """How often runs like these would show a drop of the pass rate."""

    drop: float
    power: float
    possible: bool
    more_cases: int | None
    more_epochs: int | None
    cases_cost_usd: float | None
    epochs_cost_usd: float | None


class SubjectComparisonView(View):
    """What is said about one subject; `counts` tells how long lists are that may be cut."""

    subject_a: str
    subject_b: str | None
    verdict: ComparisonVerdict
    why: str
    threshold: float
    alpha: float
    cases: int
    pairs: int
    pass_p: float
    pass_before: float | None
    pass_after: float | None
    pass_difference: float | None
    pass_interval: Interval | None
    score_p: float
    score_before: float | None
    score_after: float | None
    score_difference: float | None
    score_interval: Interval | None
    regressions: Sequence[Change]
    improvements: Sequence[Change]
    no_result: int
    new: Sequence[NewCaseView]
    new_failed: int
    left_out: int
    compared: int
    margin: float | None
    pass_at_least: float | None
    score_at_least: float | None
    needed: Needed | None
    contradictory: bool
    noticing: NoticingView | None
    cases_worse: int
    cases_better: int
    counts: Mapping[str, int]


class ComparisonView(View):
    """All that is said about B in the light of A; if asked for, in Markdown too."""

    verdict: ComparisonVerdict
    gate: Gate
    ok: bool
    why: str
    a: SideView
    b: SideView
    notes: Sequence[str]
    subjects: Sequence[SubjectComparisonView]
    markdown: str | UnsetType = UNSET


def comparison_view(
    comparison: RunComparison, *, markdown: bool = False, most_changes: int | None = None
) -> ComparisonView:
    """Return a comparison; if asked for, with its Markdown, or with the first changed cases of each subject only."""
    return ComparisonView(
        verdict=comparison.verdict,
        gate=comparison.gate,
        ok=comparison.ok,
        why=comparison.why,
        a=_side_view(comparison.a),
        b=_side_view(comparison.b),
        notes=comparison.notes,
        subjects=[_subject_view(subject, most_changes) for subject in comparison.subjects],
        markdown=comparison_markdown(comparison) if markdown else UNSET,
    )


def _side_view(side: Side) -> SideView:
    run = side.suite.run
    return SideView(name=side.name, run=run.id, run_name=run.name, state=run.state, subject=side.subject)


def _subject_view(subject: SubjectComparison, most: int | None) -> SubjectComparisonView:
    compared = subject.comparison
    figures = {field.name: getattr(compared, field.name) for field in fields(compared)}
    worse, better = figures.pop("b"), figures.pop("c")
    lists = {name: figures.pop(name) for name in _LISTS}
    noticing = figures.pop("noticing")
    return SubjectComparisonView(
        **figures,
        subject_a=subject.before,
        subject_b=subject.after,
        regressions=lists["regressions"][:most],
        improvements=lists["improvements"][:most],
        new=[NewCaseView(case=case, epoch=epoch) for case, epoch in lists["new"][:most]],
        noticing=None if noticing is None else _noticing_view(noticing),
        cases_worse=worse,
        cases_better=better,
        counts={name: len(changes) for name, changes in lists.items()},
    )


def _noticing_view(noticing: Noticing) -> NoticingView:
    return NoticingView(
        drop=noticing.drop,
        power=noticing.power,
        possible=noticing.possible,
        more_cases=noticing.more_cases,
        more_epochs=noticing.more_epochs,
        cases_cost_usd=_usd(noticing.cases_cost),
        epochs_cost_usd=_usd(noticing.epochs_cost),
    )


def _usd(amount: Microdollars | None) -> float | None:
    return None if amount is None else to_usd(amount)


def pair_page_view(page: PairPage) -> PairPageView:
    """Return a page of pairs."""
    return PairPageView(
        a=_side_view(page.a),
        b=_side_view(page.b),
        counts=page.counts,
        pairs=[_pair_view(pair) for pair in page.pairs],
        next=page.next,
    )


def _pair_view(pair: ComparedPair) -> PairView:
    before, after = pair.before, pair.after
    return PairView(
        case=pair.case,
        epoch=pair.epoch,
        subject_a=pair.subject_a,
        subject_b=pair.subject_b,
        change=pair.change,
        reason=pair.reason,
        before=None if before is None else before.status,
        after=None if after is None else after.status,
        before_score=None if before is None else before.score,
        after_score=None if after is None else after.score,
        same_answer=pair.same_answer,
    )
