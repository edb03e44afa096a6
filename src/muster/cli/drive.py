"""A run driven by the command itself: shown while it goes, stopped by signals, and what its end means."""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from muster.app import Muster
from muster.app.runs.continuations import require_not_driven
from muster.app.runs.handle import RunHandle
from muster.app.runs.runs import require_completed
from muster.cli.people import QuestionTeller
from muster.cli.terminal.display import Display, shown
from muster.cli.terminal.progress import ProgressState, run_progress
from muster.domain.batch import Batch
from muster.domain.entry import Event
from muster.domain.errors import Conflict, Interrupted
from muster.domain.run import Run


class ProgressSource(Protocol):
    """Looks at a run while it is driven."""

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
        """Return what is to be seen."""


class CallProgress:
    """Sees the calls of a run."""

    async def look(self, run: Run, on_wire: int, batches: Sequence[Batch] = ()) -> ProgressState:
        """Return what is to be seen."""
        return run_progress(run, on_wire, batches)


async def drive(
    muster: Muster,
    handle: RunHandle,
    display: Display,
    progress_source: ProgressSource | None = None,
    *,
    prompts: bool = False,
    notes: bool = True,
) -> Run:
    """Wait for a run that this process drives; gives it when it is completed or detached, and raises anything else.

    Questions to people are told with how to answer them; with `prompts` they are asked in the terminal. With `notes`
    it is told which agents may write less than was asked of them.
    """
    awaited, progress_source = AwaitedBatches(muster), progress_source or CallProgress()
    SignalHandler(muster, display.tell, batches=lambda: awaited.submitted).install()
    has_people = muster.agents.has_people()
    people = QuestionTeller(muster, handle.id, display.tell, prompts=prompts) if has_people else None

    limits = NoteTeller(muster, display.tell) if notes else None

    async def look() -> ProgressState:
        if limits is not None:
            limits.look()
        if people is not None:
            await people.look()
        return await progress_source.look(await handle.run(), muster.runs.calls_on_wire, await awaited.look())

    with display:
        try:
            run = await shown(handle.wait(), look, display)
        except Conflict as error:
            raise await _who(muster, handle, error) from error
        finally:
            if limits is not None:
                limits.look()
            if people is not None:
                people.close()
        display.show(await progress_source.look(run, 0), last=True)
    return require_completed(run)


async def _who(muster: Muster, handle: RunHandle, error: Conflict) -> Conflict:
    """Name the process that was faster."""
    try:
        require_not_driven(await handle.run())
    except Conflict as better:
        return better
    return error


class NoteTeller:
    """Tells once what is to be known of an agent: a lower limit, thinking that it does not get back, a cut answer."""

    def __init__(self, muster: Muster, tell: Callable[[str], None]) -> None:
        self._muster, self._tell = muster, tell
        self._told = 0

    def look(self) -> None:
        """Tell what is new."""
        for note in self._muster.runs.agent_notes[self._told :]:
            self._told += 1
            self._tell(f"note: {note}")


LOOK_SECONDS = 0.5


class AwaitedBatches:
    """Looks them up now and then, and remembers them in between."""

    def __init__(self, muster: Muster) -> None:
        self._muster = muster
        self._next = 0.0
        self.batches: tuple[Batch, ...] = ()

    @property
    def submitted(self) -> int:
        """How many of them the provider has for sure."""
        return sum(batch.provider_id is not None for batch in self.batches)

    async def look(self) -> tuple[Batch, ...]:
        """Return the batches under way with calls of runs that are driven here, children too."""
        now = asyncio.get_running_loop().time()
        if now >= self._next and self._muster.runs.use_batches:
            self._next = now + LOOK_SECONDS
            self.batches = tuple(await self._muster.batches.awaited_here())
        return self.batches


PATIENCE = 10.0  # seconds after the second signal for a workload that does not let go


def _leave_at_once() -> None:
    """End the process as a crash would; the store knows what to do with that."""
    words = "the workload did not stop in time and was killed; continue with: muster runs resume last\n"
    os.write(2, words.encode())
    os._exit(4)


def _nothing() -> None:
    """Do nothing."""


def _unheard(text: str) -> None:
    """Print nothing."""


def _none() -> int:
    """Count nothing."""
    return 0


