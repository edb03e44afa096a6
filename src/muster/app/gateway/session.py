"""One run of the gateway while it is open: requests go through it until it is idle, its day is over, or it is told."""

import asyncio

from muster.agents.base import Agent
from muster.agents.upstream.dialects import AnswerForm
from muster.app.gateway.recorded import RecordedAnswers
from muster.domain.call import Reply
from muster.domain.errors import Conflict
from muster.domain.exchange import WireRequest
from muster.engine.base.clock import Clock
from muster.engine.calls.flow import AnswerFlow
from muster.engine.context import Context

IDLE_SECONDS = 900.0  # without a request, after which a run of the gateway ends
LOOK_SECONDS = 5.0
HELD = "durable"  # in the spec of a run that a program goes on with when it is started again
END = "gateway/end"  # of the step that says that the program of a durable run ended well
PATIENCE = 30.0  # seconds for which a request waits for money that others hold


async def _is_over() -> bool:
    return True


class GatewaySession:
    """Passes requests through the run that it holds open; `serve` is done by its driver."""

    def __init__(self, clock: Clock, day: str, *, recorded: RecordedAnswers | None = None, lasts: bool = False) -> None:
        """With `lasts` it ends when it is told, and not before."""
        self.day, self.recorded, self._lasts = day, recorded, lasts
        self._stopped: BaseException | None = None
        self._clock = clock
        self._context: asyncio.Future[Context] = asyncio.get_running_loop().create_future()
        self._open: set[asyncio.Task[Reply]] = set()
        self._count = 0 if recorded is None else recorded.count
        self._used = clock.monotonic()
        self._closing = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """Return whether it takes no more requests."""
        return self._closing.is_set()

    def close(self, error: BaseException | None = None) -> None:
        """Take no more requests, and let the run end when those that are under way are answered; as the error says."""
        self._stopped = self._stopped or error
        self._closing.set()

    async def serve(self, context: Context) -> None:
        """Hold a run open; told to stop by its driver, what was on the wire is answered by then."""
        self._context.set_result(context)
        try:
            while not self._closing.is_set():
                await self._look()
            while self._open:
                await asyncio.wait(set(self._open))
        except asyncio.CancelledError:
            pass
        finally:
            self._closing.set()
        if self._stopped is not None:
            raise self._stopped
        if self._lasts:
            await context.step(END, _is_over)

    async def _look(self) -> None:
        """Wait a while, or until it is told to close."""
        if self._lasts:
            await self._closing.wait()
            return
        await self._clock.sleep(LOOK_SECONDS)
        self._close_when_idle()

    def fail(self, error: BaseException) -> None:
        """Tell those who wait for the run that it did not begin."""
        self._closing.set()
        if not self._context.done():
            self._context.set_exception(error)
            self._context.exception()

    async def pass_on(self, agent: Agent, request: WireRequest, form: AnswerForm) -> AnswerFlow:
        """Begin an exchange, which goes on whatever becomes of the client; return where its answer leaves.

        What the run has in its journal is not asked again.
        """
        context = await asyncio.shield(self._context)
        if self.is_closed:
            raise Conflict("the run of the gateway has ended; send the request again")
        if self.recorded is not None:
            known = await self.recorded.take(request, form)
            if known is not None:
                return known
        self._count += 1
        self._used = self._clock.monotonic()
        flow = AnswerFlow()
        passing = context.exchange(agent, request, key=f"exchange/{self._count:06}", flow=flow, patience=PATIENCE)
        task = asyncio.get_running_loop().create_task(passing)
        self._open.add(task)
        task.add_done_callback(self._end)
        return flow

    def _end(self, task: "asyncio.Task[Reply]") -> None:
        self._open.discard(task)
        self._used = self._clock.monotonic()
        if not task.cancelled():
            task.exception()  # whoever reads the flow is told

    def _close_when_idle(self) -> None:
        if not self._open and self._clock.monotonic() - self._used > IDLE_SECONDS:
            self._closing.set()
