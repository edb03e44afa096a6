"""`muster verify hook install | allow-secret`: the hook of git, and exceptions for secrets."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command, group
from muster.cli.line import Argument, Group, Option
from muster.cli.terminal.output import OutputOptions, answer

if TYPE_CHECKING:
    from muster.app.verify_secrets import Allowed, Installed


app = group("The hook with which git verifies what is about to be committed.")


@command(app, "install")
def install(
    manner: OutputOptions,
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


def register(app: Group) -> None:
    """Add the command."""
    command(app, "allow-secret")(allow_secret)


def allow_secret(
    manner: OutputOptions,
    place: Annotated[str, Argument(metavar="FILE:LINE", help="Where a secret was found, as findings name it.")],
    agents: Annotated[
        Path | None, Option("--agents", metavar="FILE", help="The file to write to; without, the verify.yaml in use.")
    ] = None,
) -> None:
    """Write an exception into verify.yaml: a secret of this kind may stand at this line."""
    import asyncio

    from muster.app.verify_secrets import allow_secret
    from muster.settings import load_settings

    done = asyncio.run(allow_secret(load_settings(manner.home), Path.cwd(), place, agents))
    data = {
        "declaration": str(done.declaration),
        "allowed": [{"file": one.file, "line": one.line, "kind": one.kind} for one in done.secrets],
    }
    answer(
        manner, data, lambda console: console.print(_allowed_words(done), soft_wrap=True, markup=False, highlight=False)
    )


def _allowed_words(done: "Allowed") -> str:
    said = ", ".join(f"{one.kind} at {one.file}:{one.line}" for one in done.secrets)
    return f"wrote to {done.declaration}: {said} is allowed"
