"""`muster completion`: the script for the shell, and what it offers from the project: runs, batches, agents.

What is offered is read quickly and within limits; whatever fails offers nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated

import click
from click.shell_completion import CompletionItem, get_completion_class

from muster.app.project.kinds import SCHEMA_NAMES
from muster.app.project.names import StoredName, stored_batches, stored_runs
from muster.cli.line import Argument
from muster.cli.terminal.output import CommonOptions, answer
from muster.domain.errors import BadArgument, MusterError
from muster.settings import Settings, load_settings
from muster.text.words import choice_error

LAST = "last"
SCRIPTED = "sim/echo"
SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_MUSTER_COMPLETE"  # by which click knows that the shell asks


def completion(
    common: CommonOptions, shell: Annotated[str, Argument(metavar="SHELL", values=SHELLS, help="The shell.")]
) -> None:
    """Print the completion script for bash, zsh or fish.

    bash: eval "$(muster completion bash)" in ~/.bashrc

    zsh: eval "$(muster completion zsh)" in ~/.zshrc, after compinit

    fish: muster completion fish > ~/.config/fish/completions/muster.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise BadArgument(choice_error(SHELLS, shell), argument="shell")
    root = click.get_current_context().find_root()
    script = found(root.command, {}, "muster", VARIABLE).source()
    if shell == "fish":  # click splits at every comma, and cuts descriptions that have one
        script = script.replace('string split "," $completion', 'string split --max 1 "," $completion')
    answer(common, {"shell": shell, "script": script}, lambda console: console.out(script, highlight=False))


def run_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the names and ids of the newest runs."""
    return _offered(_stored(ctx, stored_runs), incomplete)


def batch_ids(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the ids of the newest batches."""
    return _offered(_stored(ctx, stored_batches), incomplete)


def run_names_or_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer runs, and else what the shell knows of files."""
    return run_names(ctx, param, incomplete) or [CompletionItem(incomplete, type="file")]


def agent_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the agents of the project."""
    try:
        declared = _settings(ctx).agents
    except (MusterError, OSError):
        declared = {}
    names = [StoredName(name=name, about="in muster.toml") for name in declared]
    return _offered([*names, StoredName(name=SCRIPTED, about="answers with the question")], incomplete)


def schemas(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Offer the kinds of files that have a schema; modules of the project are not imported for their workloads."""
    return [CompletionItem(kind) for kind in SCHEMA_NAMES if kind.startswith(incomplete)]


def _stored(ctx: click.Context, read: Callable[[Settings], Awaitable[Iterable[StoredName]]]) -> Iterator[StoredName]:
    async def inside(settings: Settings) -> Iterable[StoredName]:
        return await read(settings)

    try:
        settings = _settings(ctx)
        found = asyncio.run(inside(settings)) if settings.has_store else ()
    except (MusterError, OSError, TimeoutError):
        return
    yield from found
    if found:
        yield StoredName(name=LAST, about="the newest")


def _settings(ctx: click.Context) -> Settings:
    """Return the settings of the project, at the --home that stands furthest to the right."""
    place: click.Context | None = ctx
    while place is not None:
        home = place.params.get("home")
        if isinstance(home, Path):
            return load_settings(home)
        place = place.parent
    return load_settings(None)


def _offered(names: Iterable[StoredName], incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(one.name, help=one.about) for one in names if one.name.startswith(incomplete)]
