"""Ctrl-C on a command that waits for a provider: the person is told what goes on without it, and how to come back."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from muster.domain.errors import Interrupted


@dataclass(slots=True)
class Parting:
    """What is said to somebody who leaves; filled in as soon as it is known."""

    words: str = "interrupted"
    ways: tuple[str, ...] = ()


@contextmanager
def parting() -> Iterator[Parting]:
    """Turn Ctrl-C inside the block into an error that says how to go on."""
    said = Parting()
    try:
        yield said
    except KeyboardInterrupt:
        raise Interrupted(said.words, suggestions=said.ways) from None
