"""What routes ask for by its type: the Muster of the caller, who asks, and a way to start runs once."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Annotated, Any, Protocol

from fastapi import Depends, Header, Query, Request, Response

from muster.api.callers import RequestCaller, Scope
from muster.api.json_route import RequiredScope
from muster.app import Muster
from muster.app.parts.audit import AuditedAction
from muster.app.runs.handle import RunHandle
from muster.app.starts import Starts
from muster.domain.advice import ArgumentAdvice
from muster.domain.canonical import JsonObject, digest
from muster.domain.errors import BadArgument, BadConfiguration, NotFound
from muster.domain.ids import RunId
from muster.domain.run import Run, RunState, StartRequest

MAX_KEY = 200  # characters of an idempotency key
MAX_PAGE = 500  # rows
LAST = "last"

PageLimit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="The most rows of one page.")]
RunReference = Annotated[str, Query(min_length=1, max_length=200, description="The id or the name of a run.")]


def _caller(request: Request) -> RequestCaller:
    found: RequestCaller = request.state.caller
    return found


Caller = Annotated[RequestCaller, Depends(_caller)]


def _server(request: Request) -> Muster:
    found: Muster = request.app.state.muster
    return found


Server = Annotated[Muster, Depends(_server)]


def _opened(muster: Server, caller: Caller) -> Muster:
    return muster.acting_for(caller.user)


Opened = Annotated[Muster, Depends(_opened)]


def needs(scope: Scope) -> Any:
    """Return the dependency of a route that only tokens with a scope may use."""
    return Depends(RequiredScope(scope))


@dataclass(frozen=True, slots=True)
class RequestAudit:
    """Writes what a request did to the audit log."""

    muster: Muster
    user: str  # empty: the local user
    address: str
    request_id: str

    def action(self, name: str, subject: str) -> AbstractAsyncContextManager[AuditedAction]:
        """Return a context for what the caller does: written down before it, and completed after it."""
        return self.muster.audit.action(name, subject, client=self.address, request_id=self.request_id)


def _audit(request: Request, muster: Opened, caller: Caller) -> RequestAudit:
    return RequestAudit(muster, caller.name or "", caller.address, request.state.request_id)


Audit = Annotated[RequestAudit, Depends(_audit)]
Begin = Callable[[Muster], Awaitable[RunHandle | Run]]


def _advice(way: str, names: Mapping[str, str]) -> str:
    """Return a suggestion about a field with a value as a request has it."""
    if not isinstance(way, ArgumentAdvice) or way.argument not in names or not way.value or way.entry:
        return way
    return way.named(f'"{names[way.argument]}": "{way.value}"')


class AskedBody(Protocol):
    """A body that starts a run."""

    @property
    def chosen_id(self) -> str | None:
        """The id that the client chose for the run; None: the server chooses."""

    @property
    def names(self) -> Mapping[str, str]:
        """The names of its fields in requests, by those that an error has."""

    def asked(self) -> JsonObject:
        """Return what is asked for, spelled in one way."""

    def earlier(self) -> Sequence[JsonObject]:
        """Return the ways in which older programs spelled it, whose digests are stored."""


class RunStarter:
    """Starts the run of this request, or finds the one that the same request started before."""

    def __init__(
        self, starts: Starts, caller: RequestCaller, audit: RequestAudit, *, path: str, key: str | None
    ) -> None:
        self._starts, self._caller, self._audit = starts, caller, audit
        self._path, self._key = path, key

    async def start(self, response: Response, action: str, begin: Begin, body: AskedBody | None = None) -> Run:
        """Return the run, with status 202 if it is new and 200 if it was known.

        A request is the same if it asks for the same: bodies are compared as they were understood, not as spelled.
        """
        chosen = None if body is None else body.chosen_id
        if chosen == LAST:
            raise BadArgument("must not be `last`, which is the newest run", argument="id")
        key = f"id:{chosen}" if self._key is None and chosen is not None else self._key
        asked = digest([self._path, {} if body is None else body.asked()])
        earlier = tuple(digest([self._path, one]) for one in ([] if body is None else body.earlier()))
        address, id_ = self._caller.address, self._audit.request_id
        request = StartRequest(client=address, key=key, digest=asked, earlier=earlier, id=id_)
        run = self._audit.muster.runs.new_id() if chosen is None else RunId(chosen)
        user = replace(self._caller.user, request=request, run=run)

        async def create(muster: Muster) -> Run:
            async with self._audit.action(action, run) as doing:
                made = await begin(muster)
                started = await made.run() if isinstance(made, RunHandle) else made
                doing.subject = started.id
                return started

        try:
            found = await self._starts.start(user, create)
        except BadArgument as error:
            names = {} if body is None else body.names
            raise error.named(names, lambda way: _advice(way, names)) from error
        except (BadConfiguration, NotFound) as error:
            error.flaws = tuple(flaw.named({} if body is None else body.names) for flaw in error.flaws)
            raise
        response.status_code = 200 if found.known else 202
        return found.run

    async def resume(self, response: Response, begin: Begin, body: AskedBody) -> Run:
        """Return the run that goes on, with status 202 if it is queued now and 200 if there is nothing to start."""
        run = await self.start(response, "resume", begin, body)
        if run.state is not RunState.QUEUED:
            response.status_code = 200
        return run


IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=MAX_KEY,
        description="A key of the client's choice: the same request sent again under it starts nothing.",
    ),
]


async def _starter(
    request: Request, caller: Caller, audit: Audit, idempotency_key: IdempotencyKey = None
) -> RunStarter:
    if idempotency_key is not None and not idempotency_key.isprintable():
        raise BadArgument("the Idempotency-Key must be printable")
    starts: Starts = request.app.state.starts
    key = None if idempotency_key is None else f"key:{idempotency_key}"
    return RunStarter(starts, caller, audit, path=request.url.path, key=key)


Starter = Annotated[RunStarter, Depends(_starter)]
