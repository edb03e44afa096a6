"""Names of things in the store: short, sortable by time of birth, safe in paths and URLs."""

from random import Random
from typing import NewType

RunId = NewType("RunId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(now: float, random: Random) -> RunId:
    """Make a run id: nine characters of milliseconds, seven of chance."""
    return RunId(_base32(int(now * 1000), 9) + _base32(random.getrandbits(35), 7))


def _base32(number: int, width: int) -> str:
    letters = []
    for _ in range(width):
        number, rest = divmod(number, 32)
        letters.append(_ALPHABET[rest])
    return "".join(reversed(letters))
