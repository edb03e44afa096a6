"""Columns that fit a terminal, and lengths of time as people read and write them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import JustifyMethod
from rich.table import Table
from rich.text import Text

from muster.domain.errors import BadArgument

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


_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_SPAN = re.compile(r"(\d{1,9})([smhdw])")


def span(seconds: float) -> str:
    """Write a length of time, no finer than anybody needs it."""
    if seconds < 10:
        return f"{max(seconds, 0.0):.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def rough(seconds: float) -> str:
    """Write a length of time in one unit, for a column."""
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def local(at: float | None) -> str:
    """Write a time as the clock on the wall shows it."""
    return "" if at is None else f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"


def since(given: str, now: float) -> float:
    """Read where a window of time begins: so long ago, or at a date."""
    if found := _SPAN.fullmatch(given.strip()):
        return max(0.0, now - int(found[1]) * _UNITS[found[2]])
    try:
        return max(0.0, datetime.fromisoformat(given.strip()).astimezone().timestamp())
    except (ValueError, OverflowError, OSError):
        raise BadArgument(
            f"{given!r} is no length of time and no date", suggestions=("write it like 7d, 24h, 30m or 2026-01-31",)
        ) from None
