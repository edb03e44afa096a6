"""Chains: started by their names in the library, and followed."""

from fastapi import APIRouter, Response

from muster.api.bodies import ResumeBody
from muster.api.dependencies import Audit, Opened, PageLimit, Starter, needs
from muster.api.json_route import JsonRoute
from muster.app import Muster
from muster.app.views.chains import ProgressView, progress_view
from muster.app.views.runs import ChainsView, RunView, run_view
from muster.domain.run import Run

router = APIRouter(prefix="/api/chains", tags=["chains"], route_class=JsonRoute)
READ, START = [needs("read")], [needs("start")]


@router.get("", dependencies=READ)
async def list_chains(muster: Opened, limit: PageLimit = 20) -> ChainsView:
    """Return the newest chains."""
    return ChainsView(chains=[run_view(run) for run in await muster.chains.list(limit)])


@router.get("/{run_id}/progress", dependencies=READ)
async def chain_progress(muster: Opened, run_id: str) -> ProgressView:
    """Return how far a chain is."""
    return progress_view(await muster.chains.progress(run_id))


@router.post("/{run_id}/resume", dependencies=START, status_code=202)
async def resume_chain(starter: Starter, response: Response, run_id: str, body: ResumeBody | None = None) -> RunView:
    """Go on with a chain at the step that failed or was stopped."""
    wanted = body or ResumeBody()

    async def begin(muster: Muster) -> Run:
        found = await muster.chains.find(run_id)
        return await muster.submit_resume(found.id, budget_usd=wanted.budget_usd)

    return run_view(await starter.resume(response, begin, wanted))


@router.post("/{run_id}/cancel", dependencies=START)
async def cancel_chain(muster: Opened, audit: Audit, run_id: str) -> RunView:
    """Cancel a chain; the output of its finished steps stays."""
    async with audit.action("cancel", run_id) as doing:
        run = await muster.runs.cancel((await muster.chains.find(run_id)).id)
        doing.subject = run.id
    return run_view(run)
