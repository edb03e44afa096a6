"""Whether two texts ask nearly the same: likeness of their letters, however they are spelled and spaced. Pure."""

import unicodedata

ALIKE = 0.8
_WIDTH = 5  # characters of a shingle

Shingles = frozenset[str]


def normalised(text: str) -> str:
    """Give the letters and digits of a text, in small letters; of one that has none, what is not white."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded)) or "".join(folded.split())


def shingles(text: str) -> Shingles:
    """Cut a normalised text into all its overlapping pieces."""
    return frozenset(text[start : start + _WIDTH] for start in range(max(1, len(text) - _WIDTH + 1)))


def likeness(one: Shingles, other: Shingles) -> float:
    """Give the share of pieces that both have, from 0 to 1."""
    return len(one & other) / len(one | other)


class Crowd:
    """Texts that are there already, and who is among them."""

    def __init__(self) -> None:
        self._members: list[tuple[str, Shingles]] = []

    def add(self, name: str, text: str) -> None:
        """Take a text in."""
        self._members.append((name, shingles(normalised(text))))

    def alike(self, text: str) -> str | None:
        """Name the first one that is nearly the same."""
        found = shingles(normalised(text))
        return next((name for name, member in self._members if likeness(found, member) >= ALIKE), None)
