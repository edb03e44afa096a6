"""Columns of a table for a terminal, of which those that are missed least are left out where there is no room."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text


@dataclass(frozen=True, slots=True)
class Column:
    """One column; only one that folds may become narrower than what is in it."""

    name: str
    cells: Sequence[Text | str]
    right: bool = True
    titled: bool = True
    folds: bool = False

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.name if self.titled else ""

    @property
    def width(self) -> int:
        """How many columns of a terminal it takes."""
        return max(cell_len(line) for cell in (self.title, *map(str, self.cells)) for line in cell.split("\n"))


def fitting(columns: Sequence[Column], least_missed: Sequence[str], width: int, gap: int) -> list[Column]:
    """Leave out columns, in the order in which they are missed least, until the others fit."""
    kept = list(columns)
    for name in least_missed:
        if sum(column.width + gap for column in kept) <= width:
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
