"""One account at one provider: carries the exchanges that batches need, with the key and the provider's way to fail."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from muster.agents.account import Account
from muster.agents.address import below, join
from muster.agents.cargo import Cargo
from muster.agents.faults import unpaid
from muster.agents.flow import Answer
from muster.agents.http import Freight
from muster.domain.agent import Timeouts
from muster.domain.batch import Phase, Progress
from muster.domain.errors import OutcomeUnknown, WireError

MOST_FAILURE_BYTES = 64 * 1024  # of an answer that is read only to say what went wrong
JSON = "application/json"

Fault = Callable[[int, Mapping[str, str], bytes, Account], WireError]


@contextmanager
def free_of_charge() -> Iterator[None]:
    """Tell errors of what only looks: nothing was created or paid, whatever became of the exchange."""
    try:
        yield
    except OutcomeUnknown as error:
        raise unpaid(error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Clerk:
    """Sends to addresses below the base only; gives the bodies of successes and raises everything else."""

    base_url: str
    account: Account
    headers: Mapping[str, str] = field(repr=False)  # they hold the key
    http: Freight
    fault: Fault

    def address(self, path: str) -> str:
        """Give the address of something below the base."""
        return join(self.base_url, path)

    async def look(self, path: str, timeouts: Timeouts) -> bytes:
        """Look at something."""
        with free_of_charge():
            return self._body(await self.http.get(self.address(path), self.headers, timeouts))

    async def tell(self, path: str, body: bytes, timeouts: Timeouts) -> bytes:
        """Send JSON, or nothing at all."""
        headers = {**self.headers, "content-type": JSON} if body else self.headers
        return self._body(await self.http.post(self.address(path), headers, body, timeouts))

    async def hand_in(self, path: str, cargo: Cargo, kind: str, timeouts: Timeouts) -> bytes:
        """Send something large."""
        headers = {**self.headers, "content-type": kind}
        return self._body(await self.http.upload(self.address(path), headers, cargo, timeouts))

    async def read(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Give something large as it arrives; an address elsewhere is refused before anything is sent."""
        with free_of_charge():
            async with self.http.fetch(below(self.base_url, source), self.headers, timeouts) as flow:
                if not 200 <= flow.status < 300:
                    body = await flow.beginning(MOST_FAILURE_BYTES)
                    raise self.fault(flow.status, flow.headers, body, self.account)
                async for chunk in flow.chunks:
                    yield chunk

    async def cancel(self, path: str, poll: Callable[[], Awaitable[Progress]], timeouts: Timeouts) -> None:
        """Ask the provider to stop a batch; it may refuse for one that is over, or about to be."""
        try:
            with free_of_charge():
                await self.tell(path, b"", timeouts)
        except WireError as error:
            # Which words it refuses with differs; what matters is whether anything is left to stop.
            if error.status not in (400, 409) or _goes_on(await poll()):
                raise

    def _body(self, answer: Answer) -> bytes:
        if not 200 <= answer.status < 300:
            raise self.fault(answer.status, answer.headers, answer.body, self.account)
        return answer.body


def _goes_on(progress: Progress) -> bool:
    return progress.phase is Phase.RUNNING and progress.word not in ("canceling", "cancelling")
