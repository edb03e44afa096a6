"""The newest names in a store, for completion: only the store is opened, and no workload imported."""

import asyncio
from dataclasses import dataclass

from muster.app.base.stores import open_store
from muster.settings import Settings

MAX_NAMES = 50
SECONDS = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredName:
    """A name or an id, and a few words about what it stands for."""

    name: str
    about: str


async def stored_runs(settings: Settings) -> tuple[StoredName, ...]:
    """Return the names and ids of the newest runs."""
    store = await open_store(settings, create=False)
    try:
        runs = await asyncio.wait_for(store.runs.select((), limit=MAX_NAMES), SECONDS)
    finally:
        await store.maintenance.close()
    newest = {run.name: run for run in reversed(runs) if run.name}
    named = [StoredName(name=name, about=f"run {run.id}, {run.state}") for name, run in newest.items()]
    return (*named, *(StoredName(name=run.id, about=f"{run.workload}, {run.state}") for run in runs))


async def stored_batches(settings: Settings) -> tuple[StoredName, ...]:
    """Return the ids of the newest batches."""
    store = await open_store(settings, create=False)
    try:
        batches = await asyncio.wait_for(store.batches.select((), MAX_NAMES), SECONDS)
    finally:
        await store.maintenance.close()
    return tuple(StoredName(name=batch.id, about=f"{batch.requests} calls, {batch.state}") for batch in batches)
