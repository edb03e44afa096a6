"""Processes of the loaded program that are started, read, told things and killed, many at once."""

import asyncio
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests import forkserver


class ForkedProcess:
    """A process that was forked from the loaded one, with what tests use of asyncio's own."""

    def __init__(
        self,
        pid: int,
        ended: "asyncio.Task[int]",
        stdin: asyncio.WriteTransport | None,
        stdout: asyncio.StreamReader | None,
        stderr: asyncio.StreamReader | None,
        closing: "asyncio.Task[None]",
    ) -> None:
        self.pid, self.stdin, self.stdout, self.stderr = pid, stdin, stdout, stderr
        self._ended, self._closing = ended, closing

    @property
    def returncode(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self._ended.result() if self._ended.done() else None

    async def wait(self) -> int:
        """Wait for its end."""
        return await asyncio.shield(self._ended)

    async def communicate(self, data: bytes = b"") -> tuple[bytes, bytes]:
        """Give it its input, and read all that it writes until it has ended."""
        if self.stdin is not None:
            self.stdin.write(data)
            self.stdin.close()
        out, err, _ = await asyncio.gather(_rest(self.stdout), _rest(self.stderr), self.wait())
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End it without a word."""
        self.send_signal(9)


async def start(
    module: str,
    *arguments: str,
    folder: Path,
    environment: Mapping[str, str],
    stdin: int = DEVNULL,
    stdout: int = PIPE,
    stderr: int = PIPE,
    session: bool = False,
) -> ForkedProcess:
    """Start a module as a program."""
    request = {
        "module": module,
        "arguments": list(arguments),
        "folder": str(folder),
        "environment": dict(environment),
        "session": session,
    }
    null = os.open(os.devnull, os.O_RDWR)
    given = os.pipe() if stdin == PIPE else (null, None)
    out, err = (os.pipe() if where == PIPE else (None, null) for where in (stdout, stderr))
    status = forkserver.server().begin(request, [given[0], out[1], err[1]])
    for file in {given[0], out[1], err[1], null}:
        os.close(file)
    status.setblocking(False)
    loop = asyncio.get_running_loop()

    async def code() -> int:
        with status:
            return int(await loop.sock_recv(status, 100))

    pid = int(await loop.sock_recv(status, 100))
    writer = None if given[1] is None else await _writer(given[1])
    (read, reader), (read_errors, errors) = [await _reader(pipe) for pipe in (out[0], err[0])]
    opened = [one for one in (writer, read, read_errors) if one is not None]
    return ForkedProcess(
        pid, loop.create_task(code()), writer, reader, errors, loop.create_task(_close_with_the_loop(opened))
    )


async def _close_with_the_loop(opened: Sequence[asyncio.BaseTransport]) -> None:
    """Close what a test has not read to its end: the loop forgets it, and another test would be told."""
    try:
        await asyncio.Event().wait()
    finally:
        for one in opened:
            one.close()


async def _reader(file: int | None) -> tuple[asyncio.ReadTransport | None, asyncio.StreamReader | None]:
    if file is None:
        return None, None
    found = asyncio.StreamReader()
    pipe = os.fdopen(file, "rb", buffering=0)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(found), pipe)
    return transport, found


async def _writer(file: int) -> asyncio.WriteTransport:
    pipe = os.fdopen(file, "wb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_write_pipe(asyncio.BaseProtocol, pipe)
    return transport


async def _rest(stream: asyncio.StreamReader | None) -> bytes:
    return b"" if stream is None else await stream.read()
