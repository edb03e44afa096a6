"""Suites in YAML, read event by event: one case at a time is in memory, and every part of it knows its line.

The dialect is YAML 1.2 with its core schema. Anchors, aliases and `<<` work; what they expand to is bounded.
"""

import codecs
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from yaml import events

from muster.text.document_tree import Items, Map, Plain, Unreadable, scalar
from muster.text.documents.yaml_errors import plain_words
from muster.text.files import CheckedStream, opened

MAX_CASE = 8_000_000  # characters of one case, with everything that its aliases stand for; parts count as some
MAX_ANCHORED = 64_000_000  # the same of all anchors together: they are kept
MAX_DEPTH = 64
_PART = 64  # what a list or a mapping weighs by itself
_WORD = 8  # and a word

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CORE = "tag:yaml.org,2002:"
_MERGE = "\0<<"  # without quotes; in quotes it is a key like any other
# What YAML takes for the end of a line, and then anything but a blank, a comment, the end, or an item of a list.
_MAYBE_KEY = re.compile(rb"(?:[\r\n]|\xc2\x85|\xe2\x80[\xa8\xa9])(?![ #\r\n]|-[ \r\n]|\Z)")
_MAX_MATCH = 8  # bytes, with what is looked at behind it
_PIECE = 1 << 20
_STARTS = frozenset({events.MappingStartEvent, events.SequenceStartEvent})
_ENDS = frozenset({events.MappingEndEvent, events.SequenceEndEvent})
_STEPS: Mapping[type, int] = {**dict.fromkeys(_STARTS, 1), **dict.fromkeys(_ENDS, -1)}  # into a part, or out of it


class TooDeep(Unreadable):
    """A part is nested so deep that its file is refused as a whole."""


