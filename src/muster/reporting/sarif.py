"""What every SARIF 2.1.0 file of ours has in common: the tool, places and times."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, unquote

from muster import __version__
from muster.domain.canonical import Json, JsonObject

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
MAX_NAME = 100
MAX_RESULTS = 25_000  # what common readers take of one run


def tool(rules: Sequence[Mapping[str, Json]]) -> JsonObject:
    """Return the tool that found the results, with its rules."""
    return {"driver": {"name": "muster", "version": __version__, "semanticVersion": __version__, "rules": list(rules)}}


def rule_name(identifier: str) -> str:
    """Return a friendly name for a rule: one identifier in Pascal case that is never the same as its id."""
    words = re.findall(r"[A-Za-z0-9]+", unquote(identifier))
    name = "".join(word[:1].upper() + word[1:] for word in words)[:MAX_NAME]
    if not name[:1].isalpha():
        name = f"Rule{name}"
    return f"{name}Rule" if name.casefold() == identifier.casefold() else name


def automation(title: str, run: str) -> dict[str, str]:
    """Name what this run is one of many of."""
    return {"id": f"muster/{quote(title, safe='', errors='replace')}/{run}"}


def invocation(
    *, successful: bool, told: Sequence[tuple[str, str]], started_at: float | None, ended_at: float | None
) -> JsonObject:
    """Return how the run went, with its notifications: levels and texts."""
    notifications: list[JsonObject] = [{"level": level, "message": {"text": text}} for level, text in told]
    found: JsonObject = {"executionSuccessful": successful, "toolExecutionNotifications": notifications}
    for name, at in (("startTimeUtc", started_at), ("endTimeUtc", ended_at)):
        if at is not None:
            found[name] = f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}Z"
    return found


def uri(file: str) -> str:
    """Write the place of a file, relative to where we are as far as it lies below."""
    path = Path(file)
    if not path.is_absolute():
        return quote(path.as_posix(), errors="replace")
    here = Path.cwd()
    if path.is_relative_to(here):
        return quote(path.relative_to(here).as_posix(), errors="replace")
    return "file://" + quote(path.as_posix(), errors="replace")
