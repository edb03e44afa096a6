"""In which form of OpenAI's API a model is asked: by its address, its section and the request."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from muster.agents.http.client import HttpClient
from muster.agents.openai.live import ChoosingAgent, OpenAIAgent
from muster.agents.prices import price_from_toml
from muster.app import open_muster
from muster.app.agent_kinds.providers import wires_of
from muster.domain.agent import Profile, Timeouts
from muster.domain.call import Request, ask
from muster.domain.effort import EFFORT, EXTRA
from muster.domain.errors import BadConfiguration
from muster.domain.price import Pricing
from muster.domain.wire import WireChoice, WireName
from muster.settings import load_settings
from muster.settings.file import Misfit, read_agent
from muster.settings.sections import ModelSection
from muster.sim.options import Options
from muster.sim.server import serve
from tests.app.test_directory import directory

GPT = "openai/gpt-5-mini"
KEYS: dict[str, Any] = {"OPENAI_API_KEY": "sk-test"}
OWN = "https://api.openai.com/v1"
SET = {
    "responses": WireChoice(name=WireName.RESPONSES, is_set=True),
    "chat": WireChoice(name=WireName.CHAT, is_set=True),
}
MANY = replace(ask("hi"), max_tokens=500)


def section(**fields: object) -> ModelSection:
    read = read_agent("mine", {"kind": "openai", "model": "gpt-5-mini", **fields})
    assert isinstance(read, ModelSection)
    return read


@pytest.mark.parametrize(
    ("provider", "address", "fields", "choice"),
    [
        ("openai", OWN, None, WireChoice()),
        ("openai", "https://eu.api.openai.com/v1/", {}, WireChoice()),
        ("openai", "http://127.0.0.1:8766/openai/v1", None, SET["chat"]),
        ("openai", "https://api.openai.com.example.org/v1", None, SET["chat"]),
        ("openai", "http://api.openai.com/v1", None, SET["chat"]),
        ("openai", "https://[x", None, SET["chat"]),
        ("openai", OWN, {"wire": "chat"}, SET["chat"]),
        ("openai", OWN, {"max_tokens_field": "max_tokens"}, SET["chat"]),
        ("openai", "https://x.example/v1", {"wire": "responses"}, SET["responses"]),
        ("vllm", "http://127.0.0.1:8000/v1", {"kind": "vllm", "wire": "responses"}, SET["responses"]),
        ("openrouter", "https://openrouter.ai/api/v1", None, SET["chat"]),
        ("anthropic", "https://api.anthropic.com", None, None),
    ],
)
def test_the_address_and_the_section_decide(
    provider: str, address: str, fields: dict[str, Any] | None, choice: WireChoice | None
) -> None:
    assert wires_of(provider, "gpt-5-mini", address, None if fields is None else section(**fields)) == choice


@pytest.mark.parametrize("model", ["gpt-4o-search-preview", "gpt-5-search-api", "gpt-audio-mini"])
def test_models_that_responses_does_not_have_go_through_chat_completions(model: str) -> None:
    assert wires_of("openai", model, OWN, None) == SET["chat"]


@pytest.mark.parametrize(
    ("request_", "form"),
    [
        (ask("hi"), "responses"),
        (replace(MANY, temperature=0.2, top_p=0.5, schema={}, cache="1h", settings={EFFORT: "low"}), "responses"),
        (replace(MANY, stop=("END",)), "chat"),
        (replace(MANY, seed=0), "chat"),
        (replace(MANY, max_tokens=15), "chat"),
        (replace(MANY, settings={EXTRA: {"verbosity": "low"}}), "chat"),
    ],
)
def test_a_request_that_responses_cannot_say_goes_through_chat_completions(request_: Request, form: str) -> None:
    assert WireChoice().of(request_) == form
    assert [choice.of(request_) for choice in SET.values()] == list(SET)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kind": "anthropic", "wire": "chat"}, "OpenAI's API, which anthropic does not speak"),
        ({"kind": "gemini", "wire": "responses"}, "chat completions only; leave wire out"),
        ({"wire": "responses", "seed": 7}, "chat completions only: leave it out"),
        ({"wire": "responses", "max_tokens_field": "max_tokens"}, "chat completions only"),
        ({"wire": "websocket"}, "did you mean|must be|not 'websocket'"),
        ({"extra": {"previous_response_id": "x"}}, "would not stand in the request"),
    ],
)
def test_what_does_not_go_together_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(Misfit, match=said):
        section(**fields)


def test_members_of_a_batch_share_a_form_and_old_batches_are_found_again(tmp_path: Path) -> None:
    found = directory(tmp_path, **KEYS)
    batching = found.batching(GPT)
    assert batching is not None
    responses, chat = batching.of(MANY), batching.of(replace(MANY, seed=1))
    scopes = [one.agent.endpoint.scope for one in (responses, chat)]
    assert scopes == ["/v1/responses gpt-5-mini", "/v1/chat/completions gpt-5-mini"]
    for one in (responses, chat):
        again = directory(tmp_path, **KEYS).reopen(one.agent.endpoint)
        member = again.format.member("r1", one.encode(MANY, True))
        assert again.endpoint.scope.partition(" ")[0].encode() in member
    assert b"max_output_tokens" in responses.encode(MANY, True)
    assert b"max_completion_tokens" in chat.encode(MANY, True)


def test_batches_of_responses_are_refused_where_nobody_knows_them(tmp_path: Path) -> None:
    text = '[agents.mine]\nkind = "groq"\nmodel = "m"\nwire = "responses"\nprice = { input = 1, output = 1 }\n'
    with pytest.raises(BadConfiguration, match="those of Responses at groq"):
        directory(tmp_path, text, GROQ_API_KEY="k").batching("mine")


async def test_what_is_quoted_is_what_is_sent() -> None:
    async with serve() as server:
        profile, http = Profile(name="m", limiter="m", wires=WireChoice()), HttpClient()
        forms = {
            form: OpenAIAgent(
                profile=profile, model="m", key="k", pricing=Pricing(standard=price_from_toml(1, 1)), http=http,
                base_url=server.openai, form=form,
            )
            for form in WireName
        }  # fmt: skip
        agent = ChoosingAgent(WireChoice(), forms)
        for asked, form in ((MANY, WireName.RESPONSES), (replace(MANY, seed=1), WireName.CHAT)):
            assert agent.quote(asked) == forms[form].quote(asked)
            reply = await agent.call(asked, Timeouts())
            assert (reply.id.startswith("resp_"), reply.text) == (form is WireName.RESPONSES, "hi")
            assert reply.cost <= agent.quote(asked).most
        await agent.close()


RESPONSES = '[agents.model]\nkind = "openai"\nmodel = "gpt-5-mini"\nwire = "responses"\n'


async def test_what_responses_lacks_is_refused_or_left_out_where_it_is_set(tmp_path: Path) -> None:
    tmp_path.joinpath("muster.toml").write_text(RESPONSES)
    async with serve(Options(thinking=True)) as server:
        environment = {**KEYS, "OPENAI_BASE_URL": server.openai}
        async with open_muster(settings=load_settings(folder=tmp_path, environment=environment)) as muster:
            reply = await muster.ask("model", "hello", seed=1)
            with pytest.raises(BadConfiguration, match="cannot be asked with stop: Responses"):
                muster.agents.require("model", replace(MANY, stop=("END",)))
    assert reply.text == "hello"
    assert reply.id.startswith("resp_")
    assert server.audit.requests == 1
