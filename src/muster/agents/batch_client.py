"""One account at one provider, as batches need it: exchanges with the key, lists by page, what members can cost."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import floor

from muster.agents.faults import Account, unpaid
from muster.agents.http.client import BatchHttp, HttpResponse, RequestBody
from muster.agents.http.request import below, join
from muster.agents.usage import ceiling_of
from muster.domain.agent import Quote, Timeouts
from muster.domain.batch import BatchProgress, ListedBatch, Phase, Tariff
from muster.domain.call import Request
from muster.domain.errors import BadConfiguration, OutcomeUnknown, WireError, did_you_mean
from muster.domain.money import NOTHING
from muster.domain.price import Pricing
from muster.domain.script import BYTES_PER_TOKEN

MAX_FAILURE_BYTES = 64 * 1024  # of an answer that is read only to say what went wrong
JSON = "application/json"

Fault = Callable[[int, Mapping[str, str], bytes, Account], WireError]


@contextmanager
def free_of_charge() -> Iterator[None]:
    """Convert errors of requests that only read: nothing was created or paid, whatever the outcome of the exchange."""
    try:
        yield
    except OutcomeUnknown as error:
        raise unpaid(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderClient:
    """Sends to addresses below the base only; gives the bodies of successes and raises everything else."""

    base_url: str
    account: Account
    headers: Mapping[str, str] = field(repr=False)  # they hold the key
    http: BatchHttp
    fault: Fault

    def address(self, path: str) -> str:
        """Return the address of something below the base."""
        return join(self.base_url, path)

    async def get(self, path: str, timeouts: Timeouts) -> bytes:
        """Return what is at a path."""
        with free_of_charge():
            return self._body(await self.http.get(self.address(path), self.headers, timeouts))

    async def post(self, path: str, body: bytes, timeouts: Timeouts) -> bytes:
        """Send JSON, or nothing at all."""
        headers = {**self.headers, "content-type": JSON} if body else self.headers
        return self._body(await self.http.post(self.address(path), headers, body, timeouts))

    async def upload(self, path: str, body: RequestBody, kind: str, timeouts: Timeouts) -> bytes:
        """Send a large body."""
        headers = {**self.headers, "content-type": kind}
        return self._body(await self.http.upload(self.address(path), headers, body, timeouts))

    async def stream(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Yield something large as it arrives; an address elsewhere is refused before anything is sent."""
        with free_of_charge():
            async with self.http.fetch(below(self.base_url, source), self.headers, timeouts) as flow:
                if not 200 <= flow.status < 300:
                    body = await flow.beginning(MAX_FAILURE_BYTES)
                    raise self.fault(flow.status, flow.headers, body, self.account)
                async for chunk in flow.chunks:
                    yield chunk

    async def cancel(self, path: str, poll: Callable[[], Awaitable[BatchProgress]], timeouts: Timeouts) -> None:
        """Ask the provider to stop a batch; it may refuse for one that is over, or about to be."""
        try:
            with free_of_charge():
                await self.post(path, b"", timeouts)
        except WireError as error:
            # Which words it refuses with differs; what matters is whether anything is left to stop.
            if error.status not in (400, 409) or _goes_on(await poll()):
                raise

    def _body(self, answer: HttpResponse) -> bytes:
        if not 200 <= answer.status < 300:
            raise self.fault(answer.status, answer.headers, answer.body, self.account)
        return answer.body


def _goes_on(progress: BatchProgress) -> bool:
    return progress.phase is Phase.RUNNING and progress.word not in ("canceling", "cancelling")


FetchPage = Callable[
    [str], Awaitable[tuple[Sequence[ListedBatch], bool]]
]  # after which id; the page, and whether more follows


async def listed_since(fetch_page: FetchPage, since: float) -> AsyncIterator[ListedBatch]:
    """Yield the batches of a list, page by page, until one is older than asked for."""
    after, more = "", True
    while more:
        page, more = await fetch_page(after)
        for found in page:
            if found.created_at < floor(since):  # some providers count whole seconds
                return
            yield found
        if not page or page[-1].id == after:
            return  # a list that does not get on would never end
        after = page[-1].id


def member_pricing(tariff: Tariff) -> Pricing:
    """Return what the members of a batch cost."""
    us = None if tariff.batch_us is None else Pricing(standard=tariff.batch_us, asked=None)
    return Pricing(standard=tariff.batch, asked=None, geo=tariff.geo, us=us)


PRICE = "batch_price = { input = 0.50, output = 2.50 }"


def quoter(
    name: str, tariff: Tariff, *, unpriced_ok: bool, near: Sequence[str] = ()
) -> Callable[[Request, int], Quote]:
    """Return the function for the maximum cost of a member: every byte a token at the highest rate, and max_tokens."""

    pricing = member_pricing(tariff)

    def quote(request: Request, size: int) -> Quote:
        if tariff.batch is None and not unpriced_ok:
            raise _no_price(name, tariff, near)
        ceiling = ceiling_of(request, size)
        most = pricing.most(ceiling.input, ceiling.output) if tariff.batch else NOTHING
        return Quote(most=most, tokens=size // BYTES_PER_TOKEN + ceiling.output)

    return quote


def _no_price(name: str, tariff: Tariff, near: Sequence[str]) -> BadConfiguration:
    known = "" if tariff.live is None else " (one for live calls is)"
    return BadConfiguration(
        f"no batch price is known for {name}{known}, so a batch has no maximum cost",
        suggestions=(
            *did_you_mean(near),
            f"set it in muster.toml: {PRICE} (dollars per million tokens)",
            "or send the call live, without a batch",
            "or allow uncounted costs: --allow-unpriced",
        ),
    )
