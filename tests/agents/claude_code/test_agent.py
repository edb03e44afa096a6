"""What Claude Code is told: its options, and the prompt."""

from dataclasses import replace
from pathlib import Path

import pytest

from muster.agents.claude_code.agent import options_of, prompt_of
from muster.agents.claude_code.sdk import require
from muster.agents.claude_code.setup import Servers, Setup
from muster.domain.call import Message, Request, Role, ask
from muster.domain.canonical import Json
from muster.domain.errors import BadConfiguration
from muster.domain.money import NOTHING, Microdollars

SETUP = Setup(
    folder=Path("/work"),
    key="sk-secret",
    environment={"ANTHROPIC_API_KEY": "sk-secret"},
    mcp_servers=Servers(
        file=Path("/house/private/mcp.json"), declared={"files": {"command": "serve", "env": {"TOKEN": "sk-secret"}}}
    ),
    allowed_tools=("Read",),
)
DOLLAR = Microdollars(1_000_000)


def test_four_fifths_of_what_is_reserved_are_told() -> None:
    assert options_of(SETUP, ask("x"), DOLLAR, streams=False)["max_budget_usd"] == 0.8
    assert options_of(SETUP, ask("x"), NOTHING, streams=False)["max_budget_usd"] is None


def test_our_instructions_come_after_its_own() -> None:
    preset = {"type": "preset", "preset": "claude_code"}
    assert options_of(SETUP, ask("x"), DOLLAR, streams=False)["system_prompt"] == preset
    told = options_of(SETUP, ask("x", system="Be {brief}."), DOLLAR, streams=False)["system_prompt"]
    assert told == preset | {"append": "Be {brief}."}


def test_tools_that_wait_for_a_person_are_taken_away_unless_they_are_asked_for() -> None:
    setup = replace(SETUP, allowed_tools=("ExitPlanMode",), disallowed_tools=("Bash",))
    taken = options_of(setup, ask("x"), DOLLAR, streams=False)["disallowed_tools"]
    assert taken == ["Bash", "AskUserQuestion", "EnterPlanMode"]


def test_nothing_that_lies_in_folders_is_read() -> None:
    options = options_of(SETUP, ask("x"), DOLLAR, streams=False)
    assert (options["setting_sources"], options["strict_mcp_config"]) == ([], True)


def test_of_mcp_servers_only_the_file_is_told() -> None:
    options = options_of(SETUP, ask("x"), DOLLAR, streams=False)
    assert options["mcp_servers"] == "/house/private/mcp.json"
    assert "sk-secret" not in repr(options)
    for none in (None, Servers(file=Path("/house/private/mcp.json"), declared={})):
        assert options_of(replace(SETUP, mcp_servers=none), ask("x"), DOLLAR, streams=False)["mcp_servers"] == {}


def test_a_session_a_shape_and_a_stream_are_asked_for_when_they_are_wanted() -> None:
    plain = options_of(SETUP, ask("x"), DOLLAR, streams=False)
    assert (plain["resume"], plain["output_format"], plain["include_partial_messages"]) == (None, None, False)
    request = replace(ask("x"), schema={"type": "object"}, volatile={"session": "abc"})
    full = options_of(SETUP, request, DOLLAR, streams=True)
    assert full["output_format"] == {"type": "json_schema", "schema": {"type": "object"}}
    assert (full["resume"], full["include_partial_messages"]) == ("abc", True)


def test_a_setup_does_not_show_its_secrets() -> None:
    assert "sk-secret" not in repr(SETUP)
    assert SETUP.scrub("with sk-secret in it") == "with [key] in it"
    assert replace(SETUP, key="", mcp_servers=None).scrub("anything") == "anything"


def test_a_missing_sdk_says_how_to_install_it() -> None:
    with pytest.raises(BadConfiguration, match="claude-agent-sdk") as caught:
        require("a_package_that_nobody_has")
    assert caught.value.suggestions == ("pip install 'muster-ai[claude]'",)


TALK = (
    Message(role=Role.USER, text="What is it?"),
    Message(role=Role.ASSISTANT, text="A bird."),
    Message(role=Role.TOOL, text="crow"),
    Message(role=Role.USER, text="Which {one}?"),
)


def test_a_single_message_goes_in_as_it_is() -> None:
    assert prompt_of(ask("User: {x}\n$HOME")) == "User: {x}\n$HOME"


def test_the_system_prompt_has_another_place() -> None:
    assert prompt_of(ask("Hello", system="Be brief.")) == "Hello"


def test_more_messages_go_in_as_turns() -> None:
    expected = "User: What is it?\n\nAssistant: A bird.\n\nTool: crow\n\nUser: Which {one}?"
    assert prompt_of(Request(messages=TALK)) == expected


def test_a_session_holds_the_former_turns_already() -> None:
    request = Request(messages=TALK, volatile={"session": "abc"})
    assert prompt_of(request) == "Which {one}?"


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({"granted_tools": ["Bash", "Read"]}, ("Read", "Bash")),
        ({"tools": ["Edit"], "granted_tools": ["Bash"]}, ("Edit", "Bash")),
        ({"tools": ["Edit"]}, ("Edit",)),
    ],
)
def test_what_a_person_has_granted_is_allowed_beside_what_is_allowed_anyway(
    settings: dict[str, Json], allowed: tuple[str, ...]
) -> None:
    assert SETUP.set(settings).allowed_tools == allowed
