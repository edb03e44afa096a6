"""The directory of agents: names, keys, prices, addresses."""

from pathlib import Path

import pytest

from muster.agents.anthropic.live import AnthropicAgent
from muster.agents.openai.live import OpenAIAgent
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import this_process
from muster.app.agent_kinds.directory import AgentDirectory
from muster.domain.call import ask
from muster.domain.errors import BadConfiguration
from muster.settings import load_settings
from muster.sim.files import load_script
from muster.testing.agents import RememberedProcesses


def directory(folder: Path, text: str = "", *, allow_unpriced: bool = False, **environment: str) -> AgentDirectory:
    (folder / "muster.toml").write_text(text)
    settings = load_settings(folder=folder, environment=environment)
    processes = ProcessRegistry(RememberedProcesses(), this_process())
    return AgentDirectory(settings, processes, load_script=load_script, allow_unpriced=allow_unpriced)


def test_the_same_name_gives_the_same_agent(tmp_path: Path) -> None:
    found = directory(tmp_path, ANTHROPIC_API_KEY="sk-test")
    assert found.find("anthropic/claude-haiku-5-5") is found.find("anthropic/claude-haiku-5-5")


@pytest.mark.parametrize("name", ["nobody", "nobody/x", "anthropic/", "anthropic", "", "/", "sim/", "sim/nobody"])
def test_an_unknown_name_is_told_with_those_that_would_do(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadConfiguration) as caught:
        directory(tmp_path, ANTHROPIC_API_KEY="sk-test").find(name)
    assert caught.value.suggestions


@pytest.mark.parametrize(
    ("name", "variable"),
    [("anthropic/claude-haiku-5-5", "ANTHROPIC_API_KEY"), ("openai/gpt-5", "OPENAI_API_KEY")],
)
def test_a_missing_key_is_told_with_its_variable(tmp_path: Path, name: str, variable: str) -> None:
    agent = directory(tmp_path).find(name)
    with pytest.raises(BadConfiguration, match=f"{variable} is not set"):
        agent.quote(ask("hi"))


def test_a_key_with_a_line_break_is_refused_without_showing_it(tmp_path: Path) -> None:
    agent = directory(tmp_path, ANTHROPIC_API_KEY="sk-test\nx").find("anthropic/claude-haiku-5-5")
    with pytest.raises(BadConfiguration) as caught:
        agent.quote(ask("hi"))
    assert "sk-test" not in str(caught.value)


def test_a_model_without_a_price_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    agent = directory(tmp_path, OPENAI_API_KEY="sk-test").find("openai/gpt-nonsense-99")
    with pytest.raises(BadConfiguration, match="no price is known"):
        agent.quote(ask("hi"))


def test_a_model_without_a_price_may_be_asked_when_the_user_says_so(tmp_path: Path) -> None:
    agent = directory(tmp_path, allow_unpriced=True, OPENAI_API_KEY="sk-test").find("openai/gpt-nonsense-99")
    assert agent.quote(ask("hi")).most == 0


LOCAL = """
[agents.local]
kind = "openai"
base_url = "http://127.0.0.1:1/v1"
model = "qwen3"
price = { input = 1, output = 2 }
system = "You are terse."
max_tokens = 10
concurrency = 3
"""


def test_a_declared_agent_has_its_own_price_defaults_and_pace_and_needs_no_key(tmp_path: Path) -> None:
    agent = directory(tmp_path, LOCAL).find("local")
    assert isinstance(agent, OpenAIAgent)
    profile = agent.profile
    assert (profile.system, profile.max_tokens, profile.pace.concurrency) == ("You are terse.", 10, 3)
    assert agent.quote(profile.complete(ask("hi"))).most >= 20


def test_a_server_of_ones_own_has_no_price_of_somebody_elses_model(tmp_path: Path) -> None:
    text = '[agents.mine]\nkind = "openai"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "gpt-5"\n'
    with pytest.raises(BadConfiguration, match="no price is known"):
        directory(tmp_path, text).find("mine").quote(ask("hi"))


def test_a_declared_agent_without_a_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match="has no model"):
        directory(tmp_path, '[agents.a]\nkind = "openai"\n').find("a")


def test_known_models_have_prices(tmp_path: Path) -> None:
    found = directory(tmp_path, ANTHROPIC_API_KEY="sk-test", OPENAI_API_KEY="sk-test", OPENROUTER_API_KEY="sk-test")
    for name in ("anthropic/claude-sonnet-5-5", "openai/gpt-5-mini"):
        assert found.find(name).quote(ask("hi")).most > 0
    assert isinstance(found.find("anthropic/claude-sonnet-5-5"), AnthropicAgent)


def test_ollama_costs_nothing_and_needs_no_key(tmp_path: Path) -> None:
    assert directory(tmp_path).find("ollama/qwen3").quote(ask("hi")).most == 0


def test_a_script_of_ones_own_is_read_from_beside_the_settings(tmp_path: Path) -> None:
    (tmp_path / "answers.yaml").write_text("rules:\n  - text: ping\n    answer: {text: pong}\n")
    text = '[agents.a]\nkind = "scripted"\nscript = "answers.yaml"\n'
    assert directory(tmp_path, text).find("a").profile.name == "a"
