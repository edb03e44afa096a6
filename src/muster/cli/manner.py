"""How a person wants to be answered: in JSON or not, quietly or not, and from which store."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """What the shared options say, for one command."""

    command: str = ""
    json: bool = False
    quiet: bool = False
    home: Path | None = None

    def joined(self, other: "Manner") -> "Manner":
        """Take over what was said further to the right; a flag that was given stays given."""
        return Manner(
            command=other.command or self.command,
            json=self.json or other.json,
            quiet=self.quiet or other.quiet,
            home=other.home or self.home,
        )
