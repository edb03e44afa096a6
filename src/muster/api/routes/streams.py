"""Runs as they go on: a stream of server-sent events, and the same events as pages for whoever polls."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request
from fastapi.responses import Response

from muster.api.dependencies import Opened, needs
from muster.api.json_route import json_response
from muster.api.sse import MEDIA_TYPE, EventStreamResponse, FrameCache, accepts_stream, last_event_id
from muster.app import Muster
from muster.app.views.events import event_page_view
from muster.app.views.stream import told_view
from muster.domain.canonical import JsonObject

router = APIRouter(tags=["streams"])
READ = [needs("read")]
MAX_EVENTS = 1_000  # of one page
STREAM: dict[int | str, JsonObject] = {
    200: {"description": "Events with their numbers as ids; it ends with `end`.", "content": {MEDIA_TYPE: {}}}
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRequest:
    """What a client says about streams: whether it wants one, and which event it had last."""

    frames: FrameCache
    wanted: bool
    last: int

    async def response(self, muster: Muster, run_id: str) -> Response:
        """Return the stream of a run; raises NotFound before it begins."""
        return EventStreamResponse(muster, self.frames, await muster.runs.find(run_id), self.last)


def _streaming(
    request: Request,
    accept: Annotated[str | None, Header()] = None,
    last_id: Annotated[str | None, Header(alias="Last-Event-ID")] = None,
    query: Annotated[str | None, Query(alias="lastEventId")] = None,
) -> StreamRequest:
    """Return what a client says; the header wins, because a client that connects again repeats the address."""
    last = last_event_id(query if last_id is None else last_id)
    return StreamRequest(frames=request.app.state.frames, wanted=accepts_stream(accept), last=last)


Streaming = Annotated[StreamRequest, Depends(_streaming)]


@router.get("/api/stream/{run_id}", dependencies=READ, response_class=Response, responses=STREAM)
@router.get("/api/battles/{run_id}/stream", dependencies=READ, response_class=Response, responses=STREAM)
async def stream_run(muster: Opened, streaming: Streaming, run_id: str) -> Response:
    """Stream the events of a run after the last one that the client had, until the run is over."""
    return await streaming.response(muster, run_id)


@router.get("/api/runs/{run_id}/events", dependencies=READ, responses=STREAM)
async def list_events(
    muster: Opened,
    streaming: Streaming,
    run_id: str,
    after: Annotated[int, Query(ge=0, le=2**53)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_EVENTS)] = 500,
) -> Response:
    """Return the events of a run after a number; as a stream for clients that accept `text/event-stream`."""
    run = await muster.runs.find(run_id)
    if streaming.wanted:
        return EventStreamResponse(muster, streaming.frames, run, streaming.last or after)
    events = await muster.runs.events(run.id, after, limit)
    told = [told_view(event, await muster.battles.standing(run, event)) for event in events]
    return json_response(event_page_view(run, events, told, after))
