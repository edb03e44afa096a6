"""Responses that can be fetched again: the endpoints under `/v1/responses` beside the one that makes them.

A response in the background is answered and counted at once, as everything here, and has ended as many milliseconds
after it was asked for as a batch takes. Only the newest are kept, and no state keeps them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl

from muster.domain.canonical import Json
from muster.sim.http import HttpRequest
from muster.sim.playback import Playback, at_once, headers_of, play_stream
from muster.sim.protocols.ask import SimAnswer, SimRefusal, WireProtocol
from muster.sim.protocols.responses import QUEUED, Responses, finished, response_id, unfinished
from muster.sim.rehearsal import Rehearsal
from muster.sim.request import body_of, check_key
from muster.text import typed
from muster.text.http_messages import whole_response

PATH = "/openai/v1/responses"
MAX_KEPT = 1_000
CANCELED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResponse:
    """A response, and when it was asked for."""

    said: SimAnswer
    created: float
    canceled: bool = False

    @property
    def background(self) -> bool:
        """Return whether nobody waited for it."""
        return self.said.ask.body.get("background") is True


class ResponseEndpoints:
    """Makes responses, keeps those that their requests want kept, and answers who comes back to them."""

    def __init__(self, dialect: Responses, rehearsal: Rehearsal) -> None:
        self._dialect, self._rehearsal, self._clock = dialect, rehearsal, rehearsal.registry.now
        self._kept: dict[str, KeptResponse] = {}
        self._seconds = rehearsal.options.batch_ms / 1000

    def create(self, request: HttpRequest) -> Playback:
        """Answer a request to `/v1/responses`."""
        return self._rehearsal.perform(self._dialect, request, self._keep)

    def count(self, request: HttpRequest, name: str = "") -> Playback:
        """Answer how many tokens would go in."""
        return self._answer(request, lambda: self._whole(self._dialect.count(body_of(request))))

    def retrieve(self, request: HttpRequest, name: str) -> Playback:
        """Answer how a response stands, or stream its events after the one that is named."""
        return self._answer(request, lambda: self._look(request, name))

    def cancel(self, request: HttpRequest, name: str) -> Playback:
        """Cancel a response in the background; one that has ended stays as it is."""
        return self._answer(request, lambda: self._cancel(name))

    def _keep(self, said: SimAnswer) -> None:
        if said.ask.body.get("store") is False:
            return
        self._kept[response_id(said)] = KeptResponse(said=said, created=self._clock())
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]

    def _answer(self, request: HttpRequest, work: Callable[[], Playback]) -> Playback:
        self._rehearsal.book.requests += 1
        try:
            check_key(request, self._rehearsal.options.key)
            playback = work()
        except SimRefusal as refused:
            return self._rehearsal.refuse(self._dialect, refused, next(self._rehearsal.numbers))
        self._rehearsal.book.status(200)
        return playback

    def _look(self, request: HttpRequest, name: str) -> Playback:
        kept = self._find(name)
        query = dict(parse_qsl(request.query.decode("latin-1")))
        if query.get("stream") != "true":
            return self._whole(typed.encode(self._spell(kept)))
        after = query.get("starting_after", "-1")
        if not after.removeprefix("-").isdecimal():
            raise SimRefusal(400, "starting_after: expected a sequence number", param="starting_after")
        events = self._dialect.events(kept.said)[int(after) + 1 :]
        number = next(self._rehearsal.numbers)
        return play_stream(events, headers_of(self._dialect, number), 0.0, None)

    def _cancel(self, name: str) -> Playback:
        kept = self._find(name)
        if not kept.background:
            raise SimRefusal(400, "Cannot cancel a synchronous response.", param="response_id")
        if not self._is_over(kept):
            kept = self._kept[name] = replace(kept, canceled=True)
        return self._whole(typed.encode(self._spell(kept)))

    def _spell(self, kept: KeptResponse) -> Json:
        if kept.canceled:
            return unfinished(kept.said, CANCELED)
        if self._is_over(kept):
            return finished(kept.said)
        return unfinished(kept.said, QUEUED if self._clock() <= kept.created else "in_progress")

    def _is_over(self, kept: KeptResponse) -> bool:
        return not kept.canceled and (not kept.background or self._clock() >= kept.created + self._seconds)

    def _find(self, name: str) -> KeptResponse:
        kept = self._kept.get(name)
        if kept is None:
            raise SimRefusal(404, f"Response with id '{name}' not found.", param="id")
        return kept

    def _whole(self, body: bytes) -> Playback:
        dialect: WireProtocol = self._dialect
        return at_once(whole_response(200, body, headers_of(dialect, next(self._rehearsal.numbers))))
