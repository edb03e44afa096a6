"""Counting tokens and embeddings, with the official SDKs in strict mode as clients."""

import math
from typing import Any

import anthropic
import openai
import pytest

from muster.sim.options import Options
from muster.sim.server import Server, serve
from tests.sdk import anthropic_client, openai_client

MODEL = "claude-haiku-5-5"
EMBEDDER = "text-embedding-3-small"
ODD: tuple[dict[str, Any], ...] = (
    {"input": []},
    {"input": ""},
    {"input": "x", "dimensions": 9_999},
    {"input": "x" * 40_000},
)


def claude(server: Server) -> anthropic.AsyncAnthropic:
    return anthropic_client(server.anthropic, key="sk-test")


def gpt(server: Server, *, strict: bool = True) -> openai.AsyncOpenAI:
    return openai_client(server.openai, key="sk-test", strict=strict)


async def test_what_is_counted_is_what_an_answer_uses_and_costs_nothing() -> None:
    asked = {"model": MODEL, "system": "Be brief.", "messages": [{"role": "user", "content": "how many are these?"}]}
    async with serve() as server, claude(server) as client:
        counted = await client.messages.count_tokens(**asked)  # type: ignore[arg-type]
        assert (server.audit.cost, server.audit.calls) == (0, 0)
        said = await client.messages.create(**asked, max_tokens=9)  # type: ignore[call-overload]
        assert counted.input_tokens == said.usage.input_tokens
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.count_tokens(model=MODEL, messages=[])


@pytest.mark.parametrize("form", ["float", "base64", None])  # None: as the SDK asks by itself
async def test_embeddings_depend_on_the_text_and_are_paid(form: str | None) -> None:
    options = {} if form is None else {"encoding_format": form}
    # The types of the SDK know numbers only; packed ones it reads where it is not strict.
    async with serve() as server, gpt(server, strict=form == "float") as client:
        found = await client.embeddings.create(model=EMBEDDER, input=["one", "other", "one"], **options)  # type: ignore[arg-type]
        assert found.usage.prompt_tokens == found.usage.total_tokens == server.audit.tokens.input
        assert server.audit.cost > 0
    if form == "base64":
        assert all(isinstance(one.embedding, str) for one in found.data)
        return
    one, other, again = (item.embedding for item in found.data)
    assert one == again != other
    assert len(one) == 1_536
    assert math.hypot(*one) == pytest.approx(1, abs=1e-4)


async def test_a_vector_may_be_shorter_and_odd_requests_are_refused() -> None:
    async with serve() as server, gpt(server) as client:
        asked = client.embeddings.create(model=EMBEDDER, input="x", dimensions=8, encoding_format="float")
        [short] = (await asked).data
        assert len(short.embedding) == 8
        for odd in ODD:
            with pytest.raises(openai.BadRequestError):
                await client.embeddings.create(model=EMBEDDER, **odd)
    async with serve(Options(key="another")) as server, gpt(server) as client:
        with pytest.raises(openai.AuthenticationError):
            await client.embeddings.create(model=EMBEDDER, input="x")
