"""The headers of an answer, kept as they came: most of them are never looked at."""

from collections.abc import Iterator, Mapping


class Headers(Mapping[str, str]):
    """Finds headers by name in any case; those that came more than once are joined."""

    __slots__ = ("_lines",)

    def __init__(self, lines: Mapping[bytes, bytes]) -> None:
        self._lines = lines  # names in lower case

    def __getitem__(self, name: str) -> str:
        return self._lines[name.lower().encode()].decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (name.decode("utf-8", "replace") for name in self._lines)

    def __len__(self) -> int:
        return len(self._lines)

    def __repr__(self) -> str:
        return f"Headers({dict(self)!r})"
