"""The named queries of the `.sql` files, spelled for one database."""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_PARAMETER = re.compile(r"(?<![:\w]):(\w+)")


@cache
def queries() -> Mapping[str, str]:
    """Load every named query, parameters written as `:name`, the way SQLite takes them."""
    found: dict[str, str] = {}
    for file in sorted(resources.files("muster.store").joinpath("sql").iterdir(), key=lambda file: file.name):
        parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, text in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"{file.name} names the query {name} a second time")
            found[name] = text.strip()
    return found


def for_postgres(query: str) -> str:
    """Spell a query the way psycopg takes it: `%(name)s`."""
    return _PARAMETER.sub(r"%(\1)s", query.replace("%", "%%"))


def migrations(database: str) -> list[tuple[int, str, str]]:
    """Load the numbered migrations of a database: number, name, statements."""
    folder = resources.files("muster.store").joinpath("migrations", database)
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    return [(int(file.name[:4]), file.name[5:-4], file.read_text(encoding="utf-8")) for file in files]
