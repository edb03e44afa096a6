"""The user's own service as an agent: a question is posted as JSON, the answer is found in what comes back.

It does not stream: deltas are the whole text, once. It does not know what the service does, so a failure inside it
counts as possibly paid when the person said that calls cost something.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_plus, urlsplit

from muster.agents.base import OnDelta, read_answer
from muster.agents.faults import Account, ErrorAnswer, error_of, plain, retry_after
from muster.agents.http.client import Http, HttpResponse
from muster.agents.http.request import head_of, join, split_url
from muster.agents.payload import to_json
from muster.agents.service.answer import (
    BodyTemplate,
    ServiceAnswer,
    ServicePaths,
    calls_of,
    counted_of,
    encode,
    parse,
    said_of,
)
from muster.agents.service_terms import Counted, ServiceTerms, stop_of
from muster.agents.usage import ceiling_of
from muster.domain.agent import Profile, Quote, Timeouts
from muster.domain.call import Reply, Request, Stop, ToolCall, Trace
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration, BadOutput, CallFailed, WireError
from muster.text import typed
from muster.text.json_paths import MISSING, Missing
from muster.text.schemas.json_schema import require_schema, shaped

_HEADERS = {"content-type": "application/json", "accept": "application/json, text/plain;q=0.9"}

_FREE = ServiceTerms()


class ServiceAgent:
    """An agent that is a service of the user's; its client is closed with it and may be shared with others."""

    def __init__(
        self,
        *,
        profile: Profile,
        account: Account,
        url: str,
        http: Http,
        places: ServicePaths,
        headers: Mapping[str, str] | None = None,
        template: BodyTemplate | None = None,
        terms: ServiceTerms = _FREE,
    ) -> None:
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if account.key:
            given["authorization"] = f"Bearer {account.key}"
        self._profile, self._account, self._http = profile, account, http
        self._url, self._headers = url, {**_HEADERS, **given}
        self._places, self._template, self._terms = places, template, terms
        _require_address(url, account, secret=bool(given))
        self._mask = mask_of(url, given)
        head_of(url, tuple(self._headers.items()))  # refuses now what can never be sent

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""
        return self._profile

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of one attempt: as declared, or by the price of all bytes and max_tokens."""
        return self._terms.quote(request, len(encode(request, self._template)))

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Ask once and give the whole reply; with `on_delta`, hand over its text in one piece."""
        require_schema(request)
        body, counted = encode(request, self._template), Counted()
        try:
            answer = await self._http.post(self._url, self._headers, body, timeouts)
            value = parse(answer, self._places)
            counted = counted_of(value, self._places)
            reply = await read_answer(request, self._reply, request, answer, value, counted, len(body))
        except WireError as error:
            self._terms.charge_failure(error, counted, self._terms.quote(request, len(body)).most)
            raise
        if on_delta is not None and reply.text:
            on_delta(reply.text)
        return reply

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        await self._http.close()

    def _reply(
        self, request: Request, answer: HttpResponse, value: Json | Missing, counted: Counted, size: int
    ) -> Reply:
        said, calls = self._understand(answer, value)
        stop = stop_of(request, said.text, calls)
        data = self._data(request, answer, stop, said)
        booked = self._terms.book(counted, ceiling_of(request, size), said.text, calls)
        return Reply(
            text=said.text,
            stop=stop,
            tool_calls=calls,
            usage=booked.usage,
            cost=booked.cost,
            lane=booked.lane,
            model=self._profile.name,
            id=answer.headers.get("x-request-id", ""),
            data=data,
            trace=Trace(note=booked.note) if booked.note else None,
        )

    def _understand(self, answer: HttpResponse, value: Json | Missing) -> tuple[ServiceAnswer, tuple[ToolCall, ...]]:
        """Find what was said and which tools were called, or raise what is wrong with the answer."""
        if not 200 <= answer.status < 300:
            raise fault_of(answer, self._account, self._mask)
        if value is MISSING:
            raise self._bad(answer, "is not JSON", "answer with JSON, or with the content type text/plain")
        said, calls = said_of(value, self._places), calls_of(value, self._places)
        if calls is None:
            place = self._places.tool_calls[0].text
            raise self._bad(answer, f"holds something else than tool calls at {place}", "give each a name")
        if said is None and not calls:
            raise self._bad(answer, *_not_found(self._places))
        return said or ServiceAnswer(""), calls

    def _data(self, request: Request, answer: HttpResponse, stop: Stop, said: ServiceAnswer) -> Any:
        try:
            return shaped(request, stop, said.text, said.data)
        except BadOutput as error:
            # What is wrong may be told in words of the answer.
            message = f"{self._account.place} answered {answer.status}: {self._mask.over(error.message)}"
            again = BadOutput(message, status=answer.status)
            again.flaw, again.answer = self._mask.over(error.flaw), self._mask.over(error.answer or "")
            raise again from error

    def _bad(self, answer: HttpResponse, why: str, suggestion: str) -> BadOutput:
        shown = self._mask.beginning(answer.body)
        return BadOutput(
            f"{self._account.place} answered {answer.status}, but the answer {why}; it begins: {shown!r}",
            status=answer.status,
            suggestions=(suggestion,),
        )


