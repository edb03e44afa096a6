"""How Claude Code is started for one agent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.agents.claude_code.servers import Servers


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is the same for all calls of one agent."""

    folder: Path  # where it works, unless a request says another
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # all of it; holds the key
    house: Path | None = None  # its own home folder, made before it starts; None: it lives in the person's
    key: str = field(default="", repr=False)  # empty with a subscription
    key_variable: str = "ANTHROPIC_API_KEY"  # where the person keeps the key, for messages
    cli_path: Path | None = None  # None: the one that the SDK brings along; never one found on PATH
    model: str | None = None
    fallback_model: str | None = None
    permission_mode: str = "default"
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    mcp_servers: Servers | None = None
    effort: str | None = None
    max_turns: int | None = None

    def scrub(self, text: str) -> str:
        """Take the key and what only MCP servers should know out of a text that somebody else wrote."""
        hidden = {} if self.mcp_servers is None else dict.fromkeys(self.mcp_servers.secrets, "[secret]")
        if self.key:
            hidden[self.key] = "[key]"
        for secret in sorted(hidden, key=len, reverse=True):  # one may be a part of another
            text = text.replace(secret, hidden[secret])
        return text
