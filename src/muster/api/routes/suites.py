"""Suites: started by their names in the library, compared, and reviewed."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from muster.api.bodies import ReviewBody
from muster.api.dependencies import Audit, Opened, PageLimit, RunReference, needs
from muster.api.json_route import JsonRoute
from muster.app.suites.reviews import ReviewDraft
from muster.app.suites.values import (
    ComparisonTerms,
    ComparisonView,
    PairChange,
    PairFilter,
    PairPageView,
    RowFilter,
    comparison_view,
)
from muster.app.views.runs import PreviousRunView, run_view
from muster.app.views.service import AgentsView, LibraryView, agents_view, library_view
from muster.app.views.suites import (
    BaselinesView,
    CasePageView,
    ReviewsView,
    ReviewView,
    SuiteSummaryView,
    TestedSubjectsView,
    TrendView,
    WholeCaseView,
    baseline_view,
    case_page_view,
    review_view,
    reviews_view,
    shown_pairs,
    subjects_view,
    suite_summary_view,
    trend_view,
    whole_case_view,
)
from muster.domain.case import Status

router = APIRouter(tags=["suites"], route_class=JsonRoute)
READ = [needs("read")]
Share = Annotated[float, Query(gt=0, lt=1)]
SideReference = Annotated[
    str, Query(min_length=1, max_length=400, description="A run or a baseline, or NAME:SUBJECT for one subject of it.")
]
SubjectName = Annotated[str | None, Query(max_length=200)]


@router.get("/api/agents", dependencies=READ)
async def list_agents(muster: Opened) -> AgentsView:
    """Return the agents that requests may name, which of them are persons, and the budget of a run without one."""
    people, cap = muster.library.people, muster.settings.run_cap
    return agents_view(muster.library.agents, people, cap)


@router.get("/api/library", dependencies=READ)
async def list_library(muster: Opened) -> LibraryView:
    """Return the suites, chains and councils that requests may name."""
    return library_view(muster.library.items())


@router.get("/api/suites/trend", dependencies=READ)
async def suite_trend(muster: Opened, run: RunReference, limit: PageLimit = 30) -> TrendView:
    """Return what the newest suite runs of the same name came to, the oldest of them first; which are baselines."""
    return trend_view(await muster.suites.trend(run, limit))


@router.get("/api/suites/{run_id}/previous", dependencies=READ)
async def previous_run(muster: Opened, run_id: str) -> PreviousRunView:
    """Return the completed run of the same suites and name before a suite run; null when there is none."""
    found = await muster.suites.before(run_id)
    return PreviousRunView(run=None if found is None else run_view(found))


@router.get("/api/suites/{run_id}/summary", dependencies=READ)
async def suite_summary(muster: Opened, run_id: str) -> SuiteSummaryView:
    """Return the figures of a suite run: its report without the cases."""
    return suite_summary_view(await muster.suites.results.summary(run_id))


@router.get("/api/suites/{run_id}/subjects", dependencies=READ)
async def list_subjects(muster: Opened, run_id: str) -> TestedSubjectsView:
    """Return who was tested in a suite run: agents, under prompts where it has several."""
    return subjects_view(await muster.suites.results.subjects(run_id))


@router.get("/api/suites/{run_id}/cases", dependencies=READ)
async def list_cases(
    muster: Opened,
    run_id: str,
    status: Annotated[list[Status] | None, Query(max_length=20)] = None,
    subject: SubjectName = None,
    search: Annotated[str, Query(max_length=200, description="Looked for in ids, texts, tags and reasons.")] = "",
    differing: Annotated[bool, Query(description="Only cases whose status differs between subjects.")] = False,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the page before.")] = None,
    limit: PageLimit = 100,
) -> CasePageView:
    """Return a page of the cases of a suite run, each under each subject, in the order of the suite."""
    wanted = RowFilter(statuses=frozenset(status or ()), subject=subject, search=search, differing=differing)
    return case_page_view(await muster.suites.results.cases(run_id, wanted, after=after, limit=limit))


@router.get("/api/suites/{run_id}/case", dependencies=READ)
async def show_case(
    muster: Opened, run_id: str, case: Annotated[str, Query(max_length=1000)], subject: SubjectName = None
) -> WholeCaseView:
    """Return one case of a suite run with its checks, its judgements and the answer of each epoch."""
    return whole_case_view(await muster.suites.results.case(run_id, case, subject))


@router.get("/api/compare", dependencies=READ)
async def compare(
    muster: Opened,
    a: SideReference,
    b: SideReference,
    threshold: Share = 0.05,
    alpha: Share = 0.05,
    margin: Share | None = None,
    notice: Share = 0.20,
    inconclusive: Annotated[
        Literal["ok", "fail"] | None,
        Query(description="Whether an inconclusive result passes; else if a drop of `notice` would be noticed."),
    ] = None,
    subject: SubjectName = None,
    changes: Annotated[int | None, Query(ge=0, description="The most changed cases that are listed; all.")] = None,
) -> ComparisonView:
    """Compare two suite runs or baselines, paired by case and epoch."""
    accept = None if inconclusive is None else inconclusive == "ok"
    terms = ComparisonTerms(threshold=threshold, alpha=alpha, margin=margin, notice=notice, accept_unsure=accept)
    found = await muster.suites.compare(a, b, terms, subject=subject)
    return comparison_view(found, most_changes=changes)


@router.get("/api/compare/pairs", dependencies=READ)
async def list_pairs(
    muster: Opened,
    a: SideReference,
    b: SideReference,
    subject: SubjectName = None,
    change: Annotated[list[PairChange] | None, Query(max_length=10)] = None,
    search: Annotated[str, Query(max_length=200, description="Looked for in the ids of cases.")] = "",
    after: Annotated[str | None, Query(max_length=2000, description="`next` of the page before.")] = None,
    limit: PageLimit = 100,
) -> PairPageView:
    """Return a page of the pairs that a comparison rests on, what got worse first."""
    wanted = PairFilter(changes=frozenset(change or ()), search=search)
    return shown_pairs(await muster.suites.pairs(a, b, wanted, subject=subject, after=after, limit=limit))


@router.get("/api/baselines", dependencies=[needs("admin")])
async def list_baselines(muster: Opened) -> BaselinesView:
    """Return the baselines."""
    return BaselinesView(baselines=[baseline_view(one) for one in await muster.suites.baselines.list()])


@router.get("/api/reviews", dependencies=READ)
async def list_reviews(muster: Opened, run: RunReference) -> ReviewsView:
    """Return the reviews of a suite run and how far they agree with the judge."""
    found, reviewed = await muster.suites.reviews(run)
    return reviews_view(found.id, reviewed)


@router.post("/api/reviews", dependencies=[needs("review")], status_code=201)
async def add_review(muster: Opened, audit: Audit, body: ReviewBody) -> ReviewView:
    """Add what a person thinks of the verdict on a case."""
    draft = ReviewDraft(
        case=body.case,
        opinion=body.opinion,
        note=body.note,
        by=audit.user,
        epoch=body.epoch,
        subject=body.subject,
    )
    async with audit.action("review", body.run) as doing:
        added = await muster.suites.review(body.run, draft)
        doing.subject = added.review.run
    return review_view(added.review)