def _not_found(places: ServicePaths) -> tuple[str, str]:
    setting = 'set `answer` in muster.toml to the JSONPath of the answer, such as answer = "$.result.text"'
    if "answer" in places.named:
        return f"has nothing at {places.answer[0].text}", setting
    return "has no text at any of the usual places", setting


def _require_address(url: str, account: Account, *, secret: bool) -> None:
    """Refuse an address that nothing can be sent to, or no secret; it is not shown, because it may hold one itself."""
    try:
        origin, _ = split_url(url)
    except BadConfiguration:
        raise BadConfiguration(
            f"the url of {account.place} is not a valid address",
            suggestions=("write it like http://127.0.0.1:8000/chat; put a name and a password into a header",),
        ) from None
    if secret:
        join(origin.place, "")


_SHOWN = 200
_MIN_SECRET = 6  # what is shorter stands in many a word
_LONG_NAME = 16  # no part of a path that a person made up is so long

_NOT_THERE = (404, 405, 410)


@dataclass(frozen=True, slots=True)
class SecretMask:
    """Covers in texts of strangers whatever we send that may be secret: values of headers and parts of the address."""

    secrets: tuple[str, ...] = field(repr=False)

    def over(self, text: str) -> str:
        """Return a text without the secrets."""
        for secret in self.secrets:
            text = text.replace(secret, "[hidden]")
        return text

    def beginning(self, body: bytes) -> str:
        """Return the first characters of a body, to be shown."""
        return self.over(plain(body))[:_SHOWN]


def mask_of(url: str, headers: Mapping[str, str]) -> SecretMask:
    """Collect what may be secret, the longest first, so that no rest of one is left."""
    parts = urlsplit(url)
    spelled = [field.rpartition("=")[2] for field in parts.query.split("&")]
    found = {url, *spelled, *(unquote_plus(value) for value in spelled)}
    found |= {part for part in parts.path.split("/") if len(part) >= _LONG_NAME}
    for value in headers.values():
        found |= {value, value.rpartition(" ")[2]}  # "Bearer …": without its scheme too
    return SecretMask(tuple(sorted((text for text in found if len(text) >= _MIN_SECRET), key=len, reverse=True)))


def fault_of(answer: HttpResponse, account: Account, mask: SecretMask) -> WireError:
    """Return the error for an answer whose status is no success."""
    error = error_of(
        ErrorAnswer(
            status=answer.status,
            text=mask.over(_words(answer.body)),
            retry_after=retry_after(answer.headers),
            request_id=answer.headers.get("x-request-id"),
            kind=CallFailed if answer.status in _NOT_THERE else None,
        ),
        account,
    )
    error.suggestions = error.suggestions or _suggestions(error, account)
    return error


def _words(body: bytes) -> str:
    try:
        trouble: Json = typed.decode(body)
    except (typed.DecodeError, UnicodeError, RecursionError):
        return plain(body)
    for name in ("error", "detail", "message"):
        if isinstance(trouble, dict) and trouble.get(name):
            trouble = trouble[name]
    return trouble if isinstance(trouble, str) else to_json(trouble).decode()


def _suggestions(error: WireError, account: Account) -> tuple[str, ...]:
    if error.status in _NOT_THERE:
        return (f"check the url of {account.place} in muster.toml: it must take a POST",)
    return ()
