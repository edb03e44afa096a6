"""The seam of the agents: what the engine knows of one."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, TypeVarTuple, runtime_checkable

from muster.domain.agent import Command, Profile, Quote, Timeouts
from muster.domain.batch import BatchEndpoint, BatchLimits, BatchProgress, ListedBatch, MemberResult, Tariff
from muster.domain.call import Reply, Request, Timings
from muster.domain.exchange import WireRequest
from muster.domain.ids import BatchId
from muster.text.schemas.guard import in_schema_thread

OnDelta = Callable[[str], None]
Arguments = TypeVarTuple("Arguments")
Answered = TypeVar("Answered")


class Agent(Protocol):
    """One agent, ready to be asked.

    The engine calls `quote` before every attempt, then `call` once per attempt, from many tasks at once.
    `call` never retries by itself. It raises only errors of the tree in `domain.errors`; their `paid` says whether
    the provider may have charged. Cancellation closes the exchange at once and is passed on.
    """

    @property
    def profile(self) -> Profile:
        """Return the profile: the name, its defaults and its pace."""

    def quote(self, request: Request) -> Quote:
        """Return the maximum cost of one attempt, or raise BadConfiguration when no price is known."""

    async def call(self, request: Request, timeouts: Timeouts, on_delta: OnDelta | None = None) -> Reply:
        """Ask once and give the whole reply; with `on_delta`, hand over text as it is written."""

    async def close(self) -> None:
        """Close connections; may be called twice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxMessage:
    """Something that is said to an agent while it works."""

    id: str  # a UUID, the same whenever this message is offered
    text: str


class Inbox(Protocol):
    """What is said to one call while it is made. Called by the agent, until its call is over.

    A message that was offered and not taken stays where it was, for the next prompt or call.
    """

    async def next(self) -> InboxMessage:
        """Wait for the next message that was not offered to this attempt; may be canceled at any time."""

    async def taken(self, message: InboxMessage) -> None:
        """Write down that the agent has taken a message in; from then on no other call gets it."""


@runtime_checkable
class InteractiveAgent(Protocol):
    """An agent that can be told more while it works, and that says when it has taken it in."""

    @property
    def takes_messages(self) -> bool:
        """Return whether this one can: it may depend on its settings."""

    async def converse(
        self, request: Request, timeouts: Timeouts, inbox: Inbox, on_delta: OnDelta | None = None
    ) -> Reply:
        """Ask once, as `Agent.call` does, and hand over what comes into the inbox meanwhile."""


class WireSink(Protocol):
    """Takes the answer of an upstream as it arrives. Called by the agent, in order, until its exchange is over."""

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        """Take the status and the headers that go on to the client."""

    def write(self, piece: bytes) -> None:
        """Take a piece of the body that may leave at once."""

    def hold(self, piece: bytes) -> None:
        """Take a piece that leaves when what the answer cost is booked; everything that follows it does too."""

    def keep(self, piece: bytes) -> None:
        """Take a piece that belongs to the answer and was not asked for by the client, who does not get it."""

    def end(self) -> None:
        """Take note that the answer is whole, whatever can be made of it."""


