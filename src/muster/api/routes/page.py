"""The page and its files; they need no token, because what they show is asked for with one."""

from typing import Annotated

from fastapi import APIRouter, Header, Request, Response

from muster.api.errors import RequestRefused
from muster.dashboard import FOLDER, SERVED

router = APIRouter(include_in_schema=False)


@router.get("/")
@router.get(FOLDER + "{name:path}")
async def page_file(
    request: Request,
    if_none_match: Annotated[str | None, Header()] = None,
    accept_encoding: Annotated[str, Header()] = "",
) -> Response:
    """Return a file of the page, packed for those who take it so; nothing when the browser has it."""
    found = SERVED.get(request.url.path)
    if found is None:
        raise RequestRefused(404, "the page has no such file")
    if if_none_match == found.tag:
        return Response(status_code=304, headers=dict(found.headers))
    if "gzip" in accept_encoding:
        headers = {**found.headers, "content-encoding": "gzip"}
        return Response(found.packed, media_type=found.media, headers=headers)
    return Response(found.body, media_type=found.media, headers=dict(found.headers))
