"""A connection pooler in transaction mode, as PgBouncer is: one session of the server for all clients in turn."""

import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

TLS_REQUESTS = (80877103, 80877104)  # TLS, GSSAPI
VERSION = 196608  # of the protocol: 3.0
IDLE = b"I"  # the session is in no transaction


class Messages:
    """The messages of one side of a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def read_startup(self) -> int:
        """Return what a client begins with."""
        (length,) = struct.unpack("!i", self._read(4))
        return int(struct.unpack("!i", self._read(length - 4)[:4])[0])

    def read(self) -> tuple[bytes, bytes]:
        """Return the kind of the next message, and the whole message."""
        head = self._read(5)
        return head[:1], head + self._read(struct.unpack("!i", head[1:])[0] - 4)

    def send(self, message: bytes) -> None:
        self._connection.sendall(message)

    def _read(self, size: int) -> bytes:
        parts = b""
        while len(parts) < size:
            if not (part := self._connection.recv(size - len(parts))):
                raise EOFError
            parts += part
        return parts


class TransactionPooler:
    """Listens on a port of this machine, each client in a thread of its own."""

    def __init__(self, server: Path, database: str, user: str) -> None:
        self._session = socket.socket(socket.AF_UNIX)
        self._session.connect(str(server))
        self._server, self._turn = Messages(self._session), threading.Lock()
        words = f"user\0{user}\0database\0{database}\0client_encoding\0UTF8\0\0".encode()
        self._server.send(struct.pack("!ii", len(words) + 8, VERSION) + words)
        self._greeting = b""  # what every client is told: that it may come in, and the parameters of the server
        while (message := self._server.read())[0] != b"Z":
            self._greeting += b"" if message[0] == b"K" else message[1]

    @contextlib.contextmanager
    def listening(self) -> Iterator[int]:
        with self._session, socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
            try:
                yield listener.getsockname()[1]
            finally:
                listener.shutdown(socket.SHUT_RDWR)

    def _accept(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(EOFError, OSError):
            client = Messages(connection)
            while client.read_startup() in TLS_REQUESTS:
                client.send(b"N")
            key = struct.pack("!cii4s", b"K", 12, 1, b"none")
            client.send(self._greeting + key + b"Z" + struct.pack("!i", 5) + IDLE)
            while (message := client.read())[0] != b"X":
                with self._turn:
                    self._pass_transaction(client, message)

    def _pass_transaction(self, client: Messages, message: tuple[bytes, bytes]) -> None:
        """Pass messages of a client on until the session is in no transaction."""
        while True:
            self._server.send(message[1])
            if message[0] in (b"Q", b"S") and self._pass_answers(client) == IDLE:
                return
            message = client.read()

    def _pass_answers(self, client: Messages) -> bytes:
        """Pass the answers of the server on; return in which state its session is after them."""
        while True:
            kind, answer = self._server.read()
            client.send(answer)
            if kind == b"Z":
                return answer[-1:]
