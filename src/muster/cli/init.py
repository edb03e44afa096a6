"""`muster init`: a folder with something small to begin with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from muster.cli.frame import command
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer


def register(app: Group) -> None:
    """Add the command."""
    command(app, "init")(init)


def init(
    manner: Manner,
    name: Annotated[str, Argument(metavar="NAME", help="Of the folder, and of what is tested: kebab-case.")],
    kind: Annotated[str, Option("--kind", metavar="KIND", help="What to make: suite or verify.")] = "suite",
) -> None:
    """Make a folder with something to begin with: a small suite, or the verification agents that are shipped."""
    from muster.app.validation import starter

    files = _write(Path(name), starter(kind, name))
    next_steps = (f"muster validate {name}", _first_use(kind, name))
    answer(
        manner,
        {"folder": name, "kind": kind, "files": files},
        lambda console: console.print("\n".join([*files, "next: " + "   ·   ".join(next_steps)])),
    )


def _first_use(kind: str, name: str) -> str:
    if kind == "verify":
        return f"muster verify --agents {name}/verify.yaml --changed"
    return f"muster run {name} --agent sim/echo"


def _write(folder: Path, files: Mapping[str, str]) -> list[str]:
    from muster.domain.errors import BadArgument

    try:
        folder.mkdir()
        for name, text in files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
    except FileExistsError:
        remedy = "choose another name"
        raise BadArgument(f"there is a {folder} already; nothing was written", suggestions=(remedy,)) from None
    except OSError as error:
        raise BadArgument(f"{folder} cannot be written: {error.strerror}") from error
    return [(folder / name).as_posix() for name in files]
