"""The client: one method for what can be done with any run; reconnects by itself, and never starts a run twice."""

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode
from uuid import uuid4

from muster.agents.http.client import HttpClient, HttpResponse
from muster.agents.http.request import join
from muster.agents.http.sse import EventParser, ServerSentEvent
from muster.client.answers import json_object, not_muster, read_json, refusal_of
from muster.domain.agent import Timeouts
from muster.domain.canonical import Json
from muster.domain.errors import BadArgument, Conflict, OutcomeUnknown, TryLater

PATIENCE_SECONDS = 60.0  # for which a server that cannot be reached is tried
MIN_PAUSE, MAX_PAUSE = 0.1, 3.0  # between two tries
STREAM = Timeouts(idle=45.0, call=45.0)  # three heartbeats of the server
IDS = ("id", "runId", "run")  # under which routes answer the id of a run


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRun:
    """A run as the server tells of it; `data` has all of it."""

    id: str
    state: str
    data: Mapping[str, Json]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceUpdate:
    """One thing that a server told about a run; durable events have a number."""

    name: str  # "event", "status", "message", "decision"; "delta" for text being written; "end"
    seq: int | None
    data: Mapping[str, Any]

    @property
    def is_end(self) -> bool:
        """Return whether the run is over."""
        return self.name == "end"


class ServiceClient:
    """Talks to one server; use it in `async with`.

    What a server that is down, stopping or restarting does not answer is asked again for `patience` seconds; then the
    last error is raised. Refusals are raised at once, as errors of the same tree that the server has.
    """

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        timeout: float = 60.0,
        patience: float = PATIENCE_SECONDS,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        join(url, "/")  # raises for an address that cannot be used
        self._url, self._patience, self._sleep = url, patience, sleep
        self._timeouts = Timeouts(idle=timeout, call=timeout)
        self._headers = {"accept": "application/json"}
        if token is not None:
            self._headers["authorization"] = f"Bearer {token}"
        self._http = HttpClient()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        await self._http.close()

    async def start(self, route: str, body: Mapping[str, Json], *, key: str | None = None) -> ServedRun:
        """Start a run with a route such as `battles/start`; tried again under one idempotency key, it starts once."""
        headers = {"idempotency-key": key or uuid4().hex}
        found = await self._ask("POST", f"/api/{route.strip('/')}", body, headers)
        id_ = next((found[name] for name in IDS if isinstance(found.get(name), str)), None)
        if id_ is None:
            raise BadArgument(f"{route!r} does not start a run: its answer has no id", argument="route")
        return ServedRun(id=id_, state=str(found.get("state", "queued")), data=found)

    async def get(self, run: str) -> ServedRun:
        """Return a run as it stands."""
        return _run(await self._ask("GET", _place(run)))

    async def cancel(self, run: str) -> ServedRun:
        """Cancel a run, and return it as it stands then."""
        await self._ask("POST", f"{_place(run)}/cancel", {})
        return await self.get(run)

    async def events(self, run: str, *, after: int = 0, limit: int = 500) -> list[ServiceUpdate]:
        """Return the stored events of a run after a number, each named `event`, without waiting for more."""
        page = await self._ask("GET", f"{_place(run)}/events?{urlencode({'after': after, 'limit': limit})}")
        return [ServiceUpdate(name="event", seq=event["seq"], data=event) for event in page["events"]]

    async def wait(self, run: str) -> ServedRun:
        """Wait until a run is over, and return it with its result."""
        async with aclosing(self.follow(run)) as updates:
            async for _ in updates:
                pass
        return await self.get(run)

    async def follow(self, run: str, *, after: int = 0) -> AsyncGenerator[ServiceUpdate, None]:
        """Yield every event of a run after a number, once and in order, and text while it is written, to the end.

        A connection that breaks is opened again after the last event, also when the server was restarted meanwhile.
        """
        last, tries = after, _Tries(self._patience, self._sleep)
        while True:
            try:
                async with aclosing(self._stream(run, last, tries)) as updates:
                    async for update in updates:
                        if update.seq is not None and not update.is_end:
                            if update.seq <= last:
                                continue
                            _require_next(update.seq, last)
                            last = update.seq
                        tries.succeeded()
                        yield update
                        if update.is_end:
                            return
                error: TryLater = OutcomeUnknown(f"{self._url}: the stream of run {run} ended before the run")
            except TryLater as failed:
                error = failed
            await tries.pause(error)

    async def _stream(self, run: str, last: int, tries: "_Tries") -> AsyncGenerator[ServiceUpdate, None]:
        """Yield what one connection tells; one that is closed for being slow ends it."""
        url = join(self._url, f"/api/stream/{quote(run, safe='')}")
        headers = self._headers | {"accept": "text/event-stream", "last-event-id": str(last)}
        async with self._http.fetch(url, headers, STREAM) as response:
            if response.status != 200:
                whole = HttpResponse(response.status, response.headers, await response.body())
                raise refusal_of(whole)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                raise not_muster(self._url)
            tries.connected()
            parser = EventParser()
            async for chunk in response.chunks:
                for event in parser.feed(chunk):
                    update = self._update(event)
                    if update.name != "resync":
                        yield update
                    elif update.data.get("reason") == "slow":
                        return
                    else:
                        raise Conflict(f"run {run} has no event {last} on {self._url}: its store is another one")

    def _update(self, event: ServerSentEvent) -> ServiceUpdate:
        data, id_ = json_object(event.data), event.id
        if data is None or (id_ is not None and not (id_.isascii() and id_.isdecimal())):
            raise not_muster(self._url)
        return ServiceUpdate(name=event.name, seq=None if id_ is None else int(id_), data=data)

    async def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Json] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, Any]:
        """Make a request that may be repeated, until it is answered."""
        url, tries = join(self._url, path), _Tries(self._patience, self._sleep)
        given = self._headers | dict(headers or {})
        while True:
            try:
                if method == "GET":
                    return read_json(self._url, await self._http.get(url, given, self._timeouts))
                sent = json.dumps(body or {}).encode()
                given["content-type"] = "application/json"
                return read_json(self._url, await self._http.post(url, given, sent, self._timeouts))
            except TryLater as error:
                await tries.pause(error)


class _Tries:
    """How long to wait before the next try; raises when there have been none that succeeded for too long."""

    def __init__(self, patience: float, sleep: Callable[[float], Awaitable[None]]) -> None:
        self._patience, self._sleep = patience, sleep
        self._clock = asyncio.get_running_loop().time
        self.succeeded()

    def succeeded(self) -> None:
        """Begin anew."""
        self.connected()
        self._pause = MIN_PAUSE

    def connected(self) -> None:
        """Count the time anew; the pauses still grow, because this may be a server that always hangs up."""
        self._since: float | None = None

    async def pause(self, error: TryLater) -> None:
        """Wait before the next try, or raise the error."""
        now = self._clock()
        self._since = now if self._since is None else self._since
        if now - self._since > self._patience:
            raise error
        # Not all at the same moment: a server that comes back has many clients.
        await self._sleep(self._pause * random.uniform(0.5, 1.0))  # noqa: S311 - not a secret
        self._pause = min(self._pause * 2, MAX_PAUSE)


def _place(run: str) -> str:
    return f"/api/runs/{quote(run, safe='')}"


def _run(data: Mapping[str, Json]) -> ServedRun:
    return ServedRun(id=str(data.get("id")), state=str(data.get("state")), data=data)


def _require_next(seq: int, last: int) -> None:
    if seq != last + 1:
        raise OutcomeUnknown(f"the stream went from event {last} to event {seq}")
