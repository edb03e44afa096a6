"""Opening a store while other work goes on."""

import asyncio
from pathlib import Path

import pytest

from muster.app import open_muster
from muster.domain.errors import StoreFailed
from muster.settings import load_settings


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
