"""Names of things in the store: short, sortable by time of birth, safe in paths and URLs."""

from random import Random
from typing import NewType

RunId = NewType("RunId", str)
BatchId = NewType("BatchId", str)

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_run_id(now: float, random: Random) -> RunId:
    """Make a run id: nine characters of milliseconds, seven of chance."""
    return RunId(_base32(int(now * 1000), 9) + _base32(random.getrandbits(35), 7))


def new_batch_id(now: float, random: Random) -> BatchId:
    """Make a batch id, spelled like that of a run with a letter before it."""
    return BatchId("b" + new_run_id(now, random))


def new_nonce(random: Random) -> str:
    """Make the nonce of a store."""
    return _base32(random.getrandbits(50), 10)


def _base32(number: int, width: int) -> str:
    letters = []
    for _ in range(width):
        number, rest = divmod(number, 32)
        letters.append(_ALPHABET[rest])
    return "".join(reversed(letters))
