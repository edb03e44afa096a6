"""What everyone shares who asks a model for a verdict: a fence around what is judged, and failed calls as values."""

import hashlib
from dataclasses import dataclass

from muster.domain.canonical import Json, canonical
from muster.domain.errors import CallFailed, RetriesExhausted, TryLater, WireError

FAILED_CALL = (CallFailed, TryLater)


def cause_of(error: WireError) -> WireError:
    """Return the root cause: of many attempts the last, as the journal has it, so that a replay reports the same."""
    while isinstance(error, RetriesExhausted):
        error = error.last
    return error


def code_of(error: WireError) -> str:
    """Return the code of what went wrong, as the journal has it."""
    return str(cause_of(error).record().get("code", error.code))


def words_of(error: WireError) -> str:
    """Return what went wrong."""
    record = cause_of(error).record()
    return f"{record.get('message', 'failed')} ({record.get('code', error.code)})"


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
