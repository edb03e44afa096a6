"""Makes the command reference and the tree in the README from the code; `--check` only says whether they are fresh."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.cli.line.group import CliCommand, Group

ROOT = Path(__file__).parent.parent
WIDTH = 80
BEGIN, END = "<!-- tree -->\n", "<!-- /tree -->"


def tree() -> str:
    """Draw the source: every file with the first sentence of its docstring."""
    lines = ["src/muster/"]
    for folder in [ROOT / "src/muster", *sorted(path for path in (ROOT / "src/muster").rglob("*") if path.is_dir())]:
        files = sorted(folder.glob("*.py"))
        if not files:
            continue
        depth = len(folder.relative_to(ROOT / "src/muster").parts)
        if depth:
            lines.append(f"{'  ' * depth}{folder.name}/".ljust(26) + phrase(folder / "__init__.py"))
        shown = [file for file in files if file.name != "__init__.py" and file.stat().st_size]
        lines += [f"{'  ' * (depth + 1)}{file.name}".ljust(26) + phrase(file) for file in shown]
    return "\n".join(lines)


def phrase(file: Path) -> str:
    """Give the first line of a module's docstring, without its full stop."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return text.splitlines()[0].rstrip(".") if text else ""


def readme() -> str:
    """Give the README with a fresh tree."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}```\n{tree()}\n```\n{END}{after}"


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
    made = {"README.md": readme(), "docs/COMMANDS.md": commands()}
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
