"""Opening a store while other work goes on; what is left of a copy that failed; why nothing can be written."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from muster.app import Muster, open_muster
from muster.app.base.stores import copy_store
from muster.domain.errors import StoreFailed
from muster.settings import load_settings
from tests.gated_proxy import GatedProxy


async def test_a_database_is_opened_while_other_work_goes_on(tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        url = f"postgresql://muster@127.0.0.1:{port}/muster?connect_timeout=2"
        settings = load_settings(folder=tmp_path, environment={"MUSTER_DATABASE_URL": url})
        with pytest.raises(StoreFailed):
            async with open_muster(settings=settings):
                pass
        assert asked.is_set()  # by this loop, while the other side of the connection waited for its answer


@pytest.mark.parametrize(
    ("there", "target"),
    [
        ((), "copy/deeper/.muster"),
        (("copy",), "copy"),
        (("copy", "copy/notes.txt"), "copy/.muster"),
        (("copy", "copy/.muster", "copy/.muster/.gitignore"), "copy/.muster"),
        (("copy", "copy/.muster"), "copy/.muster/other.db"),
    ],
)
async def test_of_a_copy_that_fails_nothing_is_left_but_what_was_there(
    tmp_path: Path, there: tuple[str, ...], target: str
) -> None:
    async with open_muster(settings=load_settings(folder=tmp_path, environment={})) as muster:
        await muster.ask("sim/echo", "hello")
    for name in there:
        path = tmp_path / name
        path.touch() if path.name in ("notes.txt", ".gitignore") else path.mkdir()
    before = sorted(tmp_path.rglob("*"))

    def fail(table: str, done: int, total: int) -> None:
        assert (tmp_path / target).exists()
        raise StoreFailed("the disk is full")

    with pytest.raises(StoreFailed, match="the disk is full"):
        await copy_store(tmp_path / ".muster", tmp_path / target, on_progress=fail)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("end", [GatedProxy.freeze, GatedProxy.cut])
async def test_a_database_server_that_is_gone_is_told_from_a_lock(
    tmp_path: Path, database_url: str, end: Callable[[GatedProxy], None]
) -> None:
    place = conninfo_to_dict(database_url)
    proxy = GatedProxy(Path(str(place["host"])) / ".s.PGSQL.5432")
    with proxy.listening() as port:
        url = f"postgresql://muster@127.0.0.1:{port}/{place['dbname']}?sslmode=disable&gssencmode=disable"
        settings = load_settings(folder=tmp_path, environment={"MUSTER_DATABASE_URL": url})
        async with open_muster(settings=settings) as muster:
            await muster.store.require_writable()
            with psycopg.connect(database_url) as other:
                other.execute("LOCK TABLE traits")
                with pytest.raises(StoreFailed, match="a write waits for another process"):
                    await until_refused(muster)
            end(proxy)
            with pytest.raises(StoreFailed, match="the database server does not answer"):
                await until_refused(muster)
            proxy.open()


async def until_refused(muster: Muster) -> None:
    """Ask whether the store can be written to until it cannot; what it knows may be a second old."""
    while True:
        await muster.store.require_writable(0.3)
