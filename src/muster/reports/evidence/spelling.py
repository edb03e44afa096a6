"""How values are spelled in an archive, so that equal values are equal bytes."""

import json

from muster.domain.canonical import Json, canonical


def spell(value: Json) -> bytes:
    """Give one line of JSON; half a surrogate pair, which is no UTF-8, is escaped with the whole line."""
    line = canonical(value)
    try:
        line.decode("utf-8")
    except UnicodeDecodeError:
        line = json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    return line + b"\n"
