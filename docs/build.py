"""Makes what is made from the code: commands, fields, signatures, a schema and a stub; `--check` compares them."""

import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import click

from docs.fields import fields_page
from docs.reference import made_reference
from docs.sync_stub import sync_stub
from muster.cli.commands import app
from muster.cli.line.commands import SETTINGS
from muster.store.queries import migrations

ROOT = Path(__file__).parent.parent
WIDTH = 80
REFERENCE = "docs/PYTHON_REFERENCE.md"


def commands() -> str:
    """Return the help of every command, as the program prints it."""
    root = click.Context(app, info_name="muster", terminal_width=WIDTH, **SETTINGS)
    parts = ["# Commands\n\nMade by `make docs` from the program itself."]
    parts += [f"## {one.command_path}\n\n```\n{one.get_help()}\n```" for one in walk(root)]
    return "\n\n".join(parts) + "\n"


def walk(context: click.Context) -> Iterator[click.Context]:
    """Yield a command and everything below it."""
    yield context
    group = context.command
    for name in sorted(group.list_commands(context)) if isinstance(group, click.Group) else ():
        command = group.get_command(context, name)
        if command is not None:
            yield from walk(click.Context(command, info_name=name, parent=context, terminal_width=WIDTH, **SETTINGS))


def tables() -> str:
    """Return the schema that all migrations of a SQLite file lead to."""
    with closing(sqlite3.connect(":memory:")) as raw:
        for _, _, text in migrations("sqlite"):
            raw.executescript(text)
        found = raw.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'")
        statements = [re.sub(r"--.*\n", "\n", sql) for (sql,) in found]
    return "-- Made by `make docs` from the migrations.\n" + "".join(f"{sql};\n" for sql in statements)


def main() -> int:
    """Write the documents, or say which are stale."""
    made = {
        "docs/COMMANDS.md": commands(),
        "docs/FIELDS.md": fields_page(),
        REFERENCE: made_reference((ROOT / REFERENCE).read_text(encoding="utf-8")),
        "src/muster/store/migrations/sqlite.sql": tables(),
        "src/muster/sync/__init__.pyi": sync_stub(),
    }
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
