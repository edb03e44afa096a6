"""Messages for a process at work: written to its input as they come, off the inbox when it says that it has them."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Self

from muster.agents.base import Inbox, InboxMessage
from muster.agents.processes.process import Process


class MessageFeed:
    """Feeds the input of one process from an inbox: from its start until it is stopped, or left."""

    def __init__(self, process: Process, inbox: Inbox, encode: Callable[[InboxMessage], bytes]) -> None:
        self._process, self._inbox, self._encode = process, inbox, encode
        self._unread: dict[str, InboxMessage] = {}  # written, and not known to be taken in
        self._feeding: asyncio.Task[None] | None = None

    @property
    def unread(self) -> bool:
        """Return whether something was written that the process has not taken in."""
        return bool(self._unread)

    def start(self) -> None:
        """Begin to write messages; a second time does nothing."""
        if self._feeding is None:
            self._feeding = asyncio.get_running_loop().create_task(self._feed())

    def stop(self) -> None:
        """Write nothing more: what comes from now on stays in the inbox."""
        if self._feeding is not None:
            self._feeding.cancel()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop()
        if self._feeding is not None:
            await asyncio.wait({self._feeding})  # an inbox that failed takes nothing from an answer that is there
            if not self._feeding.cancelled():
                self._feeding.exception()

    async def acknowledge(self, ids: Iterable[str]) -> None:
        """Take messages off the inbox that the process has taken in; ids of anything else are ignored."""
        for id_ in ids:
            message = self._unread.pop(id_, None)
            if message is not None:
                await self._inbox.taken(message)

    async def _feed(self) -> None:
        while True:
            message = await self._inbox.next()
            self._unread[message.id] = message
            self._process.write(self._encode(message))
