"""The one JSON document in a text of prose. A document that is broken or cut off is an error, and never looked into.

Otherwise `{"a": "bad", "x": {"a": "fine"}`, which lacks its last bracket, would be read as `{"a": "fine"}`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from muster.domain.canonical import Json
from muster.domain.errors import BadOutput
from muster.text.json_documents import Ambiguous, JsonSearch, decode, finite, require_single, unfenced

_BRACKET = re.compile(r"[\[\]{}]")
_STRING = r'"(?:[^"\\\n]|\\.)*+"'
_SCALAR = r"(?:-?[0-9][0-9.eE+-]*+|true|false|null)"
_IN_BRACES = re.compile(rf"{_STRING}|[{{}}]")
# What begins like JSON; anything else in brackets is prose: {name}, [see above], [0, 1).
_OBJECT = re.compile(rf"\{{\s*+{_STRING}\s*+:")
_INNER = rf'(?:"|\{{\s*+["}}]|\[\s*+(?:["{{\[\]]|{_SCALAR}\s*+[,\]]))'
_LIST = re.compile(rf"\[\s*+(?:{_SCALAR}\s*+,\s*+)*+{_INNER}")
_NUMBER = re.compile(r"\[\s*+[0-9]++\s*+\]")
_UNTICKED = "[ ]"  # an item of a list of tasks
_BEFORE_INDEX = re.compile(r"[\w)\]]")  # as in names[0]
_NEAR = 40  # characters around a number in brackets
_WORD = re.compile(r"[^\W_]")
_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    value: Any
    is_reference: bool  # such as [1] beside a word
    is_doubtful: bool  # maybe one: it is no JSON by itself, and no answer with other JSON is clear with it


def sole_document(text: str, *, references: bool = False) -> Json:
    """Return the one JSON document that a text is, or holds in a fence or in prose.

    Raises BadOutput when there is none, when there are several, and when one is broken or cut off. A reference, such
    as "see [1]", is a document only for runs that have recorded this rule (`references`), where nothing else is one.
    """
    try:
        return finite(decode(unfenced(text.strip())))
    except Ambiguous as error:
        raise BadOutput(str(error)) from None
    except (ValueError, RecursionError):
        value = _only(text, references=references)
    require_single(value)
    try:
        return finite(value)
    except Ambiguous as error:
        raise BadOutput(str(error)) from None


def _only(text: str, *, references: bool) -> Any:
    found = list(_Prose(text).documents())
    documents = [document for document in found if not document.is_reference]
    if references:
        documents = documents or found
    elif len(documents) == 1 and documents[0].is_doubtful:
        documents = []
    if len(documents) > 1:
        raise BadOutput(f"the answer holds {len(documents)} JSON documents, and one is expected")
    if not documents:
        only = " but references" if found else ""
        raise BadOutput(f"the answer holds no JSON{only}: {text.strip()[:_SHOWN]!r}")
    return documents[0].value


class _Prose:
    """Goes through a text from bracket to bracket."""

    def __init__(self, text: str) -> None:
        self._text, self._search = text, JsonSearch(text)
        self._open_lists = 0  # square brackets of prose that are not closed yet
        self._document_end = -1

    def documents(self) -> Iterator[_Document]:
        """Yield the documents; raises BadOutput for one that is broken."""
        place = _BRACKET.search(self._text)
        while place is not None:
            start, end = place.start(), place.end()
            if place[0] in "]}":
                self._close(start)
            elif (decoded := self._search.decode_at(start)) is None:
                end = self._end_of_prose(start)
            else:
                value, end = decoded
                self._document_end = end
                if place[0] == "{" or not self._is_index(start):
                    reference, doubtful = self._is_reference(start, end), self._is_among_words(start, end)
                    yield _Document(value=value, is_reference=reference, is_doubtful=doubtful)
            place = _BRACKET.search(self._text, end)

    def _close(self, at: int) -> None:
        """Refuse a bracket that closes what was never opened: the beginning of the document is missing."""
        if self._text[at] == "]" and self._open_lists:
            self._open_lists -= 1
        elif self._text[at] == "}" or not self._text[max(self._document_end, 0) : at].strip():
            raise self._broken(at)

    def _end_of_prose(self, start: int) -> int:
        """Return where to go on behind a bracket that is not JSON; nothing in curly ones is looked at."""
        if self._text[start] == "[":
            if _LIST.match(self._text, start):
                raise self._broken(start)
            self._open_lists += 1
            return start + 1
        if _OBJECT.match(self._text, start):
            raise self._broken(start)
        depth = 0
        for found in _IN_BRACES.finditer(self._text, start):
            depth += {"{": 1, "}": -1}.get(found[0], 0)
            if depth == 0:
                return found.end()
        return len(self._text)

    def _is_index(self, start: int) -> bool:
        return _BEFORE_INDEX.match(self._text[max(start - 1, 0) : start]) is not None

    def _is_reference(self, start: int, end: int) -> bool:
        if self._text[start:end] == _UNTICKED:
            return True
        before = self._text[max(start - _NEAR, 0) : start].rstrip(" ")[-1:]
        after = self._text[end : end + _NEAR].lstrip(" :")[:1]
        return _NUMBER.fullmatch(self._text, start, end) is not None and (before.isalnum() or after.isalnum())

    def _is_among_words(self, start: int, end: int) -> bool:
        """Return whether it is a number in brackets with words on its line."""
        before = self._text[max(start - _NEAR, 0) : start].rpartition("\n")[2]
        after = self._text[end : end + _NEAR].partition("\n")[0]
        words = _WORD.search(_NUMBER.sub("", f"{before} {after}"))
        return _NUMBER.fullmatch(self._text, start, end) is not None and words is not None

    def _broken(self, at: int) -> BadOutput:
        line = self._text.count("\n", 0, at) + 1
        return BadOutput(
            f"the JSON in the answer is broken or cut off at line {line}: {self._text[at : at + _SHOWN]!r}"
        )
