"""`muster store info | vacuum | copy`: the store itself."""

import asyncio
import os
import signal
from collections.abc import Coroutine, Mapping
from typing import Annotated, Any

from rich.console import Console
from rich.table import Table

from muster.app import Muster
from muster.app.base.stores import StoreCopy, copy_store
from muster.app.views.service import store_copy_view
from muster.cli.line import Argument
from muster.cli.session import require_store, with_muster
from muster.cli.terminal.output import CommonOptions, answer, note
from muster.domain.canonical import Json
from muster.domain.errors import Interrupted, StoreFailed
from muster.text.words import count


def info(common: CommonOptions) -> None:
    """Show the path and size of the store, and check it for damage."""

    async def work(muster: Muster) -> Mapping[str, Json]:
        return await muster.store.info()

    require_store(common)
    found = with_muster(common, work, sweep=False)
    if found["check"] != "ok":
        remedy = "restore it from a backup, or move it away to start with an empty store"
        raise StoreFailed(f"the store {found['path']} is damaged: {found['check']}", suggestions=(remedy,))

    def tell(console: Console) -> None:
        table = Table.grid(padding=(0, 2))
        for name, value in found.items():
            table.add_row(name.replace("_", " "), f"{value:,}" if name.endswith("bytes") else str(value))
        console.print(table)

    answer(common, dict(found), tell)


def vacuum(common: CommonOptions) -> None:
    """Release unused space of the store file; refused while runs are in progress."""

    async def shrink(muster: Muster) -> int:
        before = await muster.store.info()
        await muster.store.vacuum()
        return _size(before)

    async def measure(muster: Muster) -> int:
        return _size(await muster.store.info())

    require_store(common)
    before = with_muster(common, shrink, sweep=False)
    after = with_muster(common, measure, sweep=False)  # opened anew: closing moves what waits into the file
    data = {"bytes_before": before, "bytes_after": after}
    answer(common, data, lambda console: console.print(f"{before:,} bytes before, {after:,} bytes now"))


SourceArgument = Annotated[
    str, Argument(metavar="SOURCE", help="The folder of a store, its file, or postgresql://USER@HOST:PORT/DATABASE.")
]
TargetArgument = Annotated[str, Argument(metavar="TARGET", help="The same; the store must be empty or not exist yet.")]


def copy(common: CommonOptions, source: SourceArgument, target: TargetArgument) -> None:
    """Copy a whole store into an empty one, and verify the copy by counts and digests.

    From a file to PostgreSQL or back. Stop servers and workers first: it is refused while runs are in progress. Set
    PGPASSWORD for the password of the database, so that it does not stand in the list of processes.

    Example: muster store copy .muster postgresql://muster@db.example.org/muster
    """

    def told(table: str, done: int, total: int) -> None:
        if done >= total or done % 10_000 == 0:
            note(common, f"{table}: {done:,} of {total:,} rows")

    try:
        copied = asyncio.run(_until_signaled(common, copy_store(source, target, on_progress=told)))
    except (asyncio.CancelledError, KeyboardInterrupt):  # the latter before it has begun
        raise Interrupted("interrupted; nothing was copied") from None

    def tell(console: Console) -> None:
        for table in copied.tables:
            if table.rows:
                console.print(f"{table.table:<16} {table.rows:>12,}  sha256 {table.digest[:16]}")
        rows = count(copied.rows, "row")
        console.print(f"copied {rows} from {copied.source} to {copied.target}; counts and digests agree")

    answer(common, store_copy_view(copied), tell)


async def _until_signaled(common: CommonOptions, work: Coroutine[Any, Any, StoreCopy]) -> StoreCopy:
    """Cancel a copy at a signal, and let it say what came of it; the third signal ends a process that is stuck."""
    copying, received = asyncio.ensure_future(work), 0

    def receive() -> None:
        nonlocal received
        received += 1
        copying.cancel()
        if received > 2:
            os.write(2, b"killed; see with muster store info whether the copy is complete\n")
            os._exit(4)
        note(common, "stopping the copy" if received == 1 else "the copy still waits; the next signal kills it")

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as of nohup: it is not to be stopped
            asyncio.get_running_loop().add_signal_handler(number, receive)
    return await copying


def _size(info: Mapping[str, Any]) -> int:
    return int(info["bytes"]) + int(info.get("wal_bytes", 0))
