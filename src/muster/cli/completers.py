"""What completion offers from the project: runs, batches, agents. Quick, bounded, and silent when something fails."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from muster.app.names import StoredName, stored_batches, stored_runs
from muster.domain.errors import MusterError
from muster.settings import Settings, load_settings

LAST = "last"
SCRIPTED = "sim/echo"


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
