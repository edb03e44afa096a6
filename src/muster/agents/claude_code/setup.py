"""How Claude Code is started for one agent."""

import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from muster.agents.local import GRANTED
from muster.domain.canonical import Json

MIN_SECRET = 8  # characters; shorter values are switches and numbers, which stand in every text

_PRIVATE_FOLDER, _PRIVATE_FILE = 0o700, 0o600
_SECRET = ("env", "headers")  # where a server is told what nobody else should know


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """MCP servers by name, and where they are written down, in a folder that holds nothing else."""

    file: Path
    declared: Mapping[str, Mapping[str, Json]] = field(repr=False)  # may hold secrets

    @property
    def content(self) -> bytes:
        """What the file says."""
        return json.dumps({"mcpServers": {name: dict(server) for name, server in self.declared.items()}}).encode()

    @property
    def secrets(self) -> frozenset[str]:
        """The values that must not show: of variables and headers, and of headers without the scheme before them."""
        values = (value for server in self.declared.values() for value in _values(server))
        return frozenset(value for value in values if len(value) >= MIN_SECRET)

    def write_down(self) -> None:
        """Make the file say what is declared; without servers there is none. Raises OSError."""
        if not self.declared:
            self.file.unlink(missing_ok=True)
            return
        folder = self.file.parent
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) != _PRIVATE_FOLDER:
            folder.chmod(_PRIVATE_FOLDER)
        if not _says(self.file, self.content):
            _replace(self.file, self.content)


def _values(server: Mapping[str, Json]) -> Iterator[str]:
    for place in _SECRET:
        given = server.get(place)
        for value in given.values() if isinstance(given, dict) else ():
            if isinstance(value, str):
                yield value
                if place == "headers":
                    yield value.rpartition(" ")[2]


def _says(file: Path, content: bytes) -> bool:
    """Return whether a file is private, no link, and says this already."""
    try:
        found = file.lstat()
        private = stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) == _PRIVATE_FILE
        return private and found.st_size == len(content) and file.read_bytes() == content
    except OSError:
        return False


def _replace(file: Path, content: bytes) -> None:
    """Write a file anew, so that whoever reads it sees all of it or what was there before."""
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # only its owner can read it
    unfinished = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What is the same for all calls of one agent."""

    folder: Path  # where it works, unless a request says another
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # all of it; holds the key
    home: Path | None = None  # its own home folder, made before it starts; None: it lives in the person's
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

    def set(self, settings: Mapping[str, Any]) -> "Setup":
        """Return the setup of one call that sets something for itself."""
        own = {name: value for name, value in settings.items() if name in ("model", "effort", "permission_mode")}
        if "max_turns" in settings:
            own["max_turns"] = settings["max_turns"]
        if "tools" in settings:
            own["allowed_tools"] = tuple(settings["tools"])
        if GRANTED in settings:  # what a person has granted comes on top, whoever said what is allowed anyway
            allowed = own.get("allowed_tools", self.allowed_tools)
            own["allowed_tools"] = tuple(dict.fromkeys([*allowed, *settings[GRANTED]]))
        return replace(self, **own) if own else self

    def scrub(self, text: str) -> str:
        """Return a foreign text without the key and the secrets of MCP servers."""
        hidden = {} if self.mcp_servers is None else dict.fromkeys(self.mcp_servers.secrets, "[secret]")
        if self.key:
            hidden[self.key] = "[key]"
        for secret in sorted(hidden, key=len, reverse=True):  # one may be a part of another
            text = text.replace(secret, hidden[secret])
        return text


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
    child: Mapping[str, str], *, key: str, address: str | None, home: Path, unguarded: bool = False
) -> dict[str, str]:
    """Complete a child's environment for an account with a key: it has a home folder of its own and sees no other."""
    own = {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")}
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
