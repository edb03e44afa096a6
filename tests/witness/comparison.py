"""Compares two descriptions of the doors leaf by leaf: OpenAPI documents, schemas of tools, options, rows of starts.

Whatever the older one says is compared, by meaning: a part with a name is compared wherever it is referred to, whatever
its name; what may be null is not told apart from what may be left out; the order of parameters, of required fields and
of the values of an enumeration says nothing. What only the newer one says is a difference too, but in answers, of which
the older one described by hand no more than what was promised.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

MISSING = "(this is not there)"  # what is null is another thing
NULL = {"type": "null"}
# In the README of a record: the record, a place in it whose `*` stays between two dots, and why it is another now.
CHANGED = re.compile(r"^- `(?P<record>[^`]+)` `(?P<place>[^`]+)`: \S", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A place of the older description, or one that only the newer has, with what both say there."""

    place: str
    old: Any
    new: Any

    @property
    def is_equal(self) -> bool:
        """Return whether nothing has changed."""
        return type(self.old) is type(self.new) and bool(self.old == self.new)


def named_differences(readme: str, record: str) -> dict[str, re.Pattern[str]]:
    """Return the differences from a record that a README names, with what finds each of them and all below it."""
    text = readme.partition("## Changed on purpose")[2]
    places = [found["place"] for found in CHANGED.finditer(text) if found["record"] == record]
    return {place: re.compile("[^.]*".join(map(re.escape, place.split("*"))) + r"(?=[.\[]|$)") for place in places}


def compared(old: Any, new: Any) -> list[Leaf]:
    """Return the leaves of an older description, each once, and what only a newer one has."""
    return list(_Comparison(old, new).leaves(old, new, "", is_answer=False))


class _Comparison:
    """Two descriptions with their named parts, of which each pair is compared once."""

    def __init__(self, old: Any, new: Any) -> None:
        self._old_parts, self._new_parts = dict(_parts(old)), dict(_parts(new))
        self._seen: set[tuple[str, str]] = set()

    def leaves(self, old: Any, new: Any, place: str, *, is_answer: bool) -> Iterator[Leaf]:
        """Yield the leaves of two values at a place."""
        old_name, old = _resolved(old, self._old_parts)
        new_name, new = _resolved(new, self._new_parts)
        if old_name:
            if (old_name, new_name or place) in self._seen:
                return
            self._seen.add((old_name, new_name or place))
            place = f".{old_name}"
        if not isinstance(old, dict | list) or not old:
            yield Leaf(place, old, new)
        else:
            yield from self._inner(_items(old), _items(new), place, is_answer=is_answer)

    def _inner(self, old: dict[str, Any], new: dict[str, Any], place: str, *, is_answer: bool) -> Iterator[Leaf]:
        for key, value in _unnamed(old).items():
            answers = is_answer or key == ".responses"
            yield from self.leaves(value, new.get(key, MISSING), f"{place}{key}", is_answer=answers)
        if not is_answer:
            yield from (Leaf(f"{place}{key}", MISSING, value) for key, value in _unnamed(new).items() if key not in old)


def _unnamed(values: dict[str, Any]) -> dict[str, Any]:
    """Return values without named parts, which are compared where they are referred to."""
    return {key: value for key, value in values.items() if key not in (".$defs", ".schemas")}


def _items(value: Any) -> dict[str, Any]:
    """Return the members of a value by how their places end."""
    if isinstance(value, dict):
        return {f".{name}": one for name, one in value.items()}
    return {f"[{index}]": one for index, one in enumerate(value)} if isinstance(value, list) else {}


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the named parts of a description."""
    if isinstance(value, dict):
        yield from value.get("$defs", {}).items()
        yield from value.get("schemas", {}).items()
    for inner in _items(value).values():
        yield from _parts(inner)


def _resolved(value: Any, parts: dict[str, Any]) -> tuple[str, Any]:
    """Return the name of what a value refers to, if it does, and the value as it is compared."""
    value, name = _required(value), ""
    while isinstance(value, dict) and "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        value = _required(parts[name] | {key: one for key, one in value.items() if key not in ("$ref", "title")})
    return name, _by_meaning(value, parts)


def _required(value: Any) -> Any:
    """Return a schema without the word that it may be null."""
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("type"), list):
        kinds = [kind for kind in value["type"] if kind != "null"]
        return value | {"type": kinds[0] if len(kinds) == 1 else kinds}
    if NULL in (choices := value.get("anyOf") or []):
        rest = {name: one for name, one in value.items() if name != "anyOf"}
        others = [one for one in choices if one != NULL]
        return (others[0] if len(others) == 1 else {"anyOf": others}) | rest
    return value


def _by_meaning(value: Any, parts: dict[str, Any]) -> Any:
    """Return a value in which what has no order is found by its name."""
    if isinstance(value, list):
        names = [_own_name(one) for one in value]
        return dict(zip(names, value, strict=True)) if value and all(names) else value
    if not isinstance(value, dict):
        return value
    if "allOf" in value:
        return reduce(_both, (_resolved(one, parts)[1] for one in value["allOf"]))
    if isinstance(value.get("enum"), list):
        value = {"type": "string"} | value
    unordered = {name: value[name] for name in ("required", "enum") if isinstance(value.get(name), list)}
    return value | {name: {str(one): True for one in ones} for name, ones in unordered.items()}


def _both(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return a schema that says what two say."""
    joined = {name: one.get(name, {}) | other.get(name, {}) for name in ("properties", "required")}
    return one | other | joined


def _own_name(value: Any) -> str:
    if not isinstance(value, dict):
        return ""
    names: Iterable[str] = value.get("names") or [str(value[name]) for name in ("name",) if name in value]
    return " ".join(names)
