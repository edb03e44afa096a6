"""One spelling for every JSON value, so that equal things have equal digests."""

import hashlib
import json
from typing import Any

Json = Any

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(value: Json) -> bytes:
    """Spell a JSON value in its one canonical form: sorted keys, no spaces, UTF-8."""
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def digest(value: Json) -> str:
    """Name a JSON value by the SHA-256 of its canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()
