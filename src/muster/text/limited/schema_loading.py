"""Loads the JSON Schema library when it is first asked for: that takes a fifth of a second."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # the process of patterns and schemas is waited for
    from muster.domain.canonical import Json


class SchemaLibrary(Protocol):
    """What is asked of the library, once it is loaded."""

    def schema_flaw_of(self, text: bytes) -> str | None:
        """Return why a JSON text is not a JSON Schema; None when it is one."""

    def flaw_in(self, value: "Json", schema: bytes, formats: bool = False, most: int = 1) -> str | None:
        """Return what in a value does not fit a schema, given as JSON text; None when all of it does."""

    def unknown_word_in(self, schema: "Mapping[str, Json]") -> str | None:
        """Return the first keyword or format of a sound schema that is not known; None when all of them are."""


def schema_library() -> SchemaLibrary:
    """Return the library, which is loaded by the first that asks for it."""
    from muster.text.limited import schema_library as library  # here, because it is slow

    return library
