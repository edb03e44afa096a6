"""Runs: listed, shown, canceled, resumed and forked; their calls, events, reports, questions and answers."""

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Query, Response

from muster.api.bodies import AnswerBody, ForkBody, ResumeBody
from muster.api.dependencies import Audit, Opened, PageLimit, Starter, needs
from muster.api.json_route import JsonRoute
from muster.app import Muster
from muster.app.kinds import KINDS
from muster.app.views.calls import (
    AnswerView,
    AttemptPageView,
    CallPageView,
    CallView,
    QuestionsView,
    answer_view,
    attempt_page_view,
    call_page_view,
    call_view,
    questions_view,
    withheld_call_view,
)
from muster.app.views.media import MediaView, media_view
from muster.app.views.runs import (
    DeletedRunsView,
    DetailsView,
    RunPageView,
    RunView,
    deleted_view,
    details_view,
    queued_run_view,
    run_page_view,
    run_view,
)
from muster.domain.canonical import JsonObject
from muster.domain.run import Run, RunState

router = APIRouter(tags=["runs"], route_class=JsonRoute)
READ, START, REVIEW = [needs("read")], [needs("start")], [needs("review")]

FORMATS = tuple(dict.fromkeys(name for known in KINDS if known.kind.report for name in known.kind.report.formats))
if TYPE_CHECKING:
    ReportFormat = str
else:  # made from the list of kinds
    ReportFormat = Literal[FORMATS]
MEDIA = {
    "json": "application/json",
    "junit": "application/xml",
    "sarif": "application/sarif+json",
    "markdown": "text/markdown; charset=utf-8",
    "html": "text/html; charset=utf-8",
}
REPORTS: dict[int | str, JsonObject] = {
    200: {
        "content": {
            kind: {"schema": {"type": "object" if kind.endswith("json") else "string"}}
            for name, kind in MEDIA.items()
            if name != "json"
        }
    }
}


@router.get("/api/runs", dependencies=READ)
async def list_runs(
    muster: Opened,
    state: Annotated[list[RunState] | None, Query(max_length=20)] = None,
    workload: Annotated[list[str] | None, Query(max_length=20)] = None,
    search: Annotated[str, Query(max_length=200, description="Looked for in ids, names, kinds of work and tags.")] = "",
    started_by: Annotated[str | None, Query(max_length=200, description="The user that started it.")] = None,
    agent: Annotated[str | None, Query(max_length=200, description="That it, or a run under it, has called.")] = None,
    since: Annotated[float, Query(ge=0, le=1e11, description="Created from then on, in seconds since 1970.")] = 0.0,
    until: Annotated[float | None, Query(ge=0, le=1e11, description="Created before then.")] = None,
    after: Annotated[str | None, Query(max_length=100, description="`next` of the page before.")] = None,
    limit: PageLimit = 50,
) -> RunPageView:
    """Return a page of runs, the newest first, without children of other runs."""
    found = await muster.runs.page(
        state or (),
        workloads=workload or (),
        roots=True,
        search=search,
        started_by=started_by,
        agent=agent,
        since=since,
        until=until,
        after=after,
        limit=limit,
    )
    return run_page_view([(run, await muster.runs.batches_of(run.id)) for run in found], limit)


@router.get("/api/runs/{run_id}", dependencies=READ)
async def show_run(muster: Opened, run_id: str) -> DetailsView:
    """Return a run, with the questions that it waits for people to answer."""
    return details_view(await muster.runs.details(run_id))


@router.get("/api/runs/{run_id}/calls", dependencies=READ)
async def list_calls(
    muster: Opened,
    run_id: str,
    after: Annotated[str | None, Query(max_length=1000, description="`next` of the page before.")] = None,
    limit: PageLimit = 100,
) -> CallPageView:
    """Return a page of the calls of a run, in their order, without texts."""
    return call_page_view(await muster.runs.calls(run_id, after=after, limit=limit), limit)


@router.get("/api/runs/{run_id}/attempts", dependencies=READ)
async def list_attempts(
    muster: Opened,
    run_id: str,
    after: Annotated[str | None, Query(max_length=1000, description="`next` of the page before.")] = None,
    limit: PageLimit = 100,
) -> AttemptPageView:
    """Return a page of the calls of a run with the times of their attempts, in their order, without texts."""
    return attempt_page_view(await muster.runs.attempts(run_id, after=after, limit=limit), limit)


