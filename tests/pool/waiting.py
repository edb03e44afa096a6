"""Waiting for what another process does."""

import asyncio
from pathlib import Path


async def until_exists(path: Path) -> None:
    """Wait until another process has made a file."""
    async with asyncio.timeout(60):
        while not path.exists():  # noqa: ASYNC110  # another process writes it
            await asyncio.sleep(0.02)
