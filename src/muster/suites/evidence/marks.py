"""Marks that stand in the place of secrets in an archive."""

import re
from collections.abc import Mapping

from muster.domain.canonical import Json

_MARK = re.compile(r"\[redacted:[a-z_]+:[0-9]+\]")


def is_marked(value: Json) -> bool:
    """Return whether any text of a JSON value holds a mark, names included."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            if _MARK.search(one):
                return True
        elif isinstance(one, Mapping):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, list | tuple):
            left += one
    return False