class YamlFile:
    """One file with a suite."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def head(self) -> Map:
        """Return everything but the cases, of which only the line is known; the whole file is parsed for that."""
        with _parsing(self._path) as parser:
            head = Map(parser.begin())
            for key, line in parser.keys(head):
                if key == "cases":
                    parser.pass_over_list(line)
                head.put(key, None if key == "cases" else parser.build(), line)
            parser.finish()
            return _merged(head) if _MERGE in head else head

    def first_head(self) -> Map | None:
        """Return the head without parsing the cases when they are the last key; None when that is not certain.

        What is wrong behind the beginning of the cases is not found here: read them with `cases(once=True)`.
        """
        with _parsing(self._path) as parser:
            head = Map(parser.begin())
            for key, line in parser.keys(head):
                if key == "cases":
                    if parser.outermost_key is None or not _is_last_key(self._path, parser.outermost_key):
                        return None
                    parser.enter_list(line)
                head.put(key, None if key == "cases" else parser.build(), line)
                if key == "cases":
                    return _merged(head) if _MERGE in head else head
        return None

    def cases(self, *, once: bool = False) -> Iterator[tuple[Any, int]]:
        """Return the cases one by one, each with its line; one that cannot be built is an Unreadable, not raised.

        With `once` nobody has parsed the file to its end before: whatever that would have refused is raised here.
        """
        with _parsing(self._path) as parser:
            seen = Map(parser.begin())
            for key, line in parser.keys(seen):
                if key == "cases":
                    yield from parser.items(once=once)
                    if once:
                        parser.finish_last()
                    return
                parser.skip()
                seen.put(key, None, line)


@contextmanager
def _parsing(path: Path) -> Iterator["_YamlParser"]:
    with opened(path) as file:
        loader = None
        try:
            loader = _Loader(CheckedStream(file))
            yield _YamlParser(loader)
        except yaml.YAMLError as error:
            raise _unreadable(error, path) from None
        finally:
            if loader is not None:
                loader.dispose()


class _YamlParser:
    """Builds what is wanted from the events, and passes over the rest."""

    def __init__(self, loader: Any) -> None:
        self._event = loader.get_event
        self._level = 0  # how many lists and mappings we are in
        self._in_block = False  # whether the mapping at the top is written in lines, and not in braces
        self.outermost_key: int | None = None  # where the last key begins, in characters, if that is at a line's start
        self._anchors: dict[str, tuple[Any, int]] = {}  # with their weights
        self._anchored = 0
        self._weight = 0
        self._since = 0  # the weight at which the present case began

    def begin(self) -> int:
        """Go into the mapping at the top, and give its line."""
        self._next()
        if type(self._next()) is events.StreamEndEvent:
            raise Unreadable("the file is empty", 1)
        event = self._next()
        if type(event) is not events.MappingStartEvent:
            raise _refused("the file must be a mapping at its top: keys with values", event)
        self._in_block = not event.flow_style
        return _line(event)

    def keys(self, seen: Map) -> Iterator[tuple[str, int]]:
        """Yield the keys of the mapping that we are in; the caller takes each value, and puts it down."""
        while type(event := self._next()) is not events.MappingEndEvent:
            mark = event.start_mark
            self.outermost_key = mark.index if self._in_block and mark.column == 0 else None
            yield _key(event, seen), _line(event)

    def finish(self) -> None:
        """Refuse whatever comes after the mapping at the top."""
        self._next()
        if type(event := self._next()) is not events.StreamEndEvent:
            raise _refused("a second document begins here; write it into a file of its own", event)

    def finish_last(self) -> None:
        """Refuse whatever comes after the last key of the mapping at the top."""
        if type(event := self._next()) is not events.MappingEndEvent:
            raise _refused("a key follows the cases, which had none behind them when the head was read", event)
        self.finish()

    def enter_list(self, line: int) -> Any:
        """Go into a value that must be a list, and give its event."""
        event = self._next()
        if type(event) is not events.SequenceStartEvent:
            raise Unreadable("cases must be a list", line)
        return event

    def pass_over_list(self, line: int) -> None:
        """Skip a value that must be a list; anchors in it that cannot be built are not known later on."""
        self._skip(self.enter_list(line), lenient=True)

    def items(self, *, once: bool) -> Iterator[tuple[Any, int]]:
        """Yield the items of a list one by one; with `once`, one that is too deep is not passed over."""
        if type(event := self._next()) is not events.SequenceStartEvent:
            raise _refused("cases must be a list", event)
        while type(event := self._next()) is not events.SequenceEndEvent:
            yield self._item(event, once=once), _line(event)

    def _item(self, event: Any, *, once: bool) -> Any:
        """Build one item; after one that cannot be built, go on behind it."""
        self._since = self._weight
        around = self._level_around(event)
        try:
            return self._build(event, 2)
        except Unreadable as error:
            if once and isinstance(error, TooDeep):
                raise
            self._leave(around, deepest=MAX_DEPTH if once else None)
            return error

    def _next(self) -> Any:
        event = self._event()
        self._level += _STEPS.get(type(event), 0)
        return event

    def _level_around(self, event: Any) -> int:
        return self._level - (type(event) in _STARTS)

    def _leave(self, level: int, deepest: int | None = None) -> None:
        """Pass over everything up to the end of what we are in, without building it."""
        while self._level > level:
            event = self._next()
            if deepest is not None:
                _require_depth(self._level - 1, event)  # the mapping at the top does not count

    def build(self) -> Any:
        """Build the next value."""
        self._since = self._weight
        return self._build(self._next(), 1)

    def skip(self) -> None:
        """Pass over the next value; what has an anchor in it is kept."""
        self._since = self._weight
        self._skip(self._next())

    def _skip(self, event: Any, *, lenient: bool = False) -> None:
        level = 0
        while True:
            kind = type(event)
            if kind is not events.AliasEvent and kind not in _ENDS and event.anchor:
                self._anchored_value(event, lenient=lenient)
            elif kind in _STARTS:
                level += 1
                _require_depth(level, event)
            elif kind in _ENDS:
                level -= 1
            if not level:
                return
            event = self._next()

    def _anchored_value(self, event: Any, *, lenient: bool) -> None:
        self._since = self._weight
        around = self._level_around(event)
        try:
            self._build(event, 1)
        except Unreadable:
            if not lenient:
                raise
            self._leave(around)

    def _build(self, event: Any, depth: int) -> Any:
        kind = type(event)
        if kind is events.AliasEvent:
            return self._alias(event)
        before = self._weight
        found: Any
        if kind is events.ScalarEvent:
            text = event.value
            untagged = event.tag is None
            found = (scalar(text) if event.implicit[0] else text) if untagged else _tagged(event)
            self._add(len(text) + _WORD, event)
        else:
            if depth > MAX_DEPTH:
                _require_depth(depth, event)
            self._add(_PART, event)
            if event.tag is not None:
                _require_tag(event, "map" if kind is events.MappingStartEvent else "seq")
            found = self._mapping(event, depth) if kind is events.MappingStartEvent else self._list(event, depth)
        if event.anchor:
            self._keep(event, found, self._weight - before)
        return found

    def _mapping(self, start: Any, depth: int) -> Map:
        """Build a mapping; of all that is done for a file most is done here, so that every call counts."""
        found, following = Map(start.start_mark.line + 1), self._event
        lines = found.lines
        event: Any
        mark: Any
        while type(event := following()) is events.ScalarEvent:
            key, mark = event.value, event.start_mark
            if key in found or key == "<<":
                key = _key(event, found)
            value = following()
            if type(value) is events.ScalarEvent and value.tag is None and value.anchor is None:
                text = value.value
                found[key] = scalar(text) if value.implicit[0] else text
                self._add(len(key) + len(text) + 2 * _WORD, value)
            else:
                self._level += _STEPS.get(type(value), 0)
                self._weight += len(key) + _WORD
                found[key] = self._build(value, depth + 1)
            lines[key] = mark.line + 1
        self._level += _STEPS.get(type(event), 0)
        if type(event) is not events.MappingEndEvent:
            _key(event, found)
        return _merged(found) if _MERGE in found else found

    def _list(self, start: Any, depth: int) -> Items:
        found, following = Items(start.start_mark.line + 1), self._event
        while type(event := following()) is not events.SequenceEndEvent:
            self._level += _STEPS.get(type(event), 0)
            found.append(self._build(event, depth + 1))
            found.lines.append(event.start_mark.line + 1)
        self._level -= 1
        return found

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            raise _refused(f"there is no anchor &{event.anchor} before this, or this is inside of it", event)
        found, weight = self._anchors[event.anchor]
        self._add(weight, event)
        return found

    def _keep(self, event: Any, found: Any, weight: int) -> None:
        self._anchored += weight
        if self._anchored > MAX_ANCHORED:
            raise _refused("there is too much under anchors in this file", event)
        self._anchors[event.anchor] = (found, weight)

    def _add(self, weight: int, event: Any) -> None:
        self._weight += weight
        if self._weight - self._since > MAX_CASE:
            what = f"more than {MAX_CASE:,} characters, aliases expanded, which is the most for one case"
            raise _refused(f"this has {what}", event)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _refused(message: str, event: Any) -> Unreadable:
    return Unreadable(message, _line(event), int(event.start_mark.column) + 1)


def _key(event: Any, seen: Map) -> str:
    """Return the key that an event is; raises Unreadable for one that is not a word, or stands there already."""
    if type(event) is not events.ScalarEvent:
        raise _refused("a key must be a word", event)
    key: str = event.value
    if key == "<<" and event.implicit[0]:
        key = _MERGE
    if key in seen:
        raise _refused(f"the key {key!r} stands here twice, first in line {seen.lines[key]}", event)
    return key


def _tagged(event: Any) -> Any:
    tag, value = event.tag, event.value
    if tag in ("!", f"{_CORE}str"):
        return value
    if tag in (f"{_CORE}int", f"{_CORE}float", f"{_CORE}bool") and isinstance(found := scalar(value), Plain):
        return found
    if tag == f"{_CORE}null":
        return None
    raise _refused(f"the tag {tag} is not known here", event)


def _require_depth(depth: int, event: Any) -> None:
    """Refuse what is too deep, be it looked at or not: the parser gets ever slower with it."""
    if depth > MAX_DEPTH:
        refused = _refused(f"this is nested more than {MAX_DEPTH} levels deep", event)
        raise TooDeep(refused.message, refused.line, refused.column)


def _require_tag(event: Any, name: str) -> None:
    if event.tag not in (None, "!", _CORE + name):
        raise _refused(f"the tag {event.tag} is not known here", event)


def _merged(found: Map) -> Map:
    """Take over what `<<` names; keys of one's own go first, and then earlier ones."""
    line = found.lines[_MERGE]
    named = found[_MERGE]
    for other in named if isinstance(named, Items) else [named]:
        if not isinstance(other, Map):
            raise Unreadable("<< takes a mapping, or a list of mappings", line)
        for key, value in other.items():
            if key not in found:
                found.put(key, value, other.lines[key])
    del found[_MERGE]
    return found


