"""One process of ours: its input and output moved at the same time, ended with its whole group, and seen dead."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import RawIOBase
from pathlib import Path
from typing import cast

from muster.agents.processes import system
from muster.agents.processes.pipes import InputPipe, OutputPipe, filled
from muster.domain.agent import CATCH_UP, LATE
from muster.domain.errors import NotStarted

HEAD = 32_768
TAIL = 32_768


class ErrorLog:
    """Keeps a bounded part of what was written."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Take some bytes."""
        room = HEAD - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * TAIL:  # cut now and then, not at every byte
            self._cut()

    @property
    def text(self) -> str:
        """Return what is kept; bytes that are no text are shown as such."""
        self._cut()
        middle = f"\n[… {self._left_out} bytes …]\n" if self._left_out else ""
        if not middle:
            return _text(self._head + self._tail)
        return _text(self._head) + middle + _text(self._tail)

    def _cut(self) -> None:
        over = len(self._tail) - TAIL
        if over > 0:
            del self._tail[:over]
            self._left_out += over


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "backslashreplace")


INHERITED = ("PATH", "LANG")  # all that a child gets of ours without being told


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessCommand:
    """One process to be started; the command is never given to a shell."""

    agent: str  # whose process it will be, for messages
    command: tuple[str, ...]
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # all of it; may hold secrets
    input: bytes | None = field(default=None, repr=False)  # None: its standard input is empty from the start
    stays_open: bool = False  # more may be written to its input later
    descriptors: tuple[int, ...] = ()  # of open files that it inherits, such as locks


