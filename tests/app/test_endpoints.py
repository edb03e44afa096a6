"""The directory's other half: how agents are asked in batches, and how a batch is found again."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from muster.agents.anthropic.batch import AnthropicBatches
from muster.agents.base import Batching
from muster.agents.openai.batch import OpenAIBatches
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.app.agent_kinds.directory import AgentDirectory
from muster.domain.batch import BatchEndpoint
from muster.domain.call import ask
from muster.domain.errors import BadConfiguration
from muster.settings import load_settings
from muster.sim.files import load_script
from muster.testing.agents import RememberedProcesses

CLAUDE = "anthropic/claude-haiku-5-5"
SONNET = "anthropic/claude-sonnet-5-5"
GPT = "openai/gpt-5-mini"
KEYS = {"ANTHROPIC_API_KEY": "sk-test-1", "OPENAI_API_KEY": "sk-test-2", "OPENROUTER_API_KEY": "sk-test-3"}


def directory(
    folder: Path,
    environment: Mapping[str, str] = KEYS,
    *,
    text: str = "",
    allow_unpriced: bool = False,
    hide: Callable[[str], None] = lambda _: None,
    processes: ProcessRegistry | None = None,
) -> AgentDirectory:
    (folder / "muster.toml").write_text(text)
    settings = load_settings(folder=folder, environment=environment)
    processes = processes or ProcessRegistry(RememberedProcesses(), this_process())
    return AgentDirectory(settings, processes, load_script=load_script, allow_unpriced=allow_unpriced, hide=hide)


def batching(found: AgentDirectory, name: str) -> Batching:
    given = found.batching(name)
    assert given is not None
    return given


@pytest.mark.parametrize("name", ["sim/echo", "mine"])
def test_what_answers_on_this_machine_has_no_batches(tmp_path: Path, name: str) -> None:
    assert directory(tmp_path, text='[agents.mine]\nkind = "scripted"\n').batching(name) is None


def test_the_same_name_gives_the_same_batching(tmp_path: Path) -> None:
    found = directory(tmp_path)
    assert found.batching(CLAUDE) is found.batching(CLAUDE)


def test_models_of_one_account_share_message_batches_but_not_batches_of_openai(tmp_path: Path) -> None:
    found = directory(tmp_path)
    one, other = batching(found, CLAUDE), batching(found, SONNET)
    assert one.agent is other.agent
    assert isinstance(one.agent, AnthropicBatches)
    small, large = batching(found, GPT), batching(found, "openai/gpt-5")
    assert isinstance(small.agent, OpenAIBatches)
    assert small.agent.endpoint.scope == "/v1/responses gpt-5-mini"
    assert small.agent.endpoint == replace(large.agent.endpoint, scope=small.agent.endpoint.scope)


@pytest.mark.parametrize("name", ["nobody", "nobody/x", "sim/nobody", "anthropic/"])
def test_an_unknown_name_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadConfiguration, match=r"unknown .*agent"):
        directory(tmp_path).batching(name)


def test_a_missing_key_is_told_at_once(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="ANTHROPIC_API_KEY is not set"):
        directory(tmp_path, {}).batching(CLAUDE)


def test_known_models_have_prices_for_batches_and_live_calls(tmp_path: Path) -> None:
    tariff = batching(directory(tmp_path), CLAUDE).tariff
    assert tariff.model == "claude-haiku-5-5"
    assert tariff.batch is not None
    assert tariff.live is not None
    assert 0 < tariff.batch.base.output < tariff.live.base.output


def test_a_model_without_a_batch_price_is_refused_though_its_live_price_is_known(tmp_path: Path) -> None:
    name = "openrouter/anthropic/claude-haiku-5.5"
    with pytest.raises(BadConfiguration, match="no batch price is known"):
        batching(directory(tmp_path), name).quote(ask("hi"), 100)
    assert batching(directory(tmp_path, allow_unpriced=True), name).quote(ask("hi"), 100).most == 0


OWN = """
[agents.mine]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "qwen3"
price = { input = 2, output = 4 }
"""


@pytest.mark.parametrize(("text", "rate"), [(OWN, 4), (OWN + "batch_price = { input = 1, output = 2 }\n", 2)])
def test_a_price_of_ones_own_holds_for_batches_unless_they_have_their_own(tmp_path: Path, text: str, rate: int) -> None:
    tariff = batching(directory(tmp_path, text=text), "mine").tariff
    assert tariff.batch is not None
    assert tariff.live is not None
    assert [tariff.batch.base.output, tariff.live.base.output] == [Decimal(rate), Decimal(4)]


def test_a_batch_price_may_stand_alone(tmp_path: Path) -> None:
    text = OWN.replace("price =", "batch_price =")
    tariff = batching(directory(tmp_path, text=text), "mine").tariff
    assert (tariff.batch is None, tariff.live is None) == (False, True)


def test_ollama_costs_nothing(tmp_path: Path) -> None:
    assert batching(directory(tmp_path), "ollama/qwen3").quote(ask("hi"), 100).most == 0


def test_a_batch_price_that_is_none_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match=r"batch_price\.output"):
        directory(tmp_path, text='[agents.a]\nkind = "openai"\nbatch_price = { input = 1, output = -1 }\n')


def test_members_are_spelled_for_their_model(tmp_path: Path) -> None:
    found = directory(tmp_path, text=OWN)
    request = ask("hi", system="Be brief.")
    claude = json.loads(batching(found, CLAUDE).encode(request, True))
    assert (claude["model"], claude["system"][0]["cache_control"]["ttl"]) == ("claude-haiku-5-5", "1h")
    assert json.loads(batching(found, CLAUDE).encode(request, False))["system"] == "Be brief."
    gpt, own = batching(found, GPT), batching(found, "mine")
    assert gpt.encode(request, True) == gpt.encode(request, False)
    assert json.loads(gpt.encode(request, True))["max_output_tokens"] == 2048
    assert json.loads(own.encode(request, True))["max_tokens"] == 2048


# Coming back.


@pytest.mark.parametrize("name", [CLAUDE, GPT, "ollama/qwen3", "mine"])
def test_a_desk_is_enough_to_come_back(tmp_path: Path, name: str) -> None:
    endpoint = batching(directory(tmp_path, text=OWN), name).agent.endpoint
    later = directory(tmp_path)  # the agent may no longer be declared
    agent = later.reopen(endpoint)
    assert agent.endpoint == endpoint
    assert later.reopen(endpoint) is agent


def test_who_comes_back_meets_the_agent_that_is_there(tmp_path: Path) -> None:
    found = directory(tmp_path)
    agent = batching(found, CLAUDE).agent
    assert found.reopen(agent.endpoint) is agent
    assert batching(found, SONNET).agent is agent


def test_where_a_batch_was_handed_in_does_not_change_with_the_settings(tmp_path: Path) -> None:
    endpoint = batching(
        directory(tmp_path, {**KEYS, "ANTHROPIC_BASE_URL": "http://127.0.0.1:7/a/"}), CLAUDE
    ).agent.endpoint
    assert endpoint.base_url == "http://127.0.0.1:7/a"
    assert directory(tmp_path).reopen(endpoint).endpoint == endpoint


def endpoint_of(folder: Path) -> BatchEndpoint:
    text = '[agents.a]\nkind = "anthropic"\nmodel = "claude-haiku-5-5"\nkey_env = "MY_KEY"\n'
    return batching(directory(folder, {"MY_KEY": "sk-of-then"}, text=text), "a").agent.endpoint


def test_the_variable_of_a_key_that_is_missing_is_named(tmp_path: Path) -> None:
    endpoint = endpoint_of(tmp_path)
    assert endpoint.variable == "MY_KEY"
    with pytest.raises(BadConfiguration, match="MY_KEY, which is not set") as caught:
        directory(tmp_path).reopen(endpoint)
    assert "MY_KEY" in caught.value.suggestions[0]


def test_another_key_is_another_account_and_neither_is_shown(tmp_path: Path) -> None:
    endpoint = endpoint_of(tmp_path)
    with pytest.raises(BadConfiguration, match="a different key or account than the one in MY_KEY") as caught:
        directory(tmp_path, {"MY_KEY": "sk-of-now"}).reopen(endpoint)
    assert "sk-of" not in str(caught.value.record())
    assert "sk-of" not in repr(endpoint)


def test_a_desk_of_another_version_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="'gemini', which this version does not support"):
        directory(tmp_path, {"MY_KEY": "sk-of-then"}).reopen(replace(endpoint_of(tmp_path), kind="gemini"))
