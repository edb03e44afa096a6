"""Muster against a real llama.cpp: what a local server makes of our requests, and what we make of its answers."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from muster.app import Muster, open_muster
from muster.app.questions.ask import Question
from muster.domain.call import Quality, Reply, Stop
from muster.domain.run import RunState
from muster.settings import load_settings
from tests.llama.model import CONTEXT

TINY = "llamacpp/tiny"
PROMPT = "Say hi"
ASKED = len(f"<user: {PROMPT}\nassistant: ")  # tokens: one before the conversation, and one for each byte
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["answer"],
    "additionalProperties": False,
}


@asynccontextmanager
async def opened(folder: Path, address: str) -> AsyncIterator[Muster]:
    settings = load_settings(folder=folder, environment={"LLAMACPP_BASE_URL": f"{address}/v1"})
    async with open_muster(settings=settings) as muster:
        yield muster


def slot(address: str) -> Any:
    """Return what the only place of the server is at."""
    with urlopen(f"{address}/slots") as answer:
        [found] = json.load(answer)
    return found


def tokens_written(address: str) -> float:
    """Return how many tokens the server has written since it began."""
    with urlopen(f"{address}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("llamacpp:tokens_predicted_total"))


async def test_an_answer_has_the_limit_that_was_asked_for_and_the_usage_of_the_server(
    tmp_path: Path, llama: str
) -> None:
    async with opened(tmp_path, llama) as m:
        reply = await m.ask(TINY, PROMPT, max_tokens=12)
        assert (reply.usage.all_input, reply.usage.output, reply.cost) == (ASKED, 12, 0)
        assert (reply.stop, reply.quality) == (Stop.MAX_TOKENS, Quality.CUT)
        assert reply.text


async def test_a_streamed_answer_is_the_sum_of_its_pieces(tmp_path: Path, llama: str) -> None:
    async with opened(tmp_path, llama) as m:
        *pieces, reply = [piece async for piece in m.stream(TINY, PROMPT, max_tokens=12)]
        assert isinstance(reply, Reply)
        assert "".join(map(str, pieces)) == reply.text
        assert len(pieces) > 1
        assert (reply.usage.all_input, reply.usage.output, reply.stop) == (ASKED, 12, Stop.MAX_TOKENS)


async def test_an_answer_fits_the_schema_whatever_the_model_is(tmp_path: Path, llama: str) -> None:
    async with opened(tmp_path, llama) as m:
        reply = await m.ask(TINY, PROMPT, schema=SCHEMA, max_tokens=200)
        assert reply.data in ({"answer": "yes"}, {"answer": "no"})
        assert (reply.stop, reply.quality) == (Stop.END, Quality.GOOD)


async def test_a_canceled_call_leaves_its_place_to_the_next(tmp_path: Path, llama: str) -> None:
    async with opened(tmp_path, llama) as m:
        begun = asyncio.Event()
        endless = Question(agent=TINY, prompt="Never stop", max_tokens=CONTEXT, stream=True)
        handle = await m.start_question(endless, m.runs.options(), on_delta=lambda key, text: begun.set())
        await begun.wait()
        assert slot(llama)["is_processing"]
        await handle.cancel()
        assert (await m.runs.find(handle.id)).state is RunState.CANCELED
        assert (await m.ask(TINY, PROMPT, max_tokens=3)).usage.output == 3
        assert tokens_written(llama) < CONTEXT // 2  # else the place was free because the answer came to its end


async def test_the_models_of_the_server_are_listed(tmp_path: Path, llama: str) -> None:
    async with opened(tmp_path, llama) as m:
        assert [one.id for one in await m.agents.models("llamacpp")] == ["tiny"]
