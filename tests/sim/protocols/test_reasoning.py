"""Reasoning in chat completions, seen by the official SDK with strict validation."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from openai import AsyncOpenAI, BadRequestError
from openai.types.chat import ChatCompletion

from muster.domain.script import Line, Script
from muster.sim.options import Options
from muster.sim.server import Server, serve
from tests.sdk import openai_client


@asynccontextmanager
async def client(script: Script | None = None, **options: Any) -> AsyncIterator[tuple[AsyncOpenAI, Server]]:
    async with (
        serve(Options(script=script or Script(), **{"thinking": True, **options})) as server,
        openai_client(server.openai) as openai,
    ):
        yield openai, server


async def say(openai: AsyncOpenAI, **fields: Any) -> ChatCompletion:
    asked = [{"role": "user", "content": "hello"}]
    reply = await openai.chat.completions.create(**{"model": "gpt-5-mini", "messages": asked, **fields})
    assert isinstance(reply, ChatCompletion)
    return reply


def reasoning_of(reply: ChatCompletion) -> int:
    assert reply.usage is not None
    assert reply.usage.completion_tokens_details is not None
    return reply.usage.completion_tokens_details.reasoning_tokens or 0


async def test_a_model_that_reasons_counts_it_and_does_not_show_it() -> None:
    async with client() as (openai, server):
        reply = await say(openai)
        chunks = [
            chunk
            async for chunk in await openai.chat.completions.create(
                model="gpt-5-mini",
                messages=[{"role": "user", "content": "hello"}],
                stream=True,
                stream_options={"include_usage": True},
            )
        ]
    assert reply.choices[0].message.content == "hello"
    assert reply.usage is not None
    assert 300 <= reasoning_of(reply) <= 3_000
    assert reply.usage.completion_tokens == reasoning_of(reply) + 2
    assert chunks[-1].usage == reply.usage
    assert server.audit.thinking.tokens == 2 * reasoning_of(reply)


async def test_effort_none_and_models_that_do_not_reason_answer_at_once() -> None:
    async with client() as (openai, _):
        assert reasoning_of(await say(openai, model="gpt-6-sol", reasoning_effort="none", temperature=0.3)) == 0
        assert reasoning_of(await say(openai, model="gpt-4o", temperature=0.3)) == 0
        assert reasoning_of(await say(openai, model="gpt-5.1")) == 0
        assert reasoning_of(await say(openai, model="gpt-5.1", reasoning_effort="low")) > 0


async def test_an_answer_is_cut_when_reasoning_has_used_up_its_tokens() -> None:
    async with client(Script(otherwise=Line(text="long" * 100, thinking=700))) as (openai, _):
        reply = await say(openai, max_completion_tokens=600)
    assert (reply.choices[0].finish_reason, reply.choices[0].message.content) == ("length", "")
    assert reply.usage is not None
    assert (reply.usage.completion_tokens, reasoning_of(reply)) == (600, 600)


REFUSED: list[tuple[str, Mapping[str, Any], str]] = [
    ("gpt-4o", {"reasoning_effort": "low"}, "'reasoning_effort' is not supported with this model"),
    ("gpt-5-mini", {"reasoning_effort": "max"}, "Supported values are: 'minimal', 'low', 'medium', 'high'"),
    ("o3", {"reasoning_effort": "none"}, "Supported values are: 'low', 'medium', 'high'"),
    ("gpt-5-mini", {"temperature": 0.3}, "Only the default (1) value is supported"),
    ("gpt-5-mini", {"max_completion_tokens": 128_001}, "at most 128000"),
    ("gpt-5-mini", {"extra_body": {"service_tier": "slow"}}, "Invalid service_tier"),
]


@pytest.mark.parametrize(("model", "fields", "why"), REFUSED)
async def test_what_a_model_does_not_take_is_refused(model: str, fields: Mapping[str, Any], why: str) -> None:
    async with client() as (openai, server):
        with pytest.raises(BadRequestError) as refused:
            await say(openai, model=model, **fields)
    assert why in refused.value.message
    assert refused.value.param is not None
    assert server.audit.calls == 0


async def test_members_of_batches_reason() -> None:
    line = (
        b'{"custom_id":"a","method":"POST","url":"/v1/chat/completions",'
        b'"body":{"model":"gpt-5-mini","messages":[{"role":"user","content":"hello"}]}}\n'
    )
    async with client() as (openai, server):
        file = await openai.files.create(file=("in.jsonl", line), purpose="batch")
        batch = await openai.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
        )
        found = await openai.batches.retrieve(batch.id)
        output = (await openai.files.content(found.output_file_id or "")).content
    assert b'"reasoning_tokens":0' not in output
    assert server.audit.thinking.tokens >= 300
