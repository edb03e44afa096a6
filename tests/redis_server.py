"""A real Redis on a free port of loopback, with its data in a folder; it can be killed and started again."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 30.0


class RedisServer:
    """One server; `url` stays the same however often it is started."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def socket(self) -> Path:
        return self._folder / "socket"

    def start(self) -> None:
        """Start it and wait until it answers."""
        found = shutil.which("redis-server")
        assert found is not None, "Redis is missing; `make test` installs it (Debian package redis-server)"
        command = [found, "--port", str(self._port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        command += ["--unixsocket", self.socket.name]  # in its folder: the path of a socket must be short
        options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction"]
        self._process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        end = time.monotonic() + PATIENCE
        while not self._answers():
            assert time.monotonic() < end, "Redis does not answer"
            assert self._process.poll() is None, "Redis has ended"
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as kill -9 does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Let it keep its connections and answer nothing more."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def restart(self, *, data: bool) -> None:
        """Kill it and start it again, with its data or without."""
        self.kill()
        if not data:
            for path in self._folder.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.start()

    def set(self, key: str, value: str) -> None:
        """Set a key, as any program may."""
        self.tell(f"SET {key} {value}")

    def clear(self) -> None:
        """Lose all data."""
        self.tell("FLUSHALL")

    def tell(self, command: str) -> None:
        """Give a command that is answered with OK."""
        with socket.create_connection(("127.0.0.1", self._port), PATIENCE) as connection:
            connection.sendall(f"{command}\r\n".encode())
            assert connection.recv(16).startswith(b"+OK")

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


@contextmanager
def running_redis(folder: Path) -> Iterator[RedisServer]:
    """Start a server and end it with the block."""
    folder.mkdir(parents=True, exist_ok=True)
    server = RedisServer(folder)
    try:
        server.start()
        yield server
    finally:
        server.kill()
