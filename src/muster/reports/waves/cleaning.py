"""Values for reports, without secrets that can be told by their look and without halves of characters.

It is done before anything is written: a writer spells punctuation in its own way, and cuts; after that no secret can be
told by its look, and a lone half of a surrogate pair is refused by strict readers of JSON.
"""

import re
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from muster.domain.canonical import Json
from muster.domain.redaction import Redactor

T = TypeVar("T")

_HALF = re.compile("[\ud800-\udfff]")


class Cleaner:
    """Cleans many values, with one numbering of secrets for all of them."""

    def __init__(self) -> None:
        self._redactor = Redactor()

    def value(self, value: T, kind: type[T]) -> T:
        """Give a value of the domain whose texts are clean."""
        return msgspec.convert(self._json(msgspec.to_builtins(value)), kind)

    def text(self, text: str) -> str:
        """Give a clean text."""
        return _HALF.sub("\ufffd", self._redactor.text(text))

    def _json(self, value: Json) -> Json:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(str(name)): self._json(inner) for name, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._json(inner) for inner in value]
        return value
