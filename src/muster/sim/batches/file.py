"""A file at OpenAI: what was uploaded, or what a batch put out."""

from collections.abc import Sequence
from dataclasses import dataclass

from muster.domain.canonical import Json
from muster.sim.batches.batch import Batch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class File:
    """A named content; of a batch's output, the batch it came from."""

    id: str
    name: str
    purpose: str
    created: float
    lines: Sequence[bytes]  # an upload is one
    batch: Batch | None = None

    @property
    def size(self) -> int:
        """Its length in bytes."""
        return sum(map(len, self.lines))


def spell_file(file: File) -> Json:
    """Spell a file as its provider does."""
    return {
        "id": file.id,
        "object": "file",
        "bytes": file.size,
        "created_at": int(file.created),
        "expires_at": None,
        "filename": file.name,
        "purpose": file.purpose,
        "status": "processed",
        "status_details": None,
    }
