"""The pipes of a process: bytes are moved when there is room or something to read, without blocking."""

import asyncio
import os
import subprocess
from collections import deque
from collections.abc import Callable
from io import FileIO, RawIOBase

CHUNK = 262_144
PIPE = 65_536  # what a pipe holds


class InputPipe:
    """What a process reads: sent as fast as it takes it."""

    def __init__(self, pipe: RawIOBase | None, loop: asyncio.AbstractEventLoop) -> None:
        self._pipe, self._loop = pipe, loop
        self._unsent: deque[memoryview] = deque()
        self._closing = False
        self.broken = False  # it closed its end before it had everything

    @property
    def pending(self) -> bool:
        """Return whether something is still to be taken."""
        return bool(self._unsent)

    def write(self, data: bytes) -> None:
        """Send some bytes, now or later."""
        if self._pipe is None:
            self.broken = self.broken or bool(data)
        elif data:
            self._unsent.append(memoryview(data))
            self._send()

    def close(self) -> None:
        """End it after what was written."""
        self._closing = True
        if not self._unsent:
            self.shut()

    def shut(self) -> None:
        """End it now."""
        if self._pipe is not None:
            self._unsent.clear()
            self._loop.remove_writer(self._pipe)
            self._pipe.close()
            self._pipe = None

    def _send(self) -> None:
        try:
            while self._pipe is not None and self._unsent:
                written = self._pipe.write(self._unsent[0][:CHUNK])
                if written is None:  # it has not read yet what it was given before
                    self._loop.add_writer(self._pipe, self._send)
                    return
                self._unsent[0] = self._unsent[0][written:]
                if not self._unsent[0]:
                    self._unsent.popleft()
        except OSError:
            self.broken = True
            self.shut()
            return
        if self._closing:
            self.shut()
        elif self._pipe is not None:
            self._loop.remove_writer(self._pipe)


class OutputPipe:
    """What a process writes: handed over piece by piece, the end as nothing."""

    def __init__(self, pipe: RawIOBase | None, loop: asyncio.AbstractEventLoop, take: Callable[[bytes], None]) -> None:
        self._pipe, self._loop, self._take = pipe, loop, take
        self._paused = True
        if pipe is not None:
            os.set_blocking(pipe.fileno(), False)
            self.resume()

    @property
    def over(self) -> bool:
        """Return whether nothing more comes."""
        return self._pipe is None

    def pause(self) -> None:
        """Let the process wait."""
        if self._pipe is not None and not self._paused:
            self._paused = True
            self._loop.remove_reader(self._pipe)

    def resume(self) -> None:
        """Let it write again."""
        if self._pipe is not None and self._paused:
            self._paused = False
            self._loop.add_reader(self._pipe, self._read)

    def drain(self) -> None:
        """Read what is in the pipe already, and wait for nothing."""
        while self._pipe is not None and not self._paused and self._read():
            pass

    def shut(self) -> None:
        """Read no more."""
        if self._pipe is not None:
            self.pause()
            self._pipe.close()
            self._pipe = None

    def _read(self) -> bool:
        if self._pipe is None:
            return False
        try:
            data = self._pipe.read(CHUNK)
        except OSError:
            data = b""
        if data is None:
            return False  # nothing yet
        if not data:
            self.shut()
        self._take(data)
        return bool(data)


def filled(data: bytes | None) -> tuple[RawIOBase | None, int, int]:
    """Make the pipe of an input with as much in it as it holds: our end, the other end, and how much that is.

    It is filled before the process is there: else it would be chance whether one that exits without reading took it.
    """
    if data is None:
        return None, subprocess.DEVNULL, 0
    outlet, inlet = os.pipe()
    os.set_blocking(inlet, False)
    return FileIO(inlet, "wb"), outlet, os.write(inlet, data[:PIPE]) if data else 0
