"""`muster verify hook install | allow-secret`: the hook of git, and exceptions for secrets."""

import asyncio
from pathlib import Path
from typing import Annotated

from muster.app.project.files import Project
from muster.app.verify.secrets import Allowed, Installed
from muster.app.views.project import allowed_view, hook_view
from muster.cli.line import Argument, Option
from muster.cli.terminal.output import CommonOptions, answer


def install(
    common: CommonOptions,
    force: Annotated[bool, Option("--force", help="Replace an existing hook; a copy of it is kept.")] = False,
) -> None:
    """Install a git pre-commit hook that verifies the staged files."""
    done = asyncio.run(Project(common.home).install_hook(force=force))
    answer(common, hook_view(done), lambda console: console.print(_told(done), soft_wrap=True))


def _told(done: Installed) -> str:
    kept = f"\nthe previous hook is kept as {done.kept} and no longer runs" if done.kept else ""
    return f"wrote {done.path}: staged files are verified before each commit{kept}"


def allow_secret(
    common: CommonOptions,
    place: Annotated[str, Argument(metavar="FILE:LINE", help="The file and line of the secret.")],
    agents: Annotated[
        Path | None, Option("--agents", metavar="FILE", shown="the verify.yaml in use", help="The file to write to.")
    ] = None,
) -> None:
    """Add an exception to verify.yaml: this line may contain a secret of this kind."""
    done = asyncio.run(Project(common.home).allow_secret(place, agents_file=agents))
    text = _allowed_words(done)
    answer(
        common,
        allowed_view(done),
        lambda console: console.print(text, soft_wrap=True, markup=False, highlight=False),
    )


def _allowed_words(done: Allowed) -> str:
    said = ", ".join(f"{one.kind} at {one.file}:{one.line}" for one in done.secrets)
    return f"wrote to {done.declaration}: {said} is allowed"
