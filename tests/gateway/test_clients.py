"""The official SDKs in strict mode through the gateway, as they are: only the address is another."""

from collections.abc import Iterator
from typing import Any

import anthropic
import openai
import pytest
from anthropic import Anthropic
from openai import OpenAI

from muster.testing.sim import RehearsalProcess
from tests.api.server import Project, Server

from .conftest import PricedRehearsal, project_with

CLAUDE, GPT = "claude-haiku-5-5", "gpt-5-mini"
TOOL: Any = {"name": "look", "description": "", "input_schema": {"type": "object", "properties": {}}}


@pytest.fixture(scope="module")
def thinking() -> Iterator[PricedRehearsal]:
    with PricedRehearsal(thinking=True) as process:
        yield process


@pytest.fixture(scope="module")
def served(thinking: PricedRehearsal, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Server]]:
    project = project_with(tmp_path_factory.mktemp("clients"), thinking)
    with project.serve() as server:
        yield project, server


@pytest.fixture
def claude(served: tuple[Project, Server]) -> Iterator[Anthropic]:
    with Anthropic(
        api_key="k", base_url=f"{served[1].url}/run/sdk/anthropic", max_retries=0, _strict_response_validation=True
    ) as client:
        yield client


@pytest.fixture
def gpt(served: tuple[Project, Server]) -> Iterator[OpenAI]:
    with OpenAI(
        api_key="k", base_url=f"{served[1].url}/run/sdk/openai/v1", max_retries=0, _strict_response_validation=True
    ) as client:
        yield client


def test_messages_whole_and_streamed_with_thinking_and_tools(claude: Anthropic) -> None:
    asked: Any = {"model": CLAUDE, "max_tokens": 8000, "messages": [{"role": "user", "content": "hello"}]}
    reply = claude.messages.create(**asked)
    assert [block.type for block in reply.content] == ["thinking", "text"]
    assert reply.content[-1].text == "hello"
    assert reply._request_id
    with claude.messages.stream(**asked, tools=[TOOL]) as stream:
        whole = stream.get_final_message()
    assert [block.type for block in whole.content] == ["thinking", "text"]
    raw = claude.beta.messages.create(**asked, stream=True)
    kinds = [event.type for event in raw]
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    # What it was told comes back in the next turn, with its signature, which the upstream checks.
    turns = [*asked["messages"], {"role": "assistant", "content": reply.content}, {"role": "user", "content": "again"}]
    assert claude.messages.create(**{**asked, "messages": turns}).content[-1].text == "again"


def test_counts_and_models_are_passed_on_and_cost_nothing(claude: Anthropic, gpt: OpenAI) -> None:
    counted = claude.messages.count_tokens(model=CLAUDE, messages=[{"role": "user", "content": "hello"}])
    assert counted.input_tokens > 0
    assert any(model.id == CLAUDE for model in claude.models.list(limit=100))
    assert any(model.id == GPT for model in gpt.models.list())


def test_completions_whole_and_streamed(gpt: OpenAI) -> None:
    asked: Any = {"model": GPT, "messages": [{"role": "user", "content": "hello"}]}
    assert gpt.chat.completions.create(**asked).choices[0].message.content == "hello"
    chunks = list(gpt.chat.completions.create(**asked, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "hello"
    assert all(chunk.choices for chunk in chunks)  # the one with the usage, which the gateway asked for, is its own
    told = list(gpt.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}))
    assert told[-1].usage is not None
    assert not told[-1].choices


def test_responses_whole_and_streamed_and_embeddings(gpt: OpenAI) -> None:
    reply = gpt.responses.create(model=GPT, input="hello", store=False)
    assert reply.output_text == "hello"
    with gpt.responses.stream(model=GPT, input="hello", store=False) as stream:
        assert stream.get_final_response().output_text == "hello"
    found = gpt.embeddings.create(model="text-embedding-3-small", input=["hello", "there"], encoding_format="float")
    assert len(found.data) == 2


def test_refusals_of_the_upstream_come_back_as_they_are(claude: Anthropic, gpt: OpenAI) -> None:
    with pytest.raises(anthropic.BadRequestError) as refused:
        claude.messages.create(model=CLAUDE, max_tokens=100, messages=[])
    assert "Muster" not in str(refused.value)
    assert refused.value.request_id
    with pytest.raises(openai.BadRequestError) as wrong:
        gpt.chat.completions.create(model=GPT, messages=[])
    assert "Muster" not in str(wrong.value)


def test_a_limit_of_the_upstream_is_the_clients_to_wait_for(
    thinking: RehearsalProcess, claude: Anthropic, served: tuple[Project, Server]
) -> None:
    thinking.faults({"script": [{"fault": "429", "retry_after": 3}]})
    try:
        with pytest.raises(anthropic.RateLimitError) as limited:
            claude.messages.create(model=CLAUDE, max_tokens=4000, messages=[{"role": "user", "content": "hello"}])
    finally:
        thinking.faults({})
    assert limited.value.response.headers["retry-after"] == "3"
    after = claude.messages.create(model=CLAUDE, max_tokens=4000, messages=[{"role": "user", "content": "hello"}])
    assert after.stop_reason == "end_turn"


def test_books_are_those_of_the_upstream_and_say_who_asked(
    thinking: RehearsalProcess, claude: Anthropic, served: tuple[Project, Server]
) -> None:
    claude.messages.create(model=CLAUDE, max_tokens=4000, messages=[{"role": "user", "content": "hello"}])
    _, server = served
    run = server.get("/api/runs/sdk").json
    audit = thinking.audit()
    spent = run["cost_usd"]
    assert round(spent * 1e6) == audit.cost
    assert run["uncertain_usd"] == 0
