"""Makes the command reference from the code; `--check` only says whether it is fresh."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.cli.line.group import CliCommand, Group

ROOT = Path(__file__).parent.parent
WIDTH = 80


def commands() -> str:
    """Write the help of every command, as the program prints it."""
    from muster.cli.main import app

    parts = ["# Commands\n\nMade by `make docs` from the program itself."]
    parts += [f"## {name}\n\n```\n{command.help(name, WIDTH)}\n```" for name, command in walk(app, "muster")]
    return "\n\n".join(parts) + "\n"


def walk(command: "CliCommand | Group", name: str) -> "Iterator[tuple[str, CliCommand | Group]]":
    """Give a command and everything below it."""
    from muster.cli.line.group import Group

    yield name, command
    for child in sorted(command.names) if isinstance(command, Group) else ():
        yield from walk(command.find(child, name), f"{name} {child}")


def main() -> int:
    """Write the documents, or say which are stale."""
    made = {"docs/COMMANDS.md": commands()}
    stale = [
        name
        for name, text in made.items()
        if not (ROOT / name).exists() or (ROOT / name).read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv:
        if stale:
            print(f"stale: {', '.join(stale)}; run: make docs", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        (ROOT / name).write_text(made[name], encoding="utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