class SignalHandler:
    """Stops every run that this process drives when it is told to."""

    def __init__(
        self,
        muster: Muster,
        tell: Callable[[str], None],
        *,
        on_first: Callable[[], None] = _nothing,
        batches: Callable[[], int] = _none,
    ) -> None:
        self._muster = muster
        self._tell, self._on_first, self._batches = tell, on_first, batches
        self._received = 0
        self.asked = 0

    def install(self) -> None:
        """Take over the signals until the process ends."""
        self._loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._receive)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup wants the work to go on
            signal.signal(signal.SIGHUP, self._hang_up)

    def _hang_up(self, number: int, frame: object) -> None:
        """Stop at once: the terminal is gone, and nobody is there to press Ctrl-C a second time."""
        self._tell = _unheard
        self._receive(number, frame)
        self._receive(number, frame)

    def _receive(self, number: int, frame: object) -> None:
        """Hand a signal to the loop; a loop that a workload keeps busy is not waited for without end."""
        self._received += 1
        with contextlib.suppress(RuntimeError):  # the loop is closed: everything is stored already
            self._loop.call_soon_threadsafe(self.stop)
        if self._received == 2:
            last_word = threading.Timer(PATIENCE, _leave_at_once)
            last_word.daemon = True
            last_word.start()
        elif self._received > 2:
            _leave_at_once()

    def stop(self) -> None:
        """Stop: cleanly the first time, at once the second."""
        self.asked += 1
        waiting, unstored = self._muster.runs.calls_on_wire, self._muster.runs.unstored_answers
        if self.asked == 1:
            self._tell(_first_words(waiting, unstored, self._batches()))
            self._on_first()
        elif self.asked == 2:
            self._tell(_second_words(waiting, unstored))
        self._muster.stop(Interrupted("told to stop"), now=self.asked > 1)


def _first_words(waiting: int, unstored: int, batches: int) -> str:
    left = f"{_batches(batches)} at the provider, and nothing is lost" if batches else ""
    if not waiting and not unstored:
        return f"stopping; {left or 'nothing is on the wire'}"
    awaited = [f"{_calls(waiting)} on the wire"] if waiting else []
    awaited += [f"{_answers(unstored)} not stored yet"] if unstored else []
    one = waiting + unstored == 1
    verb, it, their = ("is", "it", "its") if one else ("are", "them", "their")
    end = f"give {it} up" if unstored else f"cut {it}"
    return (
        f"stopping: {' and '.join(awaited)} {verb} waited for; "
        f"press Ctrl-C again to {end} ({their} cost becomes uncertain)" + (f"; {left}" if left else "")
    )


def _second_words(waiting: int, unstored: int) -> str:
    lost = [f"cutting {_calls(waiting)}"] if waiting else []
    lost += [f"giving up {_answers(unstored)}, unless stored by now"] if unstored else []
    return f"{' and '.join(lost)}; what they cost is uncertain" if lost else "stopping at once"


def _answers(number: int) -> str:
    return "1 answer" if number == 1 else f"{number} answers"


def _calls(number: int) -> str:
    return "1 call" if number == 1 else f"{number} calls"


def _batches(number: int) -> str:
    return "1 batch continues" if number == 1 else f"{number} batches continue"


PAGE = 1000  # events at a time


class FreshEvents:
    """Reads the events of one run, each once; remembers how far it has come."""

    def __init__(self, muster: Muster) -> None:
        self._muster = muster
        self._seen = 0

    async def of(self, run: Run) -> AsyncIterator[Event]:
        """Yield what has come since."""
        while self._seen < run.last_seq:
            events = await self._muster.runs.events(run.id, self._seen, PAGE)
            if not events:
                return
            for event in events:
                yield event
            self._seen = events[-1].seq


@dataclass(slots=True)
class InterruptMessage:
    """What is printed after Ctrl-C; filled in as soon as it is known."""

    words: str = "interrupted"
    ways: tuple[str, ...] = ()


@contextmanager
def interruptible() -> Iterator[InterruptMessage]:
    """Turn Ctrl-C inside the block into an error that says how to go on."""
    said = InterruptMessage()
    try:
        yield said
    except KeyboardInterrupt:
        raise Interrupted(said.words, suggestions=said.ways) from None
