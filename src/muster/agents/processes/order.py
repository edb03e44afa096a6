"""What to start: a command, where, and with which environment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

INHERITED = ("PATH", "LANG")  # all that a child gets of ours without being told


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One process to be started; the command is never given to a shell."""

    agent: str  # whose process it will be, for messages
    command: tuple[str, ...]
    folder: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)  # all of it; may hold secrets
    input: bytes | None = field(default=None, repr=False)  # None: its standard input is empty from the start
    stays_open: bool = False  # more may be written to its input later


def environment_of(
    ours: Mapping[str, str], *, named: Iterable[str] = (), own: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Build a child's environment: PATH and LANG, what was named, and what is its own; nothing else of ours."""
    found = {name: ours[name] for name in (*INHERITED, *named) if name in ours}
    return found | dict(own or {})
