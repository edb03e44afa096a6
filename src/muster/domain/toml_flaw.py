"""Where a text stops being TOML, read from what the library's reader says."""

import re

_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def toml_flaw(said: str, text: str) -> tuple[str, int, int]:
    """Return what is wrong, its line and its column; the library gives no place at the end of a text."""
    place = _PLACE.search(said)
    what = _PLACE.sub("", said)
    if place is not None and place[1]:
        return what, int(place[1]), int(place[2])
    read = text.replace("\r\n", "\n")  # as the library does
    return what, read.count("\n") + 1, len(read) - read.rfind("\n")
