"""A small raw HTTP client, so that the tests see exactly what is on the wire."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from muster.sim.faults import Faults
from muster.sim.files import read_faults
from muster.sim.server import Server

ANTHROPIC = "/anthropic/v1/messages"
OPENAI = "/openai/v1/chat/completions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, body: Any, path: str = ANTHROPIC, **headers: str) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.writer.write(spell(data, path, **headers))

    async def head(self) -> tuple[int, dict[str, str]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines[1:] if line)
        return int(lines[0].split(" ")[1]), headers

    async def answer(self) -> Answer:
        status, headers = await self.head()
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        else:
            body = b"".join([chunk async for chunk in self.chunks()])
        return Answer(status=status, headers=headers, body=body)

    async def chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            yield await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)

    async def ask(self, body: Any, path: str = ANTHROPIC, **headers: str) -> Answer:
        self.send(body, path, **headers)
        return await self.answer()


def spell(data: bytes, path: str = ANTHROPIC, method: str = "POST", **headers: str) -> bytes:
    fields = {"host": "sim", "x_api_key": "k", "content_length": str(len(data))} | headers
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in fields.items() if value]
    return "\r\n".join([f"{method} {path} HTTP/1.1", *lines, "", ""]).encode() + data


@asynccontextmanager
async def dial(server: Server) -> AsyncIterator[Line]:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(server.anthropic).port)
    try:
        yield Line(reader, writer)
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def ask(server: Server, body: Any, path: str = ANTHROPIC, **headers: str) -> Answer:
    async with dial(server) as line:
        return await line.ask(body, path, **headers)


def message(text: str = "hello", **more: Any) -> dict[str, Any]:
    return {
        "model": "claude-haiku-5-5",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": text}],
        **more,
    }


def one_fault(kind: str, **more: Any) -> Faults:
    return read_faults({"script": [{"fault": kind, "times": "always", **more}]})
