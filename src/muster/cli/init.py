"""`muster init`: a folder with something small to begin with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from muster.cli.frame import command
from muster.cli.manner import Manner
from muster.cli.speech import answer

KINDS = ("suite",)


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "init")(init)


def init(
    manner: Manner,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the folder and of what is tested: kebab-case.")],
    kind: Annotated[str, typer.Option("--kind", metavar="KIND", help="What to make: suite.")] = "suite",
) -> None:
    """Make a folder with a small suite to begin with."""
    from muster.domain.errors import BadArgument
    from muster.formats.starter import starter
    from muster.formats.values import is_kebab

    if kind not in KINDS:
        raise BadArgument(f"there is no kind {kind!r} to begin with", suggestions=(f"--kind {KINDS[0]}",))
    if not is_kebab(name):
        raise BadArgument(f"{name!r} is no kebab-case: small letters and digits, with single hyphens between")
    files = _write(Path(name), starter(name))
    next_steps = (f"muster validate {name}", f"muster run {name} --agent sim/echo")
    answer(
        manner,
        {"folder": name, "kind": kind, "files": files},
        lambda console: console.print("\n".join([*files, "next: " + "   ·   ".join(next_steps)])),
    )


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
