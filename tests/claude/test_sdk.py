"""The border to the SDK."""

import importlib
from pathlib import Path
from typing import Any

import pytest

from muster.agents.claude_code.agent import options_of
from muster.agents.claude_code.sdk import Sdk, load
from muster.agents.claude_code.setup import Setup
from muster.domain.call import ask
from muster.domain.errors import BadConfiguration
from muster.domain.money import Microdollars

OPTIONS = options_of(Setup(folder=Path("/work")), ask("Hello"), Microdollars(1_000_000), streams=True)


@pytest.fixture
def module() -> Any:
    return importlib.import_module("claude_agent_sdk")  # of the extra, which the target of these tests installs


def test_the_command_is_the_bundled_one_and_reads_no_settings(module: Any) -> None:
    command = load().command(OPTIONS, None)
    assert command[0] == str(Path(module.__file__).parent / "_bundled" / "claude")
    assert {"--setting-sources=", "--strict-mcp-config", "--include-partial-messages"} <= set(command)
    assert command[command.index("--permission-prompt-tool") + 1] == "stdio"
    assert command[command.index("--max-budget-usd") + 1] == "0.8"


def test_a_command_of_ones_own_is_taken_as_it_is(module: Any) -> None:
    assert load().command(OPTIONS, Path("/opt/claude"))[0] == "/opt/claude"


def test_an_sdk_that_builds_no_commands_says_which_would_fit(module: Any) -> None:
    class Other:
        def __init__(self, **_: Any) -> None:
            pass

    with pytest.raises(BadConfiguration, match=f"claude-agent-sdk {module.__version__} is not supported") as caught:
        Sdk(module, Other).command(OPTIONS, None)
    assert "0.2.182" in caught.value.suggestions[0]


def test_an_sdk_that_lacks_an_option_is_not_supported(module: Any) -> None:
    with pytest.raises(BadConfiguration, match="an_option_of_tomorrow"):
        load().command(OPTIONS | {"an_option_of_tomorrow": 1}, None)


def test_it_is_loaded_once(module: Any) -> None:
    assert load() is load()
