"""An HTTP client that sends a key which a program prints, and another one where that is refused."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from http import HTTPStatus

from muster.agents.http.client import BatchHttp, HttpResponse, RequestBody, ResponseStream
from muster.agents.printed_keys.key_command import PrintedKey
from muster.domain.agent import Timeouts

MAX_ERROR = 65_536  # bytes of a refusal in which the key is looked for
Headers = Callable[[str], Mapping[str, str]]


class KeyedHttp:
    """A client that sends the key of a command with every request, and once more with another if it is refused.

    A refusal for the key is free, and nothing was begun, so that the second try is part of the same attempt.
    """

    def __init__(self, http: BatchHttp, key: PrintedKey, headers: Headers) -> None:
        self._http, self._key, self._headers = http, key, headers

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts) -> HttpResponse:
        """Send a body and wait for the whole answer."""
        key = await self._key.current()
        answer = await self._http.post(url, self._with(headers, key), body, timeouts)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            key = await self._key.after(key)
            answer = await self._http.post(url, self._with(headers, key), body, timeouts)
        return _without(answer, key)

    async def get(self, url: str, headers: Mapping[str, str], timeouts: Timeouts) -> HttpResponse:
        """Ask for something and wait for the whole of it."""
        key = await self._key.current()
        answer = await self._http.get(url, self._with(headers, key), timeouts)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            key = await self._key.after(key)
            answer = await self._http.get(url, self._with(headers, key), timeouts)
        return _without(answer, key)

    async def upload(self, url: str, headers: Mapping[str, str], body: RequestBody, timeouts: Timeouts) -> HttpResponse:
        """Send a body in pieces, which are there once: the key is printed just before."""
        key = await self._key.fresh()
        return _without(await self._http.upload(url, self._with(headers, key), body, timeouts), key)

    def stream(
        self, url: str, headers: Mapping[str, str], body: bytes, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Send a body and give the answer as it arrives; leaving the context ends the exchange."""
        return self._flow(lambda key: self._http.stream(url, self._with(headers, key), body, timeouts))

    def fetch(
        self, url: str, headers: Mapping[str, str], timeouts: Timeouts
    ) -> AbstractAsyncContextManager[ResponseStream]:
        """Ask for something of any length and give it as it arrives; leaving the context ends the exchange."""
        return self._flow(lambda key: self._http.fetch(url, self._with(headers, key), timeouts))

    async def close(self) -> None:
        """Close the connections; may be called twice."""
        await self._http.close()

    @asynccontextmanager
    async def _flow(
        self, begin: Callable[[str], AbstractAsyncContextManager[ResponseStream]]
    ) -> AsyncIterator[ResponseStream]:
        key = await self._key.current()
        async with AsyncExitStack() as exchange:
            flow = await exchange.enter_async_context(begin(key))
            if flow.status == HTTPStatus.UNAUTHORIZED:
                await exchange.aclose()
                key = await self._key.after(key)
                flow = await exchange.enter_async_context(begin(key))
            yield flow if 200 <= flow.status < 300 else flow._replace(chunks=_refusal(flow, key))

    def _with(self, headers: Mapping[str, str], key: str) -> Mapping[str, str]:
        return {**headers, **self._headers(key)}


def _without(answer: HttpResponse, key: str) -> HttpResponse:
    """Return an answer without the key, which a refusal may quote."""
    if 200 <= answer.status < 300:
        return answer
    return answer._replace(body=answer.body.replace(key.encode(), b"[key]"))


async def _refusal(flow: ResponseStream, key: str) -> AsyncGenerator[bytes, None]:
    yield (await flow.beginning(MAX_ERROR)).replace(key.encode(), b"[key]")
