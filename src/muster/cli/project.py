"""`muster init | schema`: what belongs to a project."""

import json
from typing import Annotated

from muster.app.project.files import Project
from muster.app.project.kinds import FIRST_USES, SCHEMA_NAMES, STARTERS
from muster.app.views.project import created_view
from muster.cli.line import Argument, Option
from muster.cli.terminal.output import CommonOptions, answer


def init(
    common: CommonOptions,
    name: Annotated[str, Argument(metavar="NAME", help="The name of the new folder, in kebab-case.")],
    kind: Annotated[
        str, Option("--kind", values=STARTERS, help="What to create; verify means the built-in verification agents.")
    ] = "suite",
) -> None:
    """Create a folder with a small suite, a chain, a council, or the built-in verification agents."""
    done = Project(common.home).create(name, kind)
    data = created_view(done)
    next_steps = (f"muster validate {name}", FIRST_USES[done.kind].format(folder=done.folder))
    lines = [] if common.quiet else [*data.files, "next: " + "   ·   ".join(next_steps)]
    answer(
        common,
        data,
        lambda console: console.print("\n".join(lines), soft_wrap=True, end="\n" * bool(lines)),
    )


def schema(
    common: CommonOptions,
    what: Annotated[
        str,
        Argument(
            metavar="KIND",
            complete="schemas",
            help=f"{', '.join(SCHEMA_NAMES)} (muster.toml), or a workload of the project by its name, for its spec.",
        ),
    ],
) -> None:
    """Print a JSON Schema for editors."""
    found = Project(common.home).schema(what)
    text = json.dumps(found, indent=2, ensure_ascii=False)
    answer(common, dict(found), lambda console: console.print(text, soft_wrap=True))