@runtime_checkable
class UpstreamAgent(Protocol):
    """An agent that passes the requests of foreign programs on as they are.

    `exchange` sends once and never again. What the upstream answers goes into the sink unchanged, errors too, before
    the reply is returned or the error raised; an error without an answer leaves the sink empty.
    """

    async def exchange(self, request: WireRequest, timeouts: Timeouts, sink: WireSink) -> Reply:
        """Pass a request on and its answer back, and return what the answer says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchUpload:
    """A batch to be handed in: its stored bytes, exactly as they were planned."""

    id: BatchId
    requests: int
    size: int  # bytes of all pieces together
    pieces: Callable[[], AsyncIterator[bytes]]  # the whole body, from the start at every call
    file: str | None  # the input file, when a former attempt uploaded it
    on_file: Callable[[str], Awaitable[None]]  # remembers the input file before the create leaves


class BatchAgent(Protocol):
    """One provider's batch API under one account.

    Nothing here retries. Errors are those of the tree: `Unreachable` and other errors whose `paid` is NO mean that
    nothing was created, `OutcomeUnknown` means that it may have been. Cancellation closes the exchange.
    """

    @property
    def endpoint(self) -> BatchEndpoint:
        """Return the account at the provider."""

    @property
    def limits(self) -> BatchLimits:
        """Return how much one batch may contain."""

    @property
    def format(self) -> "BatchFormat":
        """Return how members and results are encoded."""

    @property
    def labels_batches(self) -> bool:
        """Return whether the provider's list has our id or input file, so that unresolved creates can be told apart."""

    @property
    def uploads_file(self) -> bool:
        """Return whether requests are uploaded as a file first: a batch without one cannot have been created."""

    async def submit(self, upload: BatchUpload, timeouts: Timeouts) -> str:
        """Create the batch, once, and give the provider's id."""

    async def poll(self, provider_id: str, timeouts: Timeouts) -> BatchProgress:
        """Return the progress of a batch; UnknownModel (404) may be temporary shortly after the creation."""

    def results(self, source: str, timeouts: Timeouts) -> AsyncGenerator[bytes, None]:
        """Return the bytes of one source of results as they arrive, JSON lines in any order."""

    async def cancel(self, provider_id: str, timeouts: Timeouts) -> None:
        """Ask the provider to stop; one that has ended is left alone."""

    def find(self, since: float, timeouts: Timeouts) -> AsyncIterator[ListedBatch]:
        """Return the account's batches that were created since then, the newest first."""


class BatchFormat(Protocol):
    """How one batch API writes members and results; pure."""

    head: bytes
    separator: bytes
    tail: bytes

    def member(self, name: str, body: bytes) -> bytes:
        """Write one member."""

    def read(self, line: bytes) -> tuple[str, MemberResult] | None:
        """Read one line of results: the member's name and what became of it; None when it cannot be read."""

    def decode(self, answer: Any, tariff: Tariff, size: int, max_tokens: int, timings: Timings) -> Reply:
        """Return an answer that `read` found as a reply at the price of the batch; raises the error in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """How one agent is asked in batches."""

    agent: BatchAgent
    tariff: Tariff
    encode: Callable[[Request, bool], bytes]  # the body of a member; True: mark the shared prefix for the cache
    quote: Callable[[Request, int], Quote]  # the most that a member can cost into which at most so many tokens go
    takes: Callable[[Request], bool] = lambda request: True
    instead: "Batching | None" = None  # for requests that it does not take: a batch has one endpoint

    def of(self, request: Request) -> "Batching":
        """Return how this request is asked."""
        return self if self.instead is None or self.takes(request) else self.instead


class Directory(Protocol):
    """Finds agents by name; the same name gives the same agent."""

    def find(self, name: str) -> Agent:
        """Return the agent, or raise BadConfiguration with the names that would do."""

    def command(self, command: Command) -> Agent:
        """Return the agent that runs a command of the user's own: text in, text out, and it costs nothing."""

    def batching(self, name: str) -> Batching | None:
        """Return how the agent is asked in batches; None for one that answers on this machine, without a provider."""

    def flex(self, name: str) -> Agent | None:
        """Return the agent that asks the same in the tier flex; None where there is no such tier."""

    def reopen(self, endpoint: BatchEndpoint) -> BatchAgent:
        """Come back to where a batch was handed in; raises BadConfiguration when the key is missing or another's."""


class DeltaCollector:
    """Hands over text as it comes, or as a whole at the end, and remembers when the first came."""

    def __init__(self, clock: Callable[[], float], on_delta: OnDelta | None) -> None:
        self._clock, self._on_delta = clock, on_delta
        self._began = clock()
        self._first: float | None = None

    def add(self, text: str) -> None:
        """Hand over some text."""
        if not text:
            return
        if self._first is None:
            self._first = self._clock() - self._began
        if self._on_delta is not None:
            self._on_delta(text)

    def finish(self, text: str) -> None:
        """Hand over the whole text if none of it was handed over yet."""
        if self._first is None:
            self.add(text)

    def timings(self) -> Timings:
        """Return how long it took until now."""
        return Timings(first_token=self._first, wire=self._clock() - self._began)


async def read_answer(request: Request, read: Callable[[*Arguments], Answered], *arguments: *Arguments) -> Answered:
    """Read an answer, in a thread where a schema is applied to it: that may take seconds, and others go on."""
    if request.schema is None:
        return read(*arguments)
    return await in_schema_thread(read, *arguments)
