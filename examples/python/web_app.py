"""A FastAPI service that hands out work: runs go on after a restart, and a request sent twice starts one run.

Start as many processes as you like: each is a worker too, and takes up what another one that died had begun.

uvicorn web_app:app --workers 2
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel
from triage import TriageSpec, triage

import muster

FOLDER = Path(__file__).parent


class Mail(BaseModel):
    id: str  # chosen by the client: the name of the run
    mail: list[str]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
    async with muster.open(project=FOLDER) as m:
        app.state.muster = m
        worker = asyncio.create_task(m.worker(most=20).serve())
        yield
        worker.cancel()  # what it drives is left to the other processes, or to the next start
        await asyncio.wait({worker})


app = FastAPI(lifespan=lifespan)


@app.post("/mail", status_code=202)
async def start(mail: Mail, request: Request) -> dict[str, str]:
    m: muster.Muster = request.app.state.muster
    spec = TriageSpec(tuple(mail.mail))
    try:
        run = await m.submit(triage, spec, name=mail.id, budget_usd="0.50", resume=True)  # once, however often asked
    except muster.Conflict as error:  # other mail under the same id
        raise HTTPException(409, error.message) from error
    return {"run": run.id}


@app.get("/mail/{id}")
async def show(id: str, request: Request) -> dict[str, object]:  # noqa: A002  # the name in the path
    m: muster.Muster = request.app.state.muster
    try:
        run = await m.runs.find(id)
    except muster.NotFound as error:
        raise HTTPException(404, error.message) from error
    return {"state": run.state, "cost": str(run.cost), "sorted": run.result}
