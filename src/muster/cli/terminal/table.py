"""Tables that fit a terminal: columns that are missed least are left out where there is no room."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

GAP = 2  # columns of a terminal between the columns of a table, and beside them


@dataclass(frozen=True, slots=True)
class Column:
    """One column; only one that folds may become narrower than what is in it.

    Other columns are left out before one that folds becomes narrower than `least`; None: than what is in it.
    """

    name: str
    cells: Sequence[Text | str]
    right: bool = True
    titled: bool = True
    folds: bool = False
    least: int | None = None

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.name if self.titled else ""

    @property
    def width(self) -> int:
        """How many columns of a terminal it takes."""
        return max(cell_len(line) for cell in (self.title, *map(str, self.cells)) for line in cell.split("\n"))

    @property
    def narrowest(self) -> int:
        """How many columns of a terminal it takes before another column is left out for it."""
        return self.width if self.least is None else min(self.width, self.least)


def fitting(columns: Sequence[Column], least_missed: Sequence[str], width: int, gap: int) -> list[Column]:
    """Leave out columns, in the order in which they are missed least, until the others fit."""
    kept = list(columns)
    for name in least_missed:
        if sum(column.narrowest + gap for column in kept) <= width:
            break
        kept = [column for column in kept if column.name != name]
    return kept


def filled(table: Table, columns: Sequence[Column]) -> Table:
    """Put the columns into a table."""
    for column in columns:
        justify: JustifyMethod = "right" if column.right else "left"
        table.add_column(column.title, justify=justify, no_wrap=not column.folds, overflow="fold")
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table


def fitted(columns: Sequence[Column], least_missed: Sequence[str], width: int) -> Table:
    """Return a table of the columns that a terminal of this width has room for."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    return filled(table, fitting(columns, least_missed, width, GAP))
