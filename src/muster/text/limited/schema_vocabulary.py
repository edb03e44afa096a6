"""The words of a JSON Schema: keywords of its draft, and formats that are checked. Any other word would be ignored.

JSON Schema itself allows unknown ones. In a check they are flaws, since a misspelt `required` lets every answer pass.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from difflib import get_close_matches
from ipaddress import IPv4Address, IPv6Address
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from jsonschema import FormatChecker
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import UnknownDialect, specification_with

from muster.domain.canonical import Json

_OF_OURS = ("x-", "x_")  # prefixes of keywords that mean nothing to anybody else
_SAID = frozenset({
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary",
    "contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "deprecated", "description",
    "else", "examples", "format", "id", "if", "maxContains", "minContains", "readOnly", "then", "title", "writeOnly",
})  # fmt: skip
_DRAFT = Draft202012Validator.META_SCHEMA["$schema"]
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_TIME = re.compile(r"[0-2]\d:[0-5]\d:[0-6]\d(?:\.\d+)?(?:[Zz]|[+-][0-2]\d:[0-5]\d)")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_LABEL = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?<!-)")
_MAX_HOST = 253


def _is_date_time(text: str) -> bool:
    day, sign, time = text[:10], text[10:11], text[11:]
    return bool(date.fromisoformat(day)) and sign in "Tt" and _is_time(time)


def _is_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None and bool(datetime.fromisoformat(f"2000-01-01T{text[:8]}"))


def _is_date(text: str) -> bool:
    return len(text) == len("2000-01-01") and bool(date.fromisoformat(text))


def _is_uri(text: str) -> bool:
    parts = urlsplit(text)
    return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"[\s<>\"{}|\\^`]", text)


def _is_host(text: str) -> bool:
    return len(text) <= _MAX_HOST and all(_LABEL.fullmatch(label) for label in text.removesuffix(".").split("."))


FORMATS: Mapping[str, Callable[[str], Any]] = {
    "date": _is_date,
    "date-time": _is_date_time,
    "time": _is_time,
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "hostname": _is_host,
    "ipv4": lambda text: IPv4Address(text) is not None,
    "ipv6": lambda text: IPv6Address(text) is not None,
    "regex": lambda text: re.compile(text) is not None,
    "uri": _is_uri,
    "uuid": lambda text: str(UUID(text)) == text.lower(),
}


def format_checker() -> FormatChecker:
    """Return what checks the formats; of a value that is no text nothing is said."""
    checker = FormatChecker(formats=())
    for name, is_so in FORMATS.items():
        checker.checks(name, raises=(ValueError, re.error))(_of_text(is_so))
    return checker


def _of_text(is_so: Callable[[str], Any]) -> Callable[[object], bool]:
    return lambda value: bool(is_so(value)) if isinstance(value, str) else True


def unknown_word(schema: Mapping[str, Json]) -> str | None:
    """Return the first keyword or format of a sound schema that is not known; None when all of them are."""
    kind = validator_for(schema, default=Draft202012Validator)
    known = _SAID | frozenset(kind.VALIDATORS)
    draft = specification_with(kind.META_SCHEMA["$schema"])
    whole = draft.create_resource(schema)
    waiting: list[tuple[Any, Any]] = [(Registry().resolver_with_root(whole), whole)]
    seen: set[int] = set()
    while waiting:
        resolver, part = waiting.pop()
        contents: Any = part.contents
        if id(contents) in seen or not isinstance(contents, Mapping):
            continue
        seen.add(id(contents))
        if found := next(_unknown(contents, known), None):
            return found
        waiting += [(resolver.in_subresource(below), below) for below in part.subresources()]
        waiting += [(at.resolver, draft.create_resource(at.contents)) for at in _referred(resolver, contents)]
    return None


def _referred(resolver: Any, contents: Mapping[str, Json]) -> Iterator[Any]:
    """Yield what a part refers to: it is part of the schema too, though it may stand where none is looked for."""
    for name in _REFERENCES:
        if isinstance(wanted := contents.get(name), str):
            with suppress(Unresolvable, ValueError, TypeError):  # told where the schema is evaluated
                yield resolver.lookup(wanted)


def _unknown(contents: Mapping[str, Json], known: frozenset[str]) -> Iterator[str]:
    draft = contents.get("$schema")
    if isinstance(draft, str) and not _is_draft(draft):
        yield f"unknown $schema {draft!r}; use {_DRAFT}, or leave it out"
    for name in contents:
        if name not in known and not str(name).startswith(_OF_OURS):
            yield f"unknown keyword {name!r}{_meant(str(name), known)}"
    wanted = contents.get("format")
    if isinstance(wanted, str) and wanted not in FORMATS:
        hint = _meant(wanted, FORMATS) or f"; {', '.join(FORMATS)} are checked, and pattern checks any other"
        yield f"unknown format {wanted!r}{hint}"


def _is_draft(name: str) -> bool:
    try:
        specification_with(name)
    except UnknownDialect:
        return False
    return True


def _meant(name: str, known: "frozenset[str] | Mapping[str, Any]") -> str:
    near = get_close_matches(name, sorted(known), n=1, cutoff=0.75)
    return f"; did you mean {near[0]}?" if near else ""
