"""Where the server of a store listens, for commands on the same machine that want to use it."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FILE = "server.json"  # in the home of the store


class ServerAddress:
    """The address of the server of a store: a file that the server holds locked, so that a dead one has none."""

    def __init__(self, home: Path) -> None:
        self._path = home / FILE

    @contextmanager
    def announce(self, url: str) -> Iterator[None]:
        """Make the address known until the block ends; a second server of the store is not announced."""
        try:
            file = self._path.open("a+", encoding="utf-8")
        except OSError:  # a home that cannot be written to is served all the same
            yield
            return
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                yield
                return
            file.truncate(0)
            file.write(json.dumps({"url": url}))
            file.flush()
            try:
                yield
            finally:
                file.truncate(0)

    def find(self) -> str | None:
        """Return the address of the server that runs on this store; None without one."""
        try:
            with self._path.open(encoding="utf-8") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    with suppress(ValueError, KeyError):
                        return str(json.load(file)["url"])
        except OSError:
            pass
        return None
