"""`muster verify hook install`: git asks for a verification before every commit."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, group
from muster.cli.line import Option
from muster.cli.manner import Manner
from muster.cli.speech import answer

if TYPE_CHECKING:
    from muster.app.verify_secrets import Installed

app = group("The hook with which git verifies what is about to be committed.")


@command(app, "install")
def install(
    manner: Manner,
    force: Annotated[bool, Option("--force", help="Take the place of another hook, which is kept beside it.")] = False,
) -> None:
    """Write a pre-commit hook that verifies what is staged: live, and with nothing staged a commit goes through."""
    import asyncio

    from muster.app.verify_secrets import install_hook

    home = () if manner.home is None else ("--home", str(manner.home.absolute()))
    words = (sys.executable, "-P", "-m", "muster", "verify", "--staged", "--live", "--allow-empty", *home)
    done = asyncio.run(install_hook(Path.cwd(), words, force=force))
    data = {"hook": str(done.path), "kept": None if done.kept is None else str(done.kept), "command": list(words)}
    answer(manner, data, lambda console: console.print(_told(done), soft_wrap=True))


def _told(done: "Installed") -> str:
    kept = f"\nthe hook that was there is kept as {done.kept}, and is not run any more" if done.kept else ""
    return f"wrote {done.path}: what is staged is verified before each commit{kept}"
