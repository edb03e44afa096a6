"""The environment of Claude Code: what it is told, where it lives, and with which key. Pure."""

from collections.abc import Mapping
from pathlib import Path

KEY = "ANTHROPIC_API_KEY"
ADDRESS = "ANTHROPIC_BASE_URL"

# It speaks to the API only, and leaves nothing running behind an answer: what it cost after that nobody would count.
QUIET = {
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
}


def with_key(
    child: Mapping[str, str], *, key: str, address: str | None, house: Path, unguarded: bool = False
) -> dict[str, str]:
    """Complete a child's environment for an account with a key: it lives in a house of its own and sees no other."""
    own = {"HOME": str(house), "CLAUDE_CONFIG_DIR": str(house / ".claude")}
    return QUIET | own | _at(address) | dict(child) | {KEY: key} | _sandbox(unguarded)


def with_subscription(
    child: Mapping[str, str], *, home: str | None, address: str | None, unguarded: bool = False
) -> dict[str, str]:
    """Complete a child's environment for a subscription: the login is in the person's home; a key would go first."""
    own = {"HOME": home} if home else {}
    found = QUIET | own | _at(address) | dict(child) | _sandbox(unguarded)
    found.pop(KEY, None)
    return found


def _at(address: str | None) -> dict[str, str]:
    return {ADDRESS: address} if address else {}


def _sandbox(unguarded: bool) -> dict[str, str]:
    """Root may not let it go without permissions, unless it says that nothing can be lost here."""
    return {"IS_SANDBOX": "1"} if unguarded else {}
