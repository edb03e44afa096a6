"""The store opened for one command: a `Muster` to work with, closed when the work is done."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from muster.app import Muster, Patience, open_muster
from muster.cli.terminal.output import CommonOptions, note, warn
from muster.domain.errors import NotFound, StoreFailed
from muster.settings import load_settings

if TYPE_CHECKING:
    from muster.observability.options import LogOptions

T = TypeVar("T")


def with_muster(
    common: CommonOptions,
    work: Callable[[Muster], Awaitable[T]],
    *,
    allow_unpriced: bool = False,
    keyless: bool = False,
    patience: Patience | None = None,
    sweep: bool = True,
    create: bool = False,
    log: "LogOptions | None" = None,
    metrics: bool = False,
    start_secs: float = 0.0,
) -> T:
    """Open the store, end the runs of dead drivers, and do some work with it; only with `create` is one made."""
    settings = load_settings(common.home)
    sweep = sweep and (create or settings.has_store)
    opened: list[Muster] = []

    async def inside() -> T:
        async with open_muster(
            settings=settings,
            allow_unpriced=allow_unpriced,
            keyless=keyless,
            patience=patience,
            on_wait=warn,
            create=create,
            log=log,
            metrics=metrics,
            start_secs=start_secs,
        ) as muster:
            opened.append(muster)
            if muster.reaped:
                agents = ", ".join(sorted({process.agent for process in muster.reaped if process.agent}))
                count = "a process" if len(muster.reaped) == 1 else f"{len(muster.reaped)} processes"
                note(common, f"stopped {count} left behind by a process that died ({agents})")
            if sweep:
                await _sweep(muster)
            return await work(muster)

    with asyncio.Runner() as runner:
        try:
            return runner.run(inside())
        except KeyboardInterrupt:
            for muster in opened:  # told twice: what still waits for another process's lock waits no longer
                muster.store.stop_waiting()
            raise


def require_store(common: CommonOptions) -> None:
    """Refuse a command about the store itself where there is none; it is not made."""
    settings = load_settings(common.home)
    if not settings.has_store:
        raise NotFound(f"no store found at {settings.database}", suggestions=("choose its folder with --home DIR",))


async def _sweep(muster: Muster) -> None:
    """Mark the runs of dead drivers as interrupted; a store that cannot be written to can still be read."""
    shortage = await muster.store.shortage()
    if shortage is not None:
        what = "nothing can be stored or started, and runs whose process died are still shown as running"
        warn(f"{shortage}; it can be read, but {what}")
        return
    try:
        await muster.store.sweep()
    except StoreFailed as error:
        warn(f"runs whose process died are still shown as running: {error.message}")
