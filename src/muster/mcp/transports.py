"""How clients reach the server: over standard input and output, or over HTTP.

Over HTTP there is no session: every request is answered by itself, so clients go on when the server was started again.
"""

import contextlib
import json
import os
import re
import threading
from asyncio import AbstractEventLoop, Queue, get_running_loop
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

from anyio import BrokenResourceError, ClosedResourceError
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from muster.app import Muster
from muster.mcp.server import Coordinator

CHUNK = 65_536  # bytes that are read at once
MAX_LINE = 8_388_608  # bytes; the largest arguments that a tool takes are the 50 prompts of a fan-out
KEPT = 1_000  # bytes of each end of a line that is too long
TOO_LONG = f"this line is too long: a message may have {MAX_LINE:,} bytes"
# An id may be the first or the last member of a message, besides its version: clients write it in either place.
_ID = rb'"id"\s*:\s*(?P<id>-?\d{1,18}|"(?:[^"\\]|\\.){0,200}")'
_VERSION = rb'"jsonrpc"\s*:\s*"2\.0"'
ID_FIRST = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb"\s*,")
ID_LAST = re.compile(rb"[\"}\]\w]\s*,\s*" + _ID + rb"\s*(?:,\s*" + _VERSION + rb"\s*)?\}\s*$")
NOT_A_MESSAGE = (
    "this line is not a JSON-RPC message: not JSON, half of a surrogate pair in a text, or nested too deeply"
)

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HttpApp = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[MutableMapping[str, Any]]], Send], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LongLine:
    """What is kept of a line that is too long: its ends, one of which has the id of the message."""

    beginning: bytes
    end: bytes

    @property
    def id(self) -> str | int | None:
        """Return the id of the message where it stands first or last, as clients write it; None anywhere else."""
        found = ID_FIRST.match(self.beginning) or ID_LAST.search(self.end)
        return None if found is None else _id_in(f'{{"id": {found["id"].decode("utf-8", "replace")}}}')


class LineSplitter:
    """Divides what arrives in chunks into lines; of a line that is too long it keeps the ends only."""

    def __init__(self, longest: int = MAX_LINE) -> None:
        self._longest = longest
        self._begun: list[bytes] = []
        self._size = 0
        self._end = b""  # of a line that is too long

    def feed(self, chunk: bytes) -> Iterator[bytes | LongLine]:
        """Yield the lines that end in a chunk."""
        *ends, begun = chunk.split(b"\n")
        for end in ends:
            self._add(end)
            yield self._taken()
        self._add(begun)

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size <= self._longest:
            self._begun.append(part)
            return
        self._begun = [b"".join(self._begun)[:KEPT]]
        self._end = (self._end + part)[-KEPT:]

    def _taken(self) -> bytes | LongLine:
        whole, end, is_long = b"".join(self._begun), self._end, self._size > self._longest
        self._begun, self._size, self._end = [], 0, b""
        return LongLine(beginning=whole, end=end) if is_long else whole


class _InputLines:
    """The lines of standard input, read by a thread that nobody waits for at the end: a read cannot be canceled.

    The thread has a descriptor of its own: a buffered file that it holds could not be closed when the process ends.
    Whoever else reads standard input finds it empty. It reads on when the line before was taken: what a client sends
    faster than it is read stays with the client.
    """

    def __init__(self) -> None:
        self._lines: Queue[bytes | LongLine | None] = Queue()
        self._taken = threading.Semaphore()
        self._file, empty = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        threading.Thread(target=self._read, args=(get_running_loop(),), daemon=True, name="mcp-stdin").start()

    def _read(self, loop: AbstractEventLoop) -> None:
        splitter = LineSplitter()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            while chunk := os.read(self._file, CHUNK):
                for line in splitter.feed(chunk):
                    self._taken.acquire()
                    loop.call_soon_threadsafe(self._lines.put_nowait, line)
            loop.call_soon_threadsafe(self._lines.put_nowait, None)

    async def __aiter__(self) -> AsyncIterator[str | LongLine]:
        while (line := await self._lines.get()) is not None:
            self._taken.release()
            yield line if isinstance(line, LongLine) else line.decode("utf-8", "replace")


class _Answers(Protocol):
    """Where messages to the client are sent."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""


class _Messages:
    """The lines that are messages; the SDK would drop any other in silence, and its sender would wait for ever."""

    def __init__(self, lines: AsyncIterable[str | LongLine]) -> None:
        self._lines = lines
        self.answers: _Answers | None = None  # set when there is somewhere to answer

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            if isinstance(line, LongLine):
                await self._refuse(line.id, INVALID_REQUEST, TOO_LONG)
            elif _is_message(line):
                yield line
            elif line.strip():  # nothing waits for an empty one
                await self._refuse(_id_in(line), PARSE_ERROR, NOT_A_MESSAGE)

    async def _refuse(self, id_: str | int | None, code: int, words: str) -> None:
        """Answer a line that is not taken, under its id where one can be read."""
        if self.answers is None:
            return
        error = ErrorData(code=code, message=words)
        with contextlib.suppress(BrokenResourceError, ClosedResourceError):  # the client is gone
            await self.answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=id_, error=error)))


def _is_message(line: str) -> bool:
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return False
    return True


def _id_in(line: str) -> str | int | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    id_ = found.get("id") if isinstance(found, dict) else None
    return id_ if isinstance(id_, str | int) and not isinstance(id_, bool) and _is_text(id_) else None


def _is_text(id_: str | int) -> bool:
    return isinstance(id_, int) or not any("\ud800" <= one <= "\udfff" for one in id_)


async def serve_stdio(muster: Muster) -> None:
    """Serve the process that started this one, until it closes standard input; nothing else is written to output."""
    server, messages = Coordinator(muster).server(), _Messages(_InputLines())
    try:
        async with stdio_server(stdin=cast(Any, messages)) as (reading, writing):
            messages.answers = writing
            await server.run(reading, writing, server.create_initialization_options())
    except* OSError:
        pass  # the client has closed both sides


@asynccontextmanager
async def http_app(muster: Muster) -> AsyncIterator[HttpApp]:
    """Give an ASGI application for one path; Host, Origin, tokens and sizes are checked before it."""
    manager = StreamableHTTPSessionManager(Coordinator(muster).server(), stateless=True)
    async with manager.run():
        yield manager.handle_request
