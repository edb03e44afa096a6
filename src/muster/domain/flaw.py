"""What is wrong with fields of an order, as data: every door shows it by its own names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class FlawCode(StrEnum):
    """What kind of thing is wrong with a field."""

    MISSING = "missing"
    UNKNOWN = "unknown"  # there is no such field
    OUT_OF_BOUNDS = "out_of_bounds"  # of a number, or of the length of a text or a list
    CONFLICT = "conflict"  # it cannot be used together with another one
    INVALID = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldFlaw:
    """What is wrong with a field: where, of what kind, in words, and what to do.

    The path is like `goals[0].persona`, and empty for the whole. The message stands after it in a sentence, unless it
    is a sentence `by_itself`.
    """

    path: str
    message: str
    code: FlawCode = FlawCode.INVALID
    suggestion: str = ""
    by_itself: bool = False

    def __str__(self) -> str:
        """Return it as part of a sentence."""
        return self.message if self.by_itself or not self.path else f"{self.path} {self.message}"

    def named(self, names: Mapping[str, str]) -> "FieldFlaw":
        """Return it by the names of a door; the name of a field within another one stands under `goals.persona`."""
        return replace(self, path=renamed_path(self.path, names))

    def record(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "path": self.path,
            "code": str(self.code),
            "message": self.message,
            "suggestion": str(self.suggestion) or None,
        }


def renamed_path(path: str, names: Mapping[str, str]) -> str:
    """Return a path with the names of a door in place of those of the declaration."""
    parts = path.split(".")
    plain = [re.sub(r"\[\d+\]", "", part) for part in parts]
    return ".".join(
        names.get(".".join(plain[: place + 1]), name) + part[len(name) :]
        for place, (part, name) in enumerate(zip(parts, plain, strict=True))
    )