@router.get("/api/runs/{run_id}/call", dependencies=READ)
async def show_call(
    muster: Opened,
    run_id: str,
    key: Annotated[str, Query(max_length=1000)],
    thinking: Annotated[bool, Query(description="Also what its model says that it thought.")] = False,
) -> CallView:
    """Return one call of a run with its request, its reply and its attempts; see councils for what is withheld."""
    found = await muster.runs.call(run_id, key)
    asked = muster.councils.people_to_ask(await muster.runs.find(run_id))
    withheld = asked and found.entry.agent not in asked
    return withheld_call_view(found, asked) if withheld else call_view(found, thinking=thinking)


@router.get("/api/runs/{run_id}/media/{digest}", dependencies=READ)
async def show_media(muster: Opened, run_id: str, digest: str) -> MediaView:
    """Return an image or a document that a run shows, as base64; requests and messages name it by its digest."""
    return media_view(await muster.runs.media(run_id, digest))


@router.get("/api/runs/{run_id}/report", dependencies=READ, responses=REPORTS)
async def report(
    muster: Opened, run_id: str, format_: Annotated[ReportFormat, Query(alias="format")] = "json"
) -> Response:
    """Return the report of a suite run, a verification, a council, a battle or a scale test."""
    found = await muster.report(run_id)
    muster.councils.require_no_people_to_ask(found.run)
    headers = {"content-security-policy": "sandbox"}
    return Response(await found.text(format_), media_type=MEDIA[format_], headers=headers)


@router.post("/api/runs/{run_id}/cancel", dependencies=START)
async def cancel_run(muster: Opened, audit: Audit, run_id: str) -> RunView:
    """Cancel a run and its batches; its replies stay."""
    async with audit.action("cancel", run_id) as doing:
        run = await muster.runs.cancel(run_id)
        doing.subject = run.id
    return run_view(run)


@router.post("/api/runs/{run_id}/resume", dependencies=START, status_code=202)
async def resume_run(
    muster: Opened, starter: Starter, response: Response, run_id: str, body: ResumeBody | None = None
) -> RunView:
    """Go on with a run; one that failed, was canceled or timed out goes on as one new run, however often it is asked.

    200 with the run when that has completed, or is being driven: then there is nothing to start.
    """
    wanted = body or ResumeBody()

    async def begin(muster: Muster) -> Run:
        return await muster.submit_resume(run_id, budget_usd=wanted.budget_usd)

    return await _queued(muster, await starter.resume(response, begin, wanted))


@router.post("/api/runs/{run_id}/fork", dependencies=START, status_code=202)
async def fork_run(muster: Opened, starter: Starter, response: Response, run_id: str, body: ForkBody) -> RunView:
    """Start a run that repeats one call of another and all later ones."""

    async def begin(muster: Muster) -> Run:
        return await muster.runs.submit_fork(run_id, body.from_key, budget_usd=body.budget_usd)

    return await _queued(muster, await starter.start(response, "fork", begin, body))


async def _queued(muster: Muster, run: Run) -> RunView:
    return queued_run_view(run, await muster.runs.batches_of(run.id), await muster.runs.workers())


@router.delete("/api/runs/{run_id}", dependencies=[needs("admin")])
async def delete_run(muster: Opened, audit: Audit, run_id: str) -> DeletedRunsView:
    """Delete a run with everything in it."""
    async with audit.action("delete", run_id) as doing:
        deleted = await muster.runs.delete([run_id])
        doing.subject = deleted[0]
    return deleted_view(deleted)


@router.get("/api/runs/{run_id}/questions", dependencies=READ)
async def list_questions(muster: Opened, run_id: str) -> QuestionsView:
    """Return what a run waits for people to answer."""
    return questions_view(await muster.runs.questions(run_id))


@router.post("/api/runs/{run_id}/answer", dependencies=REVIEW)
async def answer_question(muster: Opened, audit: Audit, run_id: str, body: AnswerBody) -> AnswerView:
    """Answer a question of a run; the same client_id twice answers once."""
    sender = audit.user
    async with audit.action("answer", run_id) as doing:
        found = await muster.runs.answer(run_id, body.text, key=body.key, sender=sender, client_id=body.client_id)
        doing.subject = found.sent.run
    return answer_view(found)
