"""The address of a database that several machines share: read, checked, and shown without its password."""

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from muster.domain.errors import BadConfiguration

VARIABLE = "MUSTER_DATABASE_URL"
SCHEMES = ("postgresql", "postgres")


def read_database_url(variables: Mapping[str, str], written: str | None) -> str | None:
    """Return the address in the environment, else the one in muster.toml; raises BadConfiguration for another kind."""
    name, url = (VARIABLE, variables[VARIABLE]) if variables.get(VARIABLE) else ("store.url", written)
    if not url:
        return None
    if not is_database_url(url):
        raise BadConfiguration(
            f"{name} is not the address of a PostgreSQL database",
            suggestions=("write it like postgresql://USER@HOST:5432/DATABASE, and set PGPASSWORD",),
        )
    return url


def is_database_url(text: str) -> bool:
    """Return whether a text is the address of a database."""
    scheme, found, _ = text.partition("://")
    return bool(found) and scheme in SCHEMES and _splits(text)


def _splits(url: str) -> bool:
    try:
        return urlsplit(url).port != 0
    except ValueError:
        return False


def show_database(url: str) -> str:
    """Return an address without password and options."""
    parts = urlsplit(url)
    user = f"{parts.username}@" if parts.username else ""
    place = parts.netloc.rpartition("@")[2] or "localhost"
    return f"postgresql://{user}{place}{parts.path}"


def database_secrets(url: str | None) -> Iterator[str]:
    """Yield what of an address must never be written: the password, in every spelling, and the address with it."""
    if url is None:
        return
    parts = urlsplit(url)
    passwords = [value for name, value in parse_qsl(parts.query) if name in ("password", "sslpassword")]
    if parts.password:
        passwords += [parts.password, unquote(parts.password)]
    if passwords:
        yield url
        yield from (password for password in passwords if password)
