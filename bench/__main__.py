"""Measure everything, then print it as JSON and as a table."""

import sys

from rich.console import Console
from rich.table import Table

from bench.figures import Figure, as_json, batches, calls, memory, page, pool, programs, start, streams, suites, workers


def say(text: str) -> None:
    """Tell what is being measured."""
    print(f"… {text}", file=sys.stderr, flush=True)


def table(figures: list[Figure]) -> Table:
    """Lay the figures out."""
    found = Table("figure", "value", "goal", "")
    for figure in figures:
        mark = "" if not figure.goal else "held" if figure.held else "not held"
        found.add_row(figure.name, f"{figure.value:,.2f} {figure.unit}", figure.goal, mark)
    return found


def main() -> None:
    """Measure what was named, or everything."""
    parts = {
        "calls": calls,
        "memory": memory,
        "batches": batches,
        "programs": programs,
        "suites": suites,
        "pool": pool,
        "streams": streams,
        "workers": workers,
        "page": page,
        "start": start,
    }
    wanted = sys.argv[1:] or list(parts)
    figures = [figure for name in wanted for figure in parts[name](say)]
    print(as_json(figures))
    Console(stderr=True).print(table(figures))


if __name__ == "__main__":
    main()
