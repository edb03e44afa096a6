"""Whether a file is a suite, by its name or by the keys at its top: as a parser sees them, or its lines if broken.

A suite whose keys are misspelt still looks like one; what is wrong with it is told when it is read.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from yaml import events

from muster.domain.errors import BadFile
from muster.text.documents.tree import Unreadable
from muster.text.documents.yaml_reader import DEEPEST
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
_STEPS: dict[type, int] = {
    **dict.fromkeys((events.MappingStartEvent, events.SequenceStartEvent), 1),
    **dict.fromkeys((events.MappingEndEvent, events.SequenceEndEvent), -1),
}


def is_suite(file: Path) -> bool:
    """Return whether a YAML or TOML file is a suite: by its name, even when it is broken, or by a key at its top."""
    if file.name.startswith(_LOCK):
        return False
    if file.stem.lower() == NAME:
        return True
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
    keys = _meant(_json_keys(data))
    return "cases" in keys and len(keys) > 1


def _plain(data: bytes) -> bytes:
    """Return bytes without marks of their order; of UTF-16, which is refused when it is read, only the letters."""
    return data.replace(b"\0", b"").removeprefix(b"\xff\xfe").removeprefix(b"\xef\xbb\xbf")


def _has_words(data: bytes) -> bool:
    lowered = data.lower()
    return any(word in lowered for word in _WORDS)


def _names_suite(keys: Iterable[str]) -> bool:
    """Return whether keys at the top are those of a suite: one as it is spelled, or two in any spelling."""
    seen = []
    for key in keys:
        if key in _KEYS:
            return True
        seen.append(key)
    return len(_meant(seen)) > 1


def _meant(keys: Iterable[str]) -> set[str]:
    letters = ("".join(filter(str.isalnum, key.casefold())) for key in keys)
    return {_LETTERS[key] for key in letters if key in _LETTERS}


def _yaml_keys(data: bytes) -> Iterator[str]:
    """Yield the keys at the top of all documents; where the parser does not get to the end, what the lines show too."""
    try:
        yield from _parsed_yaml_keys(data[:_MAX_YAML])
        is_known = len(data) <= _MAX_YAML
    except yaml.YAMLError:
        is_known = False
    if not is_known and _has_yaml_line(iter(data.splitlines())):
        yield NAME


def _parsed_yaml_keys(data: bytes) -> Iterator[str]:
    loader = _Loader(data)
    try:
        depth, nodes, in_mapping = 0, 0, False
        while (event := loader.get_event()) is not None:
            kind = type(event)
            step = _STEPS.get(kind, 0)
            if depth == 0 and step == 1:
                nodes, in_mapping = 0, kind is events.MappingStartEvent
            elif depth == 1 and step != -1:
                if in_mapping and nodes % 2 == 0 and kind is events.ScalarEvent:
                    yield event.value
                nodes += 1
            depth += step
            if depth > DEEPEST:
                raise yaml.YAMLError  # it would be refused, and the parser gets ever slower with it
    finally:
        loader.dispose()


def _has_yaml_line(lines: Iterator[bytes]) -> bool:
    first = next((line for line in lines if not _NOTHING_YET.fullmatch(line)), b"").removeprefix(b"--- ")
    if first.lstrip().startswith(b"{"):
        return any(_QUOTED_KEY.search(line) for line in chain([first], lines))
    margin = len(first) - len(first.lstrip(b" "))
    return any(_YAML_KEY.match(line, margin) for line in chain([first], lines) if not line[:margin].strip())


def _toml_keys(data: bytes) -> Iterable[str]:
    try:
        return tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return [NAME] if _has_toml_line(iter(data.splitlines())) else []


def _has_toml_line(lines: Iterable[bytes]) -> bool:
    at_top = True
    for line in lines:
        if _TOML_CASES.match(line) or (at_top and _TOML_KEY.match(line)):
            return True
        at_top = at_top and not _TOML_TABLE.match(line)
    return False


def _json_keys(data: bytes) -> Iterable[str]:
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return [found.decode() for found in _JSON_KEY.findall(data)]
    return found if isinstance(found, dict) else []
