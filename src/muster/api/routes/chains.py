"""Chains: started by their names in the library, and followed."""

from typing import Any

from fastapi import APIRouter, Response

from muster.api.bodies import ChainBody, ResumeBody
from muster.api.dependencies import Audit, Opened, PageLimit, Starter, needs
from muster.api.json_route import JsonRoute
from muster.app import Muster
from muster.app.runs.handle import RunHandle
from muster.app.serving.library import LibraryKind
from muster.app.views.chains import progress_view
from muster.app.views.runs import run_view
from muster.domain.run import Run

router = APIRouter(prefix="/api/chains", tags=["chains"], route_class=JsonRoute)
READ, START = [needs("read")], [needs("start")]


@router.get("", dependencies=READ)
async def list_chains(muster: Opened, limit: PageLimit = 20) -> dict[str, Any]:
    """Return the newest chains."""
    return {"chains": [run_view(run) for run in await muster.chains.list(limit)]}


@router.post("", dependencies=START, status_code=202)
async def start_chain(starter: Starter, response: Response, body: ChainBody) -> dict[str, Any]:
    """Start a chain; it works in the folder of the project, or in a worktree of it."""

    async def begin(muster: Muster) -> RunHandle:
        chain = muster.chains.load(muster.library.find(LibraryKind.CHAIN, body.chain))
        spec = muster.chains.spec(chain, body.input, folder=muster.settings.folder)
        return await muster.chains.submit(spec, muster.runs.options(**body.options()))

    return run_view(await starter.start(response, "start chain", begin, body))


@router.get("/{run_id}/progress", dependencies=READ)
async def chain_progress(muster: Opened, run_id: str) -> dict[str, Any]:
    """Return how far a chain is."""
    return progress_view(await muster.chains.progress(run_id))


@router.post("/{run_id}/resume", dependencies=START, status_code=202)
async def resume_chain(
    starter: Starter, response: Response, run_id: str, body: ResumeBody | None = None
) -> dict[str, Any]:
    """Go on with a chain at the step that failed or was stopped."""
    wanted = body or ResumeBody()

    async def begin(muster: Muster) -> Run:
        found = await muster.chains.find(run_id)
        return await muster.submit_resume(found.id, budget_usd=wanted.budget_usd)

    return run_view(await starter.resume(response, begin, wanted))


@router.post("/{run_id}/cancel", dependencies=START)
async def cancel_chain(muster: Opened, audit: Audit, run_id: str) -> dict[str, Any]:
    """Cancel a chain; the output of its finished steps stays."""
    async with audit.action("cancel", run_id) as doing:
        run = await muster.runs.cancel((await muster.chains.find(run_id)).id)
        doing.subject = run.id
    return run_view(run)
