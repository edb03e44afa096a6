"""A proxy between a process and a server on a socket, which a test freezes or cuts off, and opens again."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Iterator
from pathlib import Path


class GatedProxy:
    """Passes connections on, in a thread of its own, until it is told not to."""

    def __init__(self, server: Path) -> None:
        self._server = server
        self._port: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event
        self._passing: asyncio.Event
        self._refuses = False
        self._last: bytes | None = None  # what a connection says last
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def listening(self) -> Iterator[int]:
        """Listen on a port of this machine."""
        thread = threading.Thread(target=lambda: asyncio.run(self._listen()), daemon=True)
        thread.start()
        try:
            yield self._port.get()
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join()

    def freeze(self) -> None:
        """Pass nothing on; nobody is told, and connections stay."""
        self._loop.call_soon_threadsafe(self._passing.clear)

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self._loop.call_soon_threadsafe(self._cut)

    def cut_after(self, words: bytes) -> None:
        """End all connections once somebody has said this, and it was passed on."""
        self._last = words

    def open(self) -> None:
        """Pass everything on again, also what came meanwhile."""
        self._loop.call_soon_threadsafe(self._open)

    def _cut(self) -> None:
        self._refuses = True
        for writer in self._writers:
            writer.transport.abort()

    def _open(self) -> None:
        self._refuses = False
        self._passing.set()

    async def _listen(self) -> None:
        self._loop, self._over, self._passing = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
        self._passing.set()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self._port.put(server.sockets[0].getsockname()[1])
        await self._over.wait()
        server.close()
        self._passing.set()
        self._cut()
        await asyncio.gather(*self._serving)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        far_reader, far_writer = await asyncio.open_unix_connection(str(self._server))
        both = {writer, far_writer}
        self._writers |= both
        passing = {
            asyncio.ensure_future(self._pass(reader, far_writer)),
            asyncio.ensure_future(self._pass(far_reader, writer)),
        }
        await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        for one in both:
            one.transport.abort()
        await asyncio.wait(passing)
        self._writers -= both

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._passing.wait()
                writer.write(data)
                await writer.drain()
                if self._last is not None and self._last in data:
                    self._last = None
                    self._cut()
