from pathlib import Path

from muster.agents.claude_code.setup import QUIET, with_key, with_subscription

HOUSE = Path("/muster/claude/agent-coder")


def test_with_a_key_it_lives_in_a_house_of_its_own() -> None:
    found = with_key({"PATH": "/bin"}, key="k", address=None, home=HOUSE)
    own = {"HOME": str(HOUSE), "CLAUDE_CONFIG_DIR": f"{HOUSE}/.claude", "ANTHROPIC_API_KEY": "k", "PATH": "/bin"}
    assert found == QUIET | own


def test_it_is_told_to_speak_to_the_api_only() -> None:
    assert QUIET["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == QUIET["DISABLE_TELEMETRY"] == "1"
    assert QUIET["DISABLE_ERROR_REPORTING"] == QUIET["DISABLE_AUTOUPDATER"] == "1"


def test_what_is_declared_goes_before_what_is_usual_but_not_before_the_key() -> None:
    child = {"HOME": "/elsewhere", "DISABLE_TELEMETRY": "0", "ANTHROPIC_API_KEY": "another"}
    found = with_key(child, key="k", address="http://127.0.0.1:1", home=HOUSE)
    assert (found["HOME"], found["DISABLE_TELEMETRY"], found["ANTHROPIC_API_KEY"]) == ("/elsewhere", "0", "k")
    assert found["CLAUDE_CONFIG_DIR"] == f"{HOUSE}/.claude"
    assert found["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"


def test_with_a_subscription_it_lives_at_home_and_gets_no_key() -> None:
    found = with_subscription({"ANTHROPIC_API_KEY": "k"}, home="/home/ada", address=None)
    assert found == QUIET | {"HOME": "/home/ada"}


def test_only_what_goes_without_permissions_as_root_is_called_a_sandbox() -> None:
    assert "IS_SANDBOX" not in with_key({}, key="k", address=None, home=HOUSE)
    assert with_key({}, key="k", address=None, home=HOUSE, unguarded=True)["IS_SANDBOX"] == "1"
    assert with_subscription({}, home=None, address=None, unguarded=True)["IS_SANDBOX"] == "1"