def environment_of(
    ours: Mapping[str, str], *, named: Iterable[str] = (), own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Build a child's environment: PATH and LANG, what was named, and what is its own; nothing else of ours."""
    found = {name: ours[name] for name in (*INHERITED, *named) if name in ours}
    return found | dict(own or {})


UNREAD = 4 * 1_048_576  # bytes that may wait to be read before the process has to wait
GRACE = 2.0  # seconds between asking a process to end and ending it
KILL_SECONDS = 2.0  # seconds that the system may take to end what was killed
LOOK = 0.02  # seconds between looks where the system does not tell by itself
_TURNS = 2  # of the loop: in the second of them it has read what the kernel already knew


class Process:
    """A running process, its group and its pipes; made by `start`, and always to be ended."""

    def __init__(
        self, order: ProcessCommand, child: "subprocess.Popen[bytes]", inlet: RawIOBase | None, token: str
    ) -> None:
        self.order, self.token, self.pid = order, token, child.pid
        self.log = ErrorLog()
        self.status: int | None = None  # how its first process ended: an exit code, or the signal as a negative number
        self._child = child
        self._loop = asyncio.get_running_loop()
        self._seen = self._loop.time()
        self.lost = 0.0  # seconds in which this process stood still; they do not count as its time
        self._chunks: list[bytes] = []
        self._unread = 0
        self._news: asyncio.Future[None] | None = None
        self._ending: asyncio.Task[bool] | None = None
        self._input = InputPipe(inlet, self._loop)
        self._output = OutputPipe(_raw(child.stdout), self._loop, self._take_output)
        self._errors = OutputPipe(_raw(child.stderr), self._loop, self._take_errors)
        self._handle = _handle(self.pid)
        self._timer: asyncio.TimerHandle | None = None
        if self._handle is not None:
            self._loop.add_reader(self._handle, self._look)
        else:
            self._timer = self._loop.call_later(LOOK, self._look)

    @property
    def seen(self) -> float:
        """When it last gave a sign of life, on the loop's clock."""
        return self._seen

    @property
    def silent(self) -> bool:
        """Return whether its output has ended and was taken."""
        return self._output.over and not self._chunks

    @property
    def broken(self) -> bool:
        """Return whether it closed its input, or exited, before it had all of it."""
        return self._input.broken or (self.status is not None and self._input.pending)

    @property
    def dead(self) -> bool:
        """Return whether its whole group was seen dead."""
        return self._ending is not None and self._ending.done() and self._ending.result()

    def write(self, data: bytes) -> None:
        """Write to its standard input; data is sent as fast as it reads."""
        self._input.write(data)

    def close_input(self) -> None:
        """Let its input end after what was written."""
        self._input.close()

    async def news(self, until: float) -> bool:
        """Wait for output, its end or the exit, until a time on the loop's clock; False when that came first.

        What has arrived is read before the time decides, and a wait in which this process stood still counts as news.
        """
        if self._chunks:
            return True
        began = self._loop.time()
        self._news = news = self._loop.create_future()
        timer = self._loop.call_at(until, _wake, news)
        try:
            await news
            late = self._loop.time() - max(until, began)
            if late >= 0:
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
        finally:
            timer.cancel()
            self._news = None
        if late > LATE:
            self._seen = self._loop.time()
            self.lost += late + CATCH_UP
            return True
        return late < 0 or bool(self._chunks) or self.status is not None

    def take(self) -> bytes:
        """Return what it has written and was not read yet."""
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._unread = 0
        self._output.resume()
        return data

    def drain(self) -> None:
        """Read what is in its pipes already: for one that has exited, while others may still hold them open."""
        self._output.drain()
        self._errors.drain()

    async def end(self, grace: float = GRACE) -> bool:
        """End the whole group: asked first, then killed; says whether it was seen dead. Done again it does nothing.

        It is bounded, and cannot be left half-way: whoever is canceled here is canceled after it.
        """
        if self._ending is None:
            self._ending = self._loop.create_task(self._end(grace))
        canceled: asyncio.CancelledError | None = None
        while not self._ending.done():
            try:
                await asyncio.wait({self._ending})
            except asyncio.CancelledError as error:
                canceled = error
        if canceled is not None:
            raise canceled
        return self._ending.result()

    async def _end(self, grace: float) -> bool:
        self._input.shut()
        if self.status is None and grace > 0:
            self._signal(signal.SIGTERM)
            await self._exit(grace)
        # Its first process is not reaped before this, so that the number of the group is still its own.
        self._signal(signal.SIGKILL)
        await self._exit(KILL_SECONDS)
        self._errors.drain()
        self._errors.shut()
        self._output.shut()
        self._unwatch()
        if self.status is None:
            return False
        self._child.wait()
        return await self._group_dies()

    async def _exit(self, seconds: float) -> None:
        until = self._loop.time() + seconds
        while self.status is None and self._loop.time() < until:
            await self.news(until)
            self.take()

    async def _group_dies(self) -> bool:
        until = self._loop.time() + KILL_SECONDS
        delay = 0.0005
        while system.group_alive(self.pid):
            if self._loop.time() > until:
                return False
            await asyncio.sleep(delay)
            delay = min(2 * delay, LOOK)
        return True

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _look(self) -> None:
        """See whether it has exited, without reaping it."""
        if self._timer is not None:
            self._timer = self._loop.call_later(LOOK, self._look)
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is not None:
            self.status = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
            self._unwatch()
            self._notify()

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._handle is not None:
            self._loop.remove_reader(self._handle)
            os.close(self._handle)
            self._handle = None

    def _take_output(self, data: bytes) -> None:
        self._seen = self._loop.time()
        if data:
            self._chunks.append(data)
            self._unread += len(data)
        if self._unread > UNREAD:
            self._output.pause()
        self._notify()

    def _take_errors(self, data: bytes) -> None:
        self._seen = self._loop.time()
        self.log.add(data)

    def _notify(self) -> None:
        if self._news is not None:
            _wake(self._news)


def start(order: ProcessCommand, token: str) -> Process:
    """Start a process in a session and group of its own; it carries the token for all its descendants."""
    if not order.command:
        raise NotStarted(
            f"agent {order.agent!r}: its command is empty", suggestions=('write command = ["python3", "critic.py"]',)
        )
    inlet, outlet, sent = filled(order.input)
    try:
        child = _spawn(order, outlet, token)
    except (OSError, ValueError) as error:
        if inlet is not None:
            inlet.close()
        raise _not_started(order, error) from error
    finally:
        if inlet is not None:
            os.close(outlet)
    process = Process(order, child, inlet, token)
    if order.input is not None:
        process.write(order.input[sent:])
        if not order.stays_open:
            process.close_input()
    return process


def _spawn(order: ProcessCommand, outlet: int, token: str) -> "subprocess.Popen[bytes]":
    """Start a process; one that a signal for our own group, as from a terminal, ended before it left it is replaced."""
    while True:
        child = subprocess.Popen(  # noqa: S603  # no shell; the command is the operator's own
            order.command,
            stdin=outlet,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=order.folder,
            env=_marked(order.environment, token),
            start_new_session=True,
            pass_fds=order.descriptors,
            bufsize=0,
        )
        if os.getpgid(child.pid) == child.pid:
            return child
        with child:  # its command was never executed: a group of its own comes before that
            pass


def _not_started(order: ProcessCommand, error: Exception) -> NotStarted:
    where = f"it is started in {order.folder}" if order.folder else "it is started in this folder"
    why = str(error)
    if isinstance(error, OSError) and error.strerror:  # about the program, or about another path: the folder
        about = "" if error.filename in (None, order.command[0]) else f": {error.filename}"
        why = f"{error.strerror}{about}"
    return NotStarted(
        f"agent {order.agent!r}: failed to spawn {order.command[0]!r}: {why}",
        suggestions=(f"check that it is installed and executable, and that its folder exists ({where})",),
    )


def _marked(environment: Mapping[str, str], token: str) -> dict[str, str]:
    """Add the token to an environment; one that is there already is of a process around us, and stays."""
    outer = environment.get(system.TOKEN_VARIABLE)
    return {**environment, system.TOKEN_VARIABLE: f"{outer},{token}" if outer else token}


def _raw(pipe: object) -> RawIOBase:
    return cast(RawIOBase, pipe)  # unbuffered, as it was asked for


def _handle(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _wake(news: "asyncio.Future[None]") -> None:
    if not news.done():
        news.set_result(None)
