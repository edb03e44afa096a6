"""A fence around what must not speak to a judge: its lines carry a token that nothing inside of it can hold."""

import hashlib
from dataclasses import dataclass

from muster.domain.canonical import Json, canonical

_LENGTH = 32  # hexadecimal digits: too many to be found by trying


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence:
    """One token, and the lines that are made with it."""

    token: str

    def around(self, label: str, text: str) -> str:
        """Put a text between two lines; the label is always our own."""
        return f"<<<BEGIN {label} {self.token}>>>\n{text}\n<<<END {label} {self.token}>>>"


def fence_for(content: Json) -> Fence:
    """Make the fence for all of some content: whoever wrote it would have had to know its digest before."""
    return Fence(token=hashlib.sha256(canonical(content)).hexdigest()[:_LENGTH])
