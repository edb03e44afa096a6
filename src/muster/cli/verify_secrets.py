"""`muster verify allow-secret`: a secret that is found in code and is none, or may stand there."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from muster.cli.frame import command
from muster.cli.line import Argument, Group, Option
from muster.cli.manner import Manner
from muster.cli.speech import answer

if TYPE_CHECKING:
    from muster.app.verify_secrets import Allowed


def register(app: Group) -> None:
    """Add the command."""
    command(app, "allow-secret")(allow_secret)


def allow_secret(
    manner: Manner,
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
    answer(manner, data, lambda console: console.print(_told(done), soft_wrap=True, markup=False, highlight=False))


def _told(done: "Allowed") -> str:
    said = ", ".join(f"{one.kind} at {one.file}:{one.line}" for one in done.secrets)
    return f"wrote to {done.declaration}: {said} is allowed"
