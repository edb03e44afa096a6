"""Models behind chat completions, asked through batches: OpenAI and every compatible server that has them."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from urllib.parse import quote

from muster.agents.account import Account, fingerprint
from muster.agents.address import join
from muster.agents.base import Parcel
from muster.agents.clerk import Clerk, free_of_charge
from muster.agents.http import Freight
from muster.agents.openai import answer
from muster.agents.openai.form import form_of
from muster.agents.openai.progress import LABEL, id_of, page_of, progress_of
from muster.agents.openai.spelling import ENDPOINT, OpenAISpelling
from muster.agents.pages import leaf
from muster.agents.payload import to_json
from muster.domain.agent import Timeouts
from muster.domain.batch import Desk, Found, Limits, Progress

KIND = "openai"
LIMITS = Limits(requests=50_000, bytes=200_000_000)
WINDOW = "24h"  # the only one there is
PAGE = 100


def scope_of(model: str) -> str:
    """Say what may not be mixed: a batch is for one endpoint and one model."""
    return f"{ENDPOINT} {model}"


class OpenAIBatches:
    """Batches of one model under one account."""

    limits = LIMITS

    def __init__(self, *, key: str, variable: str, base_url: str, scope: str, http: Freight) -> None:
        base_url = join(base_url, "")
        account = Account(place=f"the batches at {base_url}", variable=variable, key=key)
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self.desk = Desk(
            kind=KIND, base_url=base_url, account=fingerprint(base_url, key), variable=variable, scope=scope
        )
        self.spelling = OpenAISpelling(account)
        self._clerk = Clerk(base_url=base_url, account=account, headers=headers, http=http, fault=answer.fault)

    async def submit(self, parcel: Parcel, timeouts: Timeouts) -> str:
        """Create the batch, once, and give the provider's id."""
        file = parcel.file
        if file is None:
            file = await self._upload(parcel, timeouts)
            await parcel.on_file(file)
        create = {
            "input_file_id": file,
            "endpoint": ENDPOINT,
            "completion_window": WINDOW,
            "metadata": {LABEL: parcel.id},
        }
        return id_of(await self._clerk.tell("/batches", to_json(create), timeouts), "batch", self._clerk.account)

    async def poll(self, provider_id: str, timeouts: Timeouts) -> Progress:
        """Say how it stands."""
        progress, files = progress_of(await self._clerk.look(_path(provider_id), timeouts), self._clerk.account)
        paths = [f"/files/{quote(name, safe='')}/content" for name in files]
        return replace(progress, sources=tuple([self._clerk.address(path) for path in paths]))

    def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Give the bytes of one file of results as they arrive."""
        return self._clerk.read(source, timeouts)

    async def cancel(self, provider_id: str, timeouts: Timeouts) -> None:
        """Ask the provider to stop; one that has ended is left alone."""
        await self._clerk.cancel(f"{_path(provider_id)}/cancel", lambda: self.poll(provider_id, timeouts), timeouts)

    def find(self, since: float, timeouts: Timeouts) -> AsyncIterator[Found]:
        """Give the account's batches that were created since then, the newest first."""

        async def turn(after: str) -> tuple[Sequence[Found], bool]:
            query = f"?limit={PAGE}" + (f"&after={quote(after, safe='')}" if after else "")
            return page_of(await self._clerk.look(f"/batches{query}", timeouts), self._clerk.account)

        return leaf(turn, since)

    async def _upload(self, parcel: Parcel, timeouts: Timeouts) -> str:
        cargo, kind = form_of(parcel)
        with free_of_charge():  # a file costs nothing, and one that nobody knows of harms nobody
            return id_of(await self._clerk.hand_in("/files", cargo, kind, timeouts), "file", self._clerk.account)


def _path(provider_id: str) -> str:
    return f"/batches/{quote(provider_id, safe='')}"