def _unreadable(error: yaml.YAMLError, path: Path) -> Unreadable:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is not None:
        hint = "; indent with spaces, not with tabs" if _has_tab(path, mark.line) else ""
        return Unreadable(f"not valid YAML: {plain_words(error)}{hint}", mark.line + 1, mark.column + 1)
    position = getattr(error, "position", None)
    line, column = _place_at(path, position) if isinstance(position, int) else (None, None)
    return Unreadable(f"not valid YAML: {getattr(error, 'reason', error)}", line, column)


def _is_last_key(path: Path, index: int) -> bool:
    """Return whether no other key can follow the one that begins a line at this character, of a mapping in lines.

    The next key would begin a line as well; a line that begins with a blank, a comment or an item of a list holds none.
    """
    with opened(path) as file:
        before = file.read(len(codecs.BOM_UTF8) + 4 * index)  # a character has four bytes at most
        mark = codecs.BOM_UTF8 if before.startswith(codecs.BOM_UTF8) else b""
        text = before.removeprefix(mark).decode("utf-8", "ignore")[:index]
        file.seek(len(mark) + len(text.encode("utf-8")))
        rest = b""
        while piece := file.read(_PIECE):
            rest += piece
            found = _MAYBE_KEY.search(rest)
            if found is not None and found.start() < len(rest) - _MAX_MATCH:
                return False
            rest = rest[-_MAX_MATCH:]
        return _MAYBE_KEY.search(rest) is None


def _has_tab(path: Path, line: int) -> bool:
    with opened(path) as file:
        text = next(islice(file, line, None), b"")
        return b"\t" in text[: len(text) - len(text.lstrip())]


def _place_at(path: Path, position: int) -> tuple[int, int]:
    with opened(path) as file:
        before = file.read(position)
    return before.count(b"\n") + 1, len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
