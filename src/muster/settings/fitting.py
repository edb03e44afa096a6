"""Values made to fit a section, and what to say of one that does not: its name, and what it must be."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T", bound=msgspec.Struct)

_TYPES: dict[str, type] = {"str": str, "object": dict, "array": list, "int": int, "float": float, "bool": bool}
_WORDS = {
    "str": "a text",
    "object": "a table",
    "array": "a list",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
}


class Misfit(Exception):
    """A setting that does not fit: where it stands, and what it must be; nothing when the name is not known."""

    def __init__(self, names: Sequence[str], message: str = "") -> None:
        super().__init__(f"{'.'.join(names)}: {message or 'is not known here'}")
        self.names, self.message = tuple(names), message


def fit(found: Any, kind: type[T], names: Sequence[str]) -> T:
    """Make a section of what stands under these names, or raise Misfit."""
    try:
        return msgspec.convert(found, kind, dec_hook=_path)
    except msgspec.ValidationError as error:
        what, _, rest = str(error).partition(" - at `")
        place = _place(found, rest.removeprefix("$").rstrip("`"), what)
        raise _misfit(what, kind, (*names, *place)) from error


def _path(kind: type, value: Any) -> Path:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise TypeError("Expected `str`")


def _misfit(what: str, kind: type[msgspec.Struct], names: tuple[str, ...]) -> Misfit:
    if unknown := re.search(r"unknown field `(.*)`", what):
        return Misfit((*names, unknown[1]))
    if missing := re.search(r"missing required field `(.*)`", what):
        return Misfit((*names, missing[1]), "is missing")
    if what.startswith("Invalid enum value"):
        return Misfit(names, f"must be one of {', '.join(map(repr, _choices(kind, names[-1])))}")
    expected = re.match(r"Expected `(\w+)[^`]*`(?: ([<>]=? [\d.]+))?(?:, got `(\w+)`)?", what)
    if expected is None:
        return Misfit(names, what)
    must = " ".join(filter(None, (_WORDS.get(expected[1], expected[1]), expected[2])))
    return Misfit(names, f"must be {must}" + (f", not {_WORDS.get(expected[3], expected[3])}" if expected[3] else ""))


def _place(found: Any, path: str, what: str) -> tuple[str, ...]:
    """Give the names on the way; the reader does not say which one of a table it means, so it is looked for."""
    names: list[str] = []
    for name, index in re.findall(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]", path):
        if index.isdigit():
            break  # the list is named, not its members
        step = name or _culprit(found, what)
        names.append(step)
        found = found.get(step) if isinstance(found, Mapping) else None
    return tuple(names)


def _culprit(found: Any, what: str) -> str:
    expected = _TYPES.get(what.partition("`")[2].partition("`")[0], object)
    items = found.items() if isinstance(found, Mapping) else ()
    return next((str(name) for name, value in items if not isinstance(value, expected)), "…")


def _choices(kind: type[msgspec.Struct], name: str) -> list[str]:
    hint = get_type_hints(kind).get(name)
    literals = [hint, *get_args(hint)]
    return [str(choice) for each in literals if get_origin(each) is Literal for choice in get_args(each)]
