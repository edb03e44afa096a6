"""Measure everything: each figure is printed as it is measured, and at the end all of them as JSON and as a table."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from rich.console import Console
from rich.table import Table

from bench.figures import (
    Figure,
    as_json,
    batches,
    calls,
    memory,
    page,
    pool,
    programs,
    start,
    steps,
    streams,
    suites,
    workers,
)

Part = Callable[[Callable[[str], None]], Iterable[Figure]]


def say(text: str) -> None:
    """Tell what is being measured."""
    print(f"… {text}", file=sys.stderr, flush=True)


def table(figures: list[Figure]) -> Table:
    """Lay the figures out."""
    found = Table("figure", "value", "goal", "")
    for figure in figures:
        found.add_row(figure.name, f"{figure.value:,.2f} {figure.unit}", figure.goal, mark(figure))
    return found


def mark(figure: Figure) -> str:
    """Return whether a figure is as it should be."""
    return "" if not figure.goal else "held" if figure.held else "not held"


def measured(parts: Mapping[str, Part], failed: list[str]) -> Iterator[Figure]:
    """Yield the figures of all parts; one that fails is noted, and the others are measured all the same."""
    for name, part in parts.items():
        try:
            yield from part(say)
        except Exception as error:
            failed.append(f"{name}: {str(error) or type(error).__name__}")
            say(f"failed: {failed[-1]}")


def main() -> None:
    """Measure what was named, or everything."""
    parts: dict[str, Part] = {
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
        "steps": steps,
    }
    figures, failed = list[Figure](), list[str]()
    for figure in measured({name: parts[name] for name in sys.argv[1:] or parts}, failed):
        figures.append(figure)
        print(f"  {figure.name.strip()}: {figure.value:,.2f} {figure.unit} {mark(figure)}", file=sys.stderr, flush=True)
    print(as_json(figures), flush=True)
    Console(stderr=True).print(table(figures))
    if failed:
        sys.exit("\n".join(f"not measured: {one}" for one in failed))


if __name__ == "__main__":
    main()
