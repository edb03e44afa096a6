"""`muster verify hook install | allow-secret`: the hook of git, and exceptions for secrets."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

from muster.app.verify.secrets import Allowed, Installed, install_hook
from muster.app.verify.secrets import allow_secret as allow
from muster.cli.line import Argument, Option
from muster.cli.terminal.output import OutputOptions, answer
from muster.settings import load_settings


def install(
    manner: OutputOptions,
    force: Annotated[bool, Option("--force", help="Take the place of another hook, which is kept beside it.")] = False,
) -> None:
    """Write a pre-commit hook that verifies what is staged: live, and with nothing staged a commit goes through."""
    home = () if manner.home is None else ("--home", str(manner.home.absolute()))
    words = (sys.executable, "-P", "-m", "muster", "verify", "--staged", "--live", "--allow-empty", *home)
    done = asyncio.run(install_hook(Path.cwd(), words, force=force))
    data = {"hook": str(done.path), "kept": None if done.kept is None else str(done.kept), "command": list(words)}
    answer(manner, data, lambda console: console.print(_told(done), soft_wrap=True))


def _told(done: Installed) -> str:
    kept = f"\nthe hook that was there is kept as {done.kept}, and is not run any more" if done.kept else ""
    return f"wrote {done.path}: what is staged is verified before each commit{kept}"


def allow_secret(
    manner: OutputOptions,
    place: Annotated[str, Argument(metavar="FILE:LINE", help="Where a secret was found, as findings name it.")],
    agents: Annotated[
        Path | None, Option("--agents", metavar="FILE", help="The file to write to; without, the verify.yaml in use.")
    ] = None,
) -> None:
    """Write an exception into verify.yaml: a secret of this kind may stand at this line."""
    done = asyncio.run(allow(load_settings(manner.home), Path.cwd(), place, agents))
    data = {
        "declaration": str(done.declaration),
        "allowed": [{"file": one.file, "line": one.line, "kind": one.kind} for one in done.secrets],
    }
    answer(
        manner, data, lambda console: console.print(_allowed_words(done), soft_wrap=True, markup=False, highlight=False)
    )


def _allowed_words(done: Allowed) -> str:
    said = ", ".join(f"{one.kind} at {one.file}:{one.line}" for one in done.secrets)
    return f"wrote to {done.declaration}: {said} is allowed"
