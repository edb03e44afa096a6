"""How clients reach the server: over standard input and output, or over HTTP.

Over HTTP there is no session: every request is answered by itself, so clients go on when the server was started again.
"""

import contextlib
import json
import os
import threading
from asyncio import AbstractEventLoop, Queue, get_running_loop
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, cast

from anyio import BrokenResourceError, ClosedResourceError
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from muster.app import Muster
from muster.mcp.server import Coordinator

CHUNK = 65_536  # bytes that are read at once
NOT_A_MESSAGE = (
    "this line is not a JSON-RPC message: not JSON, half of a surrogate pair in a text, or nested too deeply"
)

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HttpApp = Callable[[MutableMapping[str, Any], Callable[[], Awaitable[MutableMapping[str, Any]]], Send], Awaitable[None]]


class _InputLines:
    """The lines of standard input, read by a thread that nobody waits for at the end: a read cannot be canceled.

    The thread has a descriptor of its own: a buffered file that it holds could not be closed when the process ends.
    Whoever else reads standard input finds it empty.
    """

    def __init__(self) -> None:
        self._lines: Queue[bytes | None] = Queue()
        self._file, empty = os.dup(0), os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        threading.Thread(target=self._read, args=(get_running_loop(),), daemon=True, name="mcp-stdin").start()

    def _read(self, loop: AbstractEventLoop) -> None:
        begun = b""
        with contextlib.suppress(RuntimeError):  # the loop is closed
            while chunk := os.read(self._file, CHUNK):
                *lines, begun = (begun + chunk).split(b"\n")
                for line in lines:
                    loop.call_soon_threadsafe(self._lines.put_nowait, line)
            loop.call_soon_threadsafe(self._lines.put_nowait, None)

    async def __aiter__(self) -> AsyncIterator[str]:
        while (line := await self._lines.get()) is not None:
            yield line.decode("utf-8", "replace")


class _Answers(Protocol):
    """Where messages to the client are sent."""

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message."""


class _Messages:
    """The lines that are messages; the SDK would drop any other in silence, and its sender would wait for ever."""

    def __init__(self, lines: AsyncIterable[str]) -> None:
        self._lines = lines
        self.answers: _Answers | None = None  # set when there is somewhere to answer

    async def __aiter__(self) -> AsyncIterator[str]:
        async for line in self._lines:
            try:
                jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValidationError:
                await self._refuse(line)
            else:
                yield line

    async def _refuse(self, line: str) -> None:
        """Answer a line that is no message, under its id where one can be read; nothing waits for an empty one."""
        if self.answers is None or not line.strip():
            return
        error = ErrorData(code=PARSE_ERROR, message=NOT_A_MESSAGE)
        with contextlib.suppress(BrokenResourceError, ClosedResourceError):  # the client is gone
            await self.answers.send(SessionMessage(JSONRPCError(jsonrpc="2.0", id=_id_in(line), error=error)))


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
