"""Claude Code as it is declared in muster.toml; needs no SDK, since nobody is asked."""

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from muster.agents.base import Agent
from muster.agents.claude_code.agent import ClaudeCodeAgent
from muster.agents.claude_code.setup import Setup
from muster.agents.processes.registry import ProcessRegistry
from muster.agents.processes.system import TOKEN_VARIABLE, this_process
from muster.app.agent_kinds.base import profile_of
from muster.app.agent_kinds.claude import home_of, make_claude
from muster.domain.agent import Timeouts
from muster.domain.call import Tool, ask
from muster.domain.errors import BadConfiguration, InvalidRequest
from muster.settings.sections import ClaudeSection
from tests.agents.claude_code.test_sdk import Nowhere

KEYED = {"ANTHROPIC_API_KEY": "sk-secret-0123", "PATH": "/bin"}


def made(variables: Mapping[str, str] = KEYED, **section: Any) -> Agent:
    declared = ClaudeSection(kind="claude-code", **section)
    return make_claude(
        "coder",
        declared,
        profile=profile_of("coder", declared),
        processes=ProcessRegistry(Nowhere(), this_process()),
        variables=variables,
        folder=Path("/project"),
        home=Path("/project/.muster"),
    )


def refused(variables: Mapping[str, str] = KEYED, **section: Any) -> BadConfiguration:
    agent = made(variables, **section)
    with pytest.raises(BadConfiguration) as caught:
        agent.quote(ask("Hello"))
    return caught.value


def test_a_missing_key_is_named_when_it_is_needed() -> None:
    error = refused({}, key_env="MY_KEY")
    assert error.message == "agent 'coder' needs an API key, and MY_KEY is not set"
    assert "subscription = true" in error.suggestions[1]


def test_a_variable_that_is_passed_on_must_be_set_when_it_is_asked() -> None:
    assert refused(pass_env=("NOT_SET",)).message == "agent 'coder' needs NOT_SET, which is not set"


def test_it_carries_the_token_of_the_house_around_ours() -> None:
    assert _setup(made(KEYED | {TOKEN_VARIABLE: "outer"})).environment[TOKEN_VARIABLE] == "outer"


def test_a_key_that_can_be_none_is_not_shown() -> None:
    error = refused({"ANTHROPIC_API_KEY": "sk-secret\n"})
    assert "sk-secret" not in error.message


def test_an_agent_that_may_spend_nothing_is_not_asked() -> None:
    assert "budget_usd is 0" in refused(budget_usd=0).message


def test_a_subscription_needs_no_key_and_may_reserve_nothing() -> None:
    assert isinstance(made({}, subscription=True, budget_usd=0), ClaudeCodeAgent)


def test_an_agent_always_lives_in_the_same_place_below_its_home() -> None:
    home = Path("/project/.muster")
    assert home_of(home, "coder") == home / "claude" / "agent-coder"
    for name in ("..", "a/../../b", "/etc", "ä b"):
        assert home_of(home, name).parent == home / "claude"
        assert home_of(home, name).name not in (".", "..")
    assert home_of(Path("here"), "coder").is_absolute()


def test_every_field_of_its_section_is_taken() -> None:
    section: dict[str, Any] = {
        "model": "m",
        "fallback_model": "f",
        "permission_mode": "acceptEdits",
        "allowed_tools": ("Read",),
        "disallowed_tools": ("Bash",),
        "effort": "low",
        "max_turns": 3,
    }
    setup = _setup(made(working_dir=Path("part"), cli_path=Path("bin/claude"), key_env="ANTHROPIC_API_KEY", **section))
    assert {name: getattr(setup, name) for name in section} == section
    assert (setup.folder, setup.cli_path) == (Path("/project/part"), Path("/project/bin/claude"))


@pytest.mark.parametrize("subscription", [True, False])
def test_its_servers_are_written_down_below_the_home_of_muster(subscription: bool) -> None:
    declared = {"files": {"command": "serve"}}
    servers = _setup(made(subscription=subscription, mcp_servers=declared)).mcp_servers
    assert servers is not None
    assert servers.declared == declared
    assert servers.file == Path("/project/.muster/claude/agent-coder/private/mcp.json")


@pytest.mark.parametrize("value", [date(2026, 1, 1), float("nan")])
def test_a_server_is_told_nothing_that_json_has_no_word_for(value: object) -> None:
    error = refused(mcp_servers={"files": {"command": "serve", "env": {"TOKEN": "sk-secret", "SINCE": value}}})
    assert "mcp_servers has a value that is not JSON" in error.message
    assert "sk-secret" not in error.message


def test_its_environment_holds_what_was_named_and_nothing_else_of_ours() -> None:
    variables = KEYED | {"OTHER": "secret", "NAMED": "given", "ANTHROPIC_BASE_URL": "http://127.0.0.1:1"}
    environment = _setup(made(variables, pass_env=("NAMED",), env={"OWN": "1"})).environment
    assert (environment["NAMED"], environment["OWN"]) == ("given", "1")
    assert environment["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    assert environment["HOME"] == "/project/.muster/claude/agent-coder"
    assert "OTHER" not in environment


def test_a_key_under_another_name_reaches_it_under_its_own() -> None:
    environment = _setup(made({"MY_KEY": "sk-mine-0123"}, key_env="MY_KEY")).environment
    assert environment["ANTHROPIC_API_KEY"] == "sk-mine-0123"
    assert "MY_KEY" not in environment


def test_a_subscription_lives_at_home_without_a_key() -> None:
    setup = _setup(made(KEYED | {"HOME": "/home/ada"}, subscription=True))
    assert (setup.home, setup.environment["HOME"]) == (None, "/home/ada")
    assert "ANTHROPIC_API_KEY" not in setup.environment


def test_a_sandbox_is_claimed_only_by_root_without_permissions() -> None:
    assert "IS_SANDBOX" not in _setup(made()).environment
    claimed = "IS_SANDBOX" in _setup(made(permission_mode="bypassPermissions")).environment
    assert claimed == (os.geteuid() == 0)


async def test_tools_of_a_request_are_refused_since_it_cannot_use_them() -> None:
    with pytest.raises(InvalidRequest, match="its own tools"):
        await made().call(replace(ask("Hello"), tools=(Tool(name="now"),)), Timeouts())


def _setup(agent: Agent) -> Setup:
    assert isinstance(agent, ClaudeCodeAgent)
    return agent.setup
