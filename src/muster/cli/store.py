"""`muster store info | vacuum`: the store itself."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from muster.app import Muster
from muster.cli.session import require_store, with_muster
from muster.cli.terminal.output import CommonOptions, answer
from muster.domain.errors import StoreFailed


def info(common: CommonOptions) -> None:
    """Show the path and size of the store, and check it for damage."""

    async def work(muster: Muster) -> Mapping[str, Any]:
        return await muster.store.info()

    require_store(common)
    found = with_muster(common, work, sweep=False)
    if found["check"] != "ok":
        remedy = "restore it from a copy, or move it away to start anew"
        raise StoreFailed(f"the store {found['path']} is damaged: {found['check']}", suggestions=(remedy,))

    def tell(console: Console) -> None:
        table = Table.grid(padding=(0, 2))
        for name, value in found.items():
            table.add_row(name.replace("_", " "), f"{value:,}" if name.endswith("bytes") else str(value))
        console.print(table)

    answer(common, dict(found), tell)


def vacuum(common: CommonOptions) -> None:
    """Return free space to the disk; refused while runs are in progress."""

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


def _size(info: Mapping[str, Any]) -> int:
    return int(info["bytes"]) + int(info.get("wal_bytes", 0))
