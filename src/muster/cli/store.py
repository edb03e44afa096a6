"""`muster store info | vacuum`: the store itself."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from muster.app import Muster
from muster.cli.session import with_muster
from muster.cli.terminal.output import OutputOptions, answer
from muster.domain.errors import StoreFailed

if TYPE_CHECKING:
    from rich.console import Console


def info(manner: OutputOptions) -> None:
    """Say where the store is, how large, and whether it is sound."""

    async def work(muster: Muster) -> Mapping[str, Any]:
        return await muster.store.info()

    found = with_muster(manner, work, sweep=False)
    if found["check"] != "ok":
        remedy = "restore it from a copy, or move it away to start anew"
        raise StoreFailed(f"the store {found['path']} is damaged: {found['check']}", suggestions=(remedy,))

    def tell(console: "Console") -> None:
        from rich.table import Table

        table = Table.grid(padding=(0, 2))
        for name, value in found.items():
            table.add_row(name.replace("_", " "), f"{value:,}" if name.endswith("bytes") else str(value))
        console.print(table)

    answer(manner, dict(found), tell)


def vacuum(manner: OutputOptions) -> None:
    """Give free space back to the disk; refused while runs are driven."""

    async def shrink(muster: Muster) -> int:
        before = await muster.store.info()
        await muster.store.vacuum()
        return _size(before)

    async def measure(muster: Muster) -> int:
        return _size(await muster.store.info())

    before = with_muster(manner, shrink, sweep=False, create=True)
    after = with_muster(manner, measure, sweep=False)  # opened anew: closing moves what waits into the file
    data = {"bytes_before": before, "bytes_after": after}
    answer(manner, data, lambda console: console.print(f"{before:,} bytes before, {after:,} bytes now"))


def _size(info: Mapping[str, Any]) -> int:
    return int(info["bytes"]) + int(info["wal_bytes"])
