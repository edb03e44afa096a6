"""`muster verify hook install | allow-secret`: the hook of git, and exceptions for secrets."""

import asyncio
import sys
from pathlib import Path
from typing import Annotated

from muster.app.verify.secrets import Allowed, Installed, install_hook
from muster.app.verify.secrets import allow_secret as allow
from muster.cli.line import Argument, Option
from muster.cli.terminal.output import CommonOptions, answer
from muster.settings import load_settings


def install(
    common: CommonOptions,
    force: Annotated[bool, Option("--force", help="Replace an existing hook; a copy of it is kept.")] = False,
) -> None:
    """Install a git pre-commit hook that verifies the staged files."""
    home = () if common.home is None else ("--home", str(common.home.absolute()))
    words = (sys.executable, "-P", "-m", "muster", "verify", "--staged", "--live", "--allow-empty", *home)
    done = asyncio.run(install_hook(Path.cwd(), words, force=force))
    data = {"hook": str(done.path), "kept": None if done.kept is None else str(done.kept), "command": list(words)}
    answer(common, data, lambda console: console.print(_told(done), soft_wrap=True))


def _told(done: Installed) -> str:
    kept = f"\nthe hook that was there is kept as {done.kept}, and is not run any more" if done.kept else ""
    return f"wrote {done.path}: what is staged is verified before each commit{kept}"


def allow_secret(
    common: CommonOptions,
    place: Annotated[str, Argument(metavar="FILE:LINE", help="The place of the secret, as FILE:LINE.")],
    agents: Annotated[
        Path | None, Option("--agents", metavar="FILE", help="The file to write to; default: the verify.yaml in use.")
    ] = None,
) -> None:
    """Add an exception to verify.yaml: this line may contain a secret of this kind."""
    done = asyncio.run(allow(load_settings(common.home), Path.cwd(), place, agents))
    data = {
        "declaration": str(done.declaration),
        "allowed": [{"file": one.file, "line": one.line, "kind": one.kind} for one in done.secrets],
    }
    answer(
        common, data, lambda console: console.print(_allowed_words(done), soft_wrap=True, markup=False, highlight=False)
    )


def _allowed_words(done: Allowed) -> str:
    said = ", ".join(f"{one.kind} at {one.file}:{one.line}" for one in done.secrets)
    return f"wrote to {done.declaration}: {said} is allowed"
