"""Whom we talk to and with which key; the key never shows in a message or a repr."""

import hashlib
from dataclasses import dataclass, field

from muster.agents.origin import split_url
from muster.domain.errors import BadConfiguration


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One agent at one address, for messages: where it happened and which variable holds its key."""

    place: str  # "anthropic/claude-haiku-5-5"
    variable: str = ""  # "ANTHROPIC_API_KEY"; empty when no key is needed
    key: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not (self.key.isascii() and self.key.isprintable()):
            raise BadConfiguration(
                f"the key for {self.place} has characters in it that no header may carry",
                suggestions=(f"look for a line break or a quotation mark in {self.variable}",) if self.variable else (),
            )

    def scrub(self, text: str) -> str:
        """Take the key out of a text that somebody else wrote."""
        return text.replace(self.key, "[key]") if self.key else text


def fingerprint(base_url: str, key: str) -> str:
    """Name an account so that it is known again, and the key cannot be found from the name."""
    origin, _ = split_url(base_url)
    return hashlib.sha256(f"muster account\n{origin.place}\n{key}".encode()).hexdigest()[:16]
