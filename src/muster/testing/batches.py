"""A batch API that obeys: in memory, without network, for tests of whatever stands on the seam of batches."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any

from muster.agents.base import Batching, BatchUpload
from muster.domain.agent import Quote, Timeouts
from muster.domain.batch import (
    Answered,
    BatchEndpoint,
    BatchLimits,
    BatchProgress,
    Errored,
    ListedBatch,
    MemberResult,
    Phase,
    Tariff,
)
from muster.domain.call import Reply, Request, Stop, Timings, Usage
from muster.domain.errors import ProviderFault, WireError
from muster.domain.money import Microdollars

ENDPOINT = BatchEndpoint(kind="anthropic", base_url="memory://", account="account", variable="")
TARIFF = Tariff(model="obedient", batch=None, live=None)

Answer = Callable[[str], str | WireError]  # from what was asked


class MemoryBatchFormat:
    """Members and results as JSON lines."""

    head, separator, tail = b"", b"\n", b"\n"

    def member(self, name: str, body: bytes) -> bytes:
        """Write one member."""
        return b'{"custom_id":%b,"body":%b}' % (json.dumps(name).encode(), body)

    def read(self, line: bytes) -> tuple[str, MemberResult] | None:
        """Read one line of results."""
        try:
            found = json.loads(line)
        except ValueError:
            return None
        if "error" in found:
            return found["custom_id"], Errored(ProviderFault(found["error"]))
        return found["custom_id"], Answered(found["text"])

    def decode(self, answer: Any, tariff: Tariff, size: int, max_tokens: int, timings: Timings) -> Reply:
        """Read an answer; it costs a microdollar."""
        usage = Usage(input=size, output=1)
        return Reply(text=answer, stop=Stop.END, usage=usage, cost=Microdollars(1), timings=timings)


class MemoryBatches:
    """Takes batches, and ends them when it is told to; a batch can be looked into by its requests."""

    labels_batches = False
    uploads_file = False

    def __init__(self, answer: Answer = str, *, limits: BatchLimits | None = None, most: int = 10) -> None:
        self._answer, self._most = answer, most
        self.endpoint, self.format = ENDPOINT, MemoryBatchFormat()
        self.limits = limits or BatchLimits(requests=100_000, bytes=1_000_000)
        self.taken: list[list[dict[str, str]]] = []  # the members of every batch
        self.arrived = asyncio.Queue[str]()
        self.refusals: list[WireError] = []  # raised, in turn, by the next creates
        self.ended: set[str] = set()
        self.canceled: set[str] = set()
        self.polls = 0

    def batching(self) -> Batching:
        """Return how an agent is asked here."""
        return Batching(agent=self, tariff=TARIFF, encode=self._encode, quote=self._quote)

    def end(self, *names: str) -> None:
        """Let batches end, all of them when none is named."""
        self.ended.update(names or [str(number) for number in range(len(self.taken))])

    async def submit(self, upload: BatchUpload, timeouts: Timeouts) -> str:
        """Take a batch."""
        if self.refusals:
            raise self.refusals.pop(0)
        body = b"".join([piece async for piece in upload.pieces()])
        self.taken.append([json.loads(line) for line in body.splitlines()])
        name = str(len(self.taken) - 1)
        self.arrived.put_nowait(name)
        return name

    async def poll(self, provider_id: str, timeouts: Timeouts) -> BatchProgress:
        """Return the progress of a batch."""
        self.polls += 1
        over = provider_id in self.ended or provider_id in self.canceled
        sources = (provider_id,) if over else ()
        return BatchProgress(
            phase=Phase.ENDED if over else Phase.RUNNING, word="over" if over else "at it", sources=sources
        )

    async def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Yield the results in one piece, the last first."""
        for member in reversed(self.taken[int(source)]):
            answer = self._answer(member["body"])
            found = {"error": answer.message} if isinstance(answer, WireError) else {"text": answer}
            yield json.dumps({"custom_id": member["custom_id"], **found}).encode() + b"\n"

    async def cancel(self, provider_id: str, timeouts: Timeouts) -> None:
        """Stop a batch."""
        self.canceled.add(provider_id)

    async def find(self, since: float, timeouts: Timeouts) -> AsyncIterator[ListedBatch]:
        """Yield nothing: whoever created a batch here knows its id."""
        nothing: tuple[ListedBatch, ...] = ()
        for found in nothing:
            yield found

    def _encode(self, request: Request, cache: bool) -> bytes:
        text = request.messages[-1].text + (" (cached)" if cache else "")
        return json.dumps(text).encode()

    def _quote(self, request: Request, size: int) -> Quote:
        return Quote(most=Microdollars(self._most), tokens=1)
