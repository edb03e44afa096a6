"""Batches as the tests send them, raw and through the official SDKs with strict validation."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from anthropic import AsyncAnthropic
from anthropic.types.messages.batch_create_params import Request
from openai import AsyncOpenAI
from openai.types import Batch

from muster.sim.options import Options
from muster.sim.server import Server, serve
from muster.testing.clock import FakeClock
from tests.sdk import anthropic_client, openai_client

from .wire import Answer, dial, message, spell

ANTHROPIC_BATCHES = "/anthropic/v1/messages/batches"
OPENAI_BATCHES = "/openai/v1/batches"
OPENAI_FILES = "/openai/v1/files"


@asynccontextmanager
async def anthropic_of(server: Server, key: str = "k") -> AsyncIterator[AsyncAnthropic]:
    async with anthropic_client(server.anthropic, key=key) as client:
        yield client


@asynccontextmanager
async def openai_of(server: Server, key: str = "k") -> AsyncIterator[AsyncOpenAI]:
    async with openai_client(server.openai, key=key) as client:
        yield client


@asynccontextmanager
async def anthropic_at(
    options: Options | None = None, clock: FakeClock | None = None
) -> AsyncIterator[tuple[AsyncAnthropic, Server]]:
    async with serve(options, (clock or FakeClock()).now) as server, anthropic_of(server) as client:
        yield client, server


@asynccontextmanager
async def openai_at(
    options: Options | None = None, clock: FakeClock | None = None
) -> AsyncIterator[tuple[AsyncOpenAI, Server]]:
    async with serve(options, (clock or FakeClock()).now) as server, openai_of(server) as client:
        yield client, server


def request(name: str, text: str | None = None) -> Request:
    return {
        "custom_id": name,
        "params": {
            "model": "claude-haiku-5-5",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": text or name}],
        },
    }


def requests(count: int) -> list[Request]:
    return [request(f"r{number}") for number in range(count)]


def members(count: int) -> dict[str, Any]:
    """The body of a raw create at Anthropic."""
    return {"requests": requests(count)}


def line(name: str, text: str | None = None, **more: Any) -> dict[str, Any]:
    return {"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": message(text or name)} | more


def lines(count: int) -> list[dict[str, Any]]:
    return [line(f"r{number}") for number in range(count)]


def jsonl(values: Iterable[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


async def submit(openai: AsyncOpenAI, values: Iterable[Any], **metadata: str) -> Batch:
    file = await openai.files.create(file=("input.jsonl", jsonl(values)), purpose="batch")
    return await openai.batches.create(
        input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata=metadata or None
    )


async def content(openai: AsyncOpenAI, name: str | None) -> list[Any]:
    assert name is not None
    return [json.loads(found) for found in (await openai.files.content(name)).text.splitlines()]


async def call(server: Server, method: str, path: str, body: Any = b"", **headers: str) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    async with dial(server) as connection:
        connection.writer.write(spell(data, path, method, **headers))
        return await connection.answer()


def form(data: bytes, boundary: str = "xyz", purpose: str = "batch") -> bytes:
    """A raw form with a file."""
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\n{purpose}\r\n'
    file = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="in.jsonl"\r\n\r\n'
    return (head + file).encode() + data + f"\r\n--{boundary}--\r\n".encode()
