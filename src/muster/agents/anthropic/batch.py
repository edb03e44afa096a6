"""Models of Anthropic, asked through Message Batches."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from urllib.parse import quote

from muster.agents.account import Account, fingerprint
from muster.agents.address import join
from muster.agents.anthropic import answer, wire
from muster.agents.anthropic.live import VERSION
from muster.agents.anthropic.progress import created_of, page_of, progress_of
from muster.agents.anthropic.spelling import AnthropicSpelling
from muster.agents.base import Parcel
from muster.agents.cargo import Cargo
from muster.agents.clerk import JSON, Clerk
from muster.agents.http import Freight
from muster.agents.pages import leaf
from muster.domain.agent import Timeouts
from muster.domain.batch import Desk, Found, Limits, Progress
from muster.domain.call import Request

KIND = "anthropic"
LIMITS = Limits(requests=100_000, bytes=256_000_000)
KEPT = "1h"  # members of a batch are answered within hours, not minutes, of each other
PAGE = 100

_PATH = "/v1/messages/batches"


def encode(request: Request, model: str, *, cache: bool) -> bytes:
    """Write the parameters of a member; what its request says of the cache goes before what the batch says."""
    marked = replace(request, cache=KEPT) if cache and request.cache is None else request
    return wire.encode(marked, model)


class AnthropicBatches:
    """Message Batches under one account; all its models share them."""

    limits = LIMITS

    def __init__(self, *, key: str, variable: str, base_url: str, http: Freight) -> None:
        base_url = join(base_url, "")
        account = Account(place=f"the batches at {base_url}", variable=variable, key=key)
        headers = {"x-api-key": key, "anthropic-version": VERSION}
        self.desk = Desk(kind=KIND, base_url=base_url, account=fingerprint(base_url, key), variable=variable)
        self.spelling = AnthropicSpelling(account)
        self._clerk = Clerk(base_url=base_url, account=account, headers=headers, http=http, fault=answer.fault)

    async def submit(self, parcel: Parcel, timeouts: Timeouts) -> str:
        """Create the batch, once, and give the provider's id."""
        cargo = Cargo(parcel.size, parcel.pieces())
        return created_of(await self._clerk.hand_in(_PATH, cargo, JSON, timeouts), self._clerk.account)

    async def poll(self, provider_id: str, timeouts: Timeouts) -> Progress:
        """Say how it stands."""
        return progress_of(await self._clerk.look(_path(provider_id), timeouts), self._clerk.account)

    def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Give the bytes of the results as they arrive."""
        return self._clerk.read(source, timeouts)

    async def cancel(self, provider_id: str, timeouts: Timeouts) -> None:
        """Ask the provider to stop; one that has ended is left alone."""
        await self._clerk.cancel(f"{_path(provider_id)}/cancel", lambda: self.poll(provider_id, timeouts), timeouts)

    def find(self, since: float, timeouts: Timeouts) -> AsyncIterator[Found]:
        """Give the account's batches that were created since then, the newest first."""

        async def turn(after: str) -> tuple[Sequence[Found], bool]:
            query = f"?limit={PAGE}" + (f"&after_id={quote(after, safe='')}" if after else "")
            return page_of(await self._clerk.look(_PATH + query, timeouts), self._clerk.account)

        return leaf(turn, since)


def _path(provider_id: str) -> str:
    return f"{_PATH}/{quote(provider_id, safe='')}"
