"""The address of a database that several machines share: read, checked, and shown without its password."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

from muster.domain.errors import BadConfiguration

VARIABLE = "MUSTER_DATABASE_URL"
PASSWORD_VARIABLE = "PGPASSWORD"  # noqa: S105 - its name; read by libpq
SCHEMES = ("postgresql", "postgres")
REMEDY = "write it like postgresql://USER@HOST:5432/DATABASE, and set PGPASSWORD"

_ANY_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# What stands behind the user: hosts, the database, options. A second @ belongs to a password that is not escaped.
_REST = re.compile(r"(?P<places>[^/?@#\s]*)(?P<path>/[^?@]*)?(?:\?(?P<query>.*))?", re.DOTALL)
_PLACE = re.compile(r"(?:\[[^\[\]]+\]|[^\[\]:]*)(?::(?P<port>[0-9]*))?")


class AddressParts(NamedTuple):
    """The parts of an address, as they are written."""

    user: str
    password: str
    places: str  # HOST:PORT, several with commas between
    path: str
    query: str


def read_database_url(variables: Mapping[str, str], written: str | None) -> str | None:
    """Return the address in the environment, else the one in muster.toml; raises BadConfiguration for another kind."""
    name, url = (VARIABLE, variables[VARIABLE]) if variables.get(VARIABLE) else ("store.url", written)
    if not url:
        return None
    if not is_database_url(url):
        raise BadConfiguration(
            f"{name} is not the address of a PostgreSQL database",
            suggestions=(REMEDY, "escape special characters of a password in it: %40 for @"),
        )
    return url


def is_database_url(text: str) -> bool:
    """Return whether a text is the address of a database."""
    return _parse(text) is not None


def is_address(text: str) -> bool:
    """Return whether a text is meant as an address, and not as a folder or file."""
    return _ANY_SCHEME.match(text) is not None


def _parse(url: str) -> AddressParts | None:
    """Take an address apart in the way of libpq: the user, with a password, goes up to the first @ before a slash."""
    scheme, found, rest = url.partition("://")
    if not found or scheme not in SCHEMES:
        return None
    given, at, _ = rest.partition("/")[0].partition("@")
    parts = _REST.fullmatch(rest[len(given) + 1 :] if at else rest)
    if parts is None or not all(map(_is_place, parts["places"].split(","))):
        return None
    user, _, password = given.partition(":") if at else ("", "", "")
    return AddressParts(user, password, parts["places"], parts["path"] or "", parts["query"] or "")


def _is_place(text: str) -> bool:
    found = _PLACE.fullmatch(text)
    return found is not None and (not found["port"] or 0 < int(found["port"]) < 65536)


def show_database(url: str) -> str:
    """Return an address without password and options."""
    parts = _parse(url)
    if parts is None:
        return "postgresql://"
    return f"postgresql://{parts.user}{'@' if parts.user else ''}{parts.places or 'localhost'}{parts.path}"


def database_secrets(url: str | None, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield what of a database must never be written: its password, in every spelling, and the address with it."""
    if url is None:
        return
    parts = _parse(url)
    if parts is None:
        yield url
        return
    passwords = [value for name, value in parse_qsl(parts.query) if name in ("password", "sslpassword")]
    passwords += [parts.password, unquote(parts.password)]
    if any(passwords):
        yield url
    yield from (password for password in (*passwords, variables.get(PASSWORD_VARIABLE, "")) if password)
