"""Whether a file is a suite, by its name or by the keys at its top: as a parser sees them, or its lines if broken.

A suite whose keys are misspelt still looks like one; what is wrong with it is told when it is read.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from yaml import events

from muster.domain.canonical import Json
from muster.domain.errors import BadFile
from muster.text.document_tree import NULLS, Unreadable
from muster.text.documents.yaml_reader import MAX_DEPTH
from muster.text.files import byte_lines, opened, shown

NAME = "cases"
JSON = ".json"
_MAX_PARSED = 8_000_000  # bytes of a file, or of a line of a larger one
_MAX_YAML = 500_000  # bytes that are parsed, which takes half a second
_LOCK = ".#"  # of an editor, before the name of the file that it edits

_KEYS = ("schema_version", "skill_or_agent", "cases")
_LETTERS = {"schemaversion": "schema_version", "skilloragent": "skill_or_agent", "cases": "cases"}
# Without one of these no file is a suite, so that few files are parsed.
_WORDS = (b"schema", b"skill", b"cases")

_ANY_KEY = "|".join(_KEYS).encode()
_YAML_KEY = re.compile(rb"[\"']?(?:" + _ANY_KEY + rb")[\"']?\s*:(?:\s|$)")
_TOML_KEY = re.compile(rb"\s*[\"']?(?:" + _ANY_KEY + rb")[\"']?\s*=")
_TOML_CASES = re.compile(rb"\s*\[\[\s*[\"']?cases[\"']?\s*\]\]")
_TOML_TABLE = re.compile(rb"\s*\[")
# In YAML that is written as JSON a key may stand anywhere, in quotes.
_QUOTED_KEY = re.compile(rb"\"(?:schema_version|skill_or_agent)\"\s*:|\"cases\"\s*:\s*(?:\[|$)")
_NOTHING_YET = re.compile(rb"\s*(?:#.*|---\s*(?:#.*)?|%.*)?\s*")
_JSON_KEY = re.compile(rb"\"(schema_version|skill_or_agent|cases)\"\s*:")

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_BEGINS = (events.MappingStartEvent, events.SequenceStartEvent)
_ENDS = (events.MappingEndEvent, events.SequenceEndEvent)
_NODES = (*_BEGINS, events.ScalarEvent, events.AliasEvent)
_LISTED = "-"
_OF_CASE = {"id", "input"}  # without which nothing is a case


def is_lock(name: str) -> bool:
    """Return whether a name is that of a lock of an editor, which is a link to nowhere."""
    return name.startswith(_LOCK)


def is_suite(file: Path) -> bool:
    """Return whether a YAML or TOML file is a suite: by its name, even when it is broken, or by a key at its top."""
    if is_lock(file.name):
        return False
    return file.stem.lower() == NAME or has_suite(file)


def has_suite(file: Path) -> bool:
    """Return whether a file is a suite by what stands at its top."""
    is_toml = file.suffix.lower() == ".toml"
    try:
        with opened(file) as stream:
            data = _plain(stream.read(_MAX_PARSED + 1))
            if len(data) <= _MAX_PARSED:
                return _has_words(data) and _names_suite(_toml_keys(data) if is_toml else _yaml_keys(data))
            stream.seek(0)
            lines = map(_plain, byte_lines(stream, _MAX_PARSED))
            return _has_toml_line(lines) if is_toml else _has_yaml_line(lines)
    except Unreadable as error:
        raise BadFile(shown(file), f"it is unknown whether it is a suite: {error.message}", line=error.line) from None


def is_json_suite(file: Path) -> bool:
    """Return whether a JSON file is a suite: cases with a version or a name beside them, in its first bytes."""
    if file.stem.lower() == NAME:
        return True
    try:
        with opened(file) as stream:
            data = _plain(stream.read(_MAX_PARSED))
    except Unreadable:
        return False
    if not _has_words(data):
        return False
    keys = _meant(key.name for key in _json_keys(data))
    return "cases" in keys and len(keys) > 1


def has_case_line(file: Path) -> bool:
    """Return whether the first line of a file is a case, or a suite, in JSON; a row of a dataset is none."""
    try:
        with opened(file) as stream:
            found = json.loads(next(byte_lines(stream, _MAX_PARSED), b""))
    except (Unreadable, ValueError, RecursionError):
        return False
    asked = found.get("input") if isinstance(found, dict) else None
    return (isinstance(asked, dict) and "messages" in asked) or len(
        _meant(found if isinstance(found, dict) else ())
    ) > 1


def _plain(data: bytes) -> bytes:
    """Return bytes without marks of their order; of UTF-16, which is refused when it is read, only the letters."""
    return data.replace(b"\0", b"").removeprefix(b"\xff\xfe").removeprefix(b"\xef\xbb\xbf")


def _has_words(data: bytes) -> bool:
    lowered = data.lower()
    return any(word in lowered for word in _WORDS)


@dataclass(frozen=True, slots=True)
class _Key:
    """A key at the top, or of a mapping in a list at the top; with its value as far as it matters."""

    name: str
    of: str = ""  # the key of the list that it stands in, of a list without a key _LISTED
    is_value: bool = False  # it stands for a number, a text or a list of these: `cases: 12` is no suite


def _names_suite(keys: Iterable[_Key]) -> bool:
    """Return whether keys are those of a suite: one as it is spelled, or two in any spelling, or those of cases."""
    at_top, listed, of_cases = [], [], set()
    for key in keys:
        if key.of == _LISTED:
            listed.append(key.name)
        elif key.of:
            of_cases.add(key.name)
        elif key.name in _KEYS and not (key.name == NAME and key.is_value):
            return True
        else:
            at_top.append(key.name)
    return len(_meant(at_top)) > 1 or len(_meant(listed)) > 1 or of_cases >= _OF_CASE


def _meant(keys: Iterable[str]) -> set[str]:
    letters = ("".join(filter(str.isalnum, key.casefold())) for key in keys)
    return {_LETTERS[key] for key in letters if key in _LETTERS}


def _yaml_keys(data: bytes) -> Iterator[_Key]:
    """Yield the keys at the top of all documents; where the parser does not get to the end, what the lines show too."""
    try:
        yield from _parsed_yaml_keys(data[:_MAX_YAML])
        is_known = len(data) <= _MAX_YAML
    except yaml.YAMLError:
        is_known = False
    if not is_known and _has_yaml_line(iter(data.splitlines())):
        yield _Key(NAME)


def _parsed_yaml_keys(data: bytes) -> Iterator[_Key]:
    loader = _Loader(data)
    nodes = _Nodes()
    try:
        while (event := loader.get_event()) is not None:
            yield from nodes.keys(event)
            if len(nodes.around) > MAX_DEPTH:
                raise yaml.YAMLError  # it would be refused, and the parser gets ever slower with it
    except yaml.YAMLError:
        yield from nodes.of_empty_list()
        raise
    finally:
        loader.dispose()


class _Nodes:
    """Goes through the events of a parser, and knows what stands around each node."""

    def __init__(self) -> None:
        self.around: list[_Around] = []

    def keys(self, event: Any) -> Iterator[_Key]:
        """Yield the key whose value begins, or is known to be a list, with this event."""
        kind = type(event)
        if kind in _ENDS:
            yield from self.of_empty_list()
            self.around.pop()
        elif kind in _NODES:
            yield from self._key(event, kind is events.ScalarEvent)
            if self.around:
                self.around[-1].nodes += 1
            if kind in _BEGINS:
                self.around.append(_Around(is_mapping=kind is events.MappingStartEvent))

    def of_empty_list(self) -> Iterator[_Key]:
        """Yield the key at the top of a list that has no item, or none before the end of what can be read."""
        if len(self.around) == 2 and not self.around[1].nodes:
            yield from self._top_key(is_value=False)

    def _key(self, event: Any, is_scalar: bool) -> Iterator[_Key]:
        place = self.around[-1] if self.around else None
        if place is None:
            return
        if place.is_mapping and place.nodes % 2 == 0:
            place.key = event.value if is_scalar else ""
            if len(self.around) > 1 and not self.around[-2].is_mapping and is_scalar:
                yield from self._key_of_item(event.value)
        elif len(self.around) == 1 and place.is_mapping and not isinstance(event, events.SequenceStartEvent):
            yield _Key(place.key, is_value=is_scalar and event.value not in NULLS)
        elif len(self.around) == 2 and not place.is_mapping and not place.nodes:
            yield from self._top_key(is_value=is_scalar)

    def _top_key(self, *, is_value: bool) -> Iterator[_Key]:
        """Yield the key at the top whose value is a list, when its first item begins or there is none."""
        if self.around[0].is_mapping and not self.around[1].is_mapping:
            yield _Key(self.around[0].key, is_value=is_value)

    def _key_of_item(self, name: str) -> Iterator[_Key]:
        """Yield a key of an item: of a list at the top, or of one with the name of cases, however it is spelled."""
        if len(self.around) == 2:
            yield _Key(name, of=_LISTED)
        elif len(self.around) == 3 and self.around[0].is_mapping and _meant([self.around[0].key]) == {NAME}:
            yield _Key(name, of=NAME)


@dataclass(slots=True)
class _Around:
    """A mapping or a list around a node: how many nodes of it came by, and the last key."""

    is_mapping: bool
    nodes: int = 0
    key: str = ""


def _has_yaml_line(lines: Iterator[bytes]) -> bool:
    first = next((line for line in lines if not _NOTHING_YET.fullmatch(line)), b"").removeprefix(b"--- ")
    if first.lstrip().startswith(b"{"):
        return any(_QUOTED_KEY.search(line) for line in chain([first], lines))
    margin = len(first) - len(first.lstrip(b" "))
    return any(_YAML_KEY.match(line, margin) for line in chain([first], lines) if not line[:margin].strip())


def _toml_keys(data: bytes) -> Iterable[_Key]:
    try:
        return list(_keys_of(tomllib.loads(data.decode("utf-8"))))
    except (ValueError, RecursionError):
        return [_Key(NAME)] if _has_toml_line(iter(data.splitlines())) else []


def _keys_of(found: Mapping[str, Json]) -> Iterator[_Key]:
    for name, value in found.items():
        items = value if isinstance(value, list) else [value]
        yield _Key(name, is_value=bool(items) and not isinstance(items[0], dict | list))
        if _meant([name]) == {NAME} and isinstance(value, list) and value and isinstance(value[0], dict):
            yield from (_Key(key, of=NAME) for key in value[0])


def _has_toml_line(lines: Iterable[bytes]) -> bool:
    at_top = True
    for line in lines:
        if _TOML_CASES.match(line) or (at_top and _TOML_KEY.match(line)):
            return True
        at_top = at_top and not _TOML_TABLE.match(line)
    return False


def _json_keys(data: bytes) -> Iterable[_Key]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return [_Key(found.decode()) for found in _JSON_KEY.findall(data)]
    first = found[0] if isinstance(found, list) and found else found
    return [_Key(name) for name in first] if isinstance(first, dict) else []
