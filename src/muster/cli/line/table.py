"""A table of commands of which some are written down, and the rest is made when it is needed."""

from collections.abc import Iterator, Mapping
from functools import cached_property

from muster.cli.line.commands import CommandEntry, load_place


class CommandTable(Mapping[str, CommandEntry]):
    """Commands by their names; `made` is MODULE:NAME, below `muster.cli`, of a function that returns those that are
    not written down.

    Help lists these before one that is.
    """

    def __init__(self, written: Mapping[str, CommandEntry], made: str, *, before: str) -> None:
        self._written, self._place, self._before = written, made, before

    @cached_property
    def _made(self) -> Mapping[str, CommandEntry]:
        made: Mapping[str, CommandEntry] = load_place(self._place)()
        return made

    def __getitem__(self, name: str) -> CommandEntry:
        """Return a command; what is made is loaded for a name that is not written down."""
        return self._written[name] if name in self._written else self._made[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over all names in the order of help."""
        for name in self._written:
            if name == self._before:
                yield from (other for other in self._made if other not in self._written)
            yield name

    def __len__(self) -> int:
        """Return how many there are."""
        return len({**self._written, **self._made})
