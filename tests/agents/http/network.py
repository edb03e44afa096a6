"""A network of loopback servers: certificates of an authority of its own, a TLS server, and a real proxy."""

import asyncio
import contextlib
import ipaddress
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from muster.domain.network import Proxy, ProxyRules

PIECE = 65_536
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Authority:
    """Signs certificates; `file` holds its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        signed = self._certificate(self._name, self._key.public_key()).add_extension(constraints, critical=True)
        self.certificate = signed.add_extension(usage, critical=True).sign(self._key, hashes.SHA256())
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def server(self, *names: str) -> ssl.SSLContext:
        """Return the context of a server with these names."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        found = self._certificate(subject, key.public_key()).add_extension(
            x509.SubjectAlternativeName([_alternative(name) for name in names]), critical=False
        )
        path = self._folder / f"{names[0]}.pem"
        path.write_bytes(
            found.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
            + key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(path)
        return context

    def _certificate(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


@dataclass
class TestProxy:
    """Leads to servers that only it knows by name: by CONNECT, or by passing requests on."""

    __test__ = False

    names: dict[str, int] = field(default_factory=dict)  # "host:port" to the port on loopback
    user: str = ""  # "name:password" that must be told
    refuse: int = 0  # the status that everybody gets
    reply: bytes = b""  # said instead of an answer
    silent: bool = False  # takes requests and says nothing
    most: int | None = None  # bytes of answers that are passed back before a connection dies, once
    port: int = 0
    secure: bool = False
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)  # the line and the headers
    passed: int = 0  # connections that were made to servers
    reached: asyncio.Event = field(default_factory=asyncio.Event)  # somebody has asked
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.secure else 'http'}://127.0.0.1:{self.port}"

    def url_with(self, user: str) -> str:
        return self.url.replace("://", f"://{user}@")

    def rules(self) -> ProxyRules:
        proxy = Proxy(
            place=self.url,
            host="127.0.0.1",
            port=self.port,
            secure=self.secure,
            variable="HTTPS_PROXY",
            authorization=basic(self.user) if self.user else "",
        )
        return ProxyRules(https=proxy, http=proxy)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client."""
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            await self._serve(reader, writer)
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, headers = await self._read(reader)
        if self.silent:
            await reader.read()
            return
        if refusal := self._refusal(headers):
            writer.write(refusal)
            await writer.drain()
            return
        method, target, _ = line.split(" ")
        if method == "CONNECT":
            there, to = await self._connect(target)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(_pass(reader, to), self._pass_back(there, writer))
            return
        host = target.split("/")[2]
        there, to = await self._connect(host if ":" in host else f"{host}:80")
        back = asyncio.create_task(self._pass_back(there, writer))
        try:
            while True:
                await _forward(line, headers, reader, to)
                line, headers = await self._read(reader)
        finally:
            to.close()
            await asyncio.wait({back})

    async def _read(self, reader: asyncio.StreamReader) -> tuple[str, Mapping[str, str]]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
        self.asked.append((head[0], headers))
        self.reached.set()
        return head[0], headers

    def _refusal(self, headers: Mapping[str, str]) -> bytes:
        if self.reply:
            return self.reply
        if self.refuse:
            told = headers.get("proxy-authorization", "")
            return b"HTTP/1.1 %d No\r\ncontent-length: %d\r\n\r\n%b" % (self.refuse, len(told), told.encode())
        if self.user and headers.get("proxy-authorization") != basic(self.user):
            return b"HTTP/1.1 407 Who\r\nproxy-authenticate: Basic realm=x\r\ncontent-length: 0\r\n\r\n"
        return b""

    async def _connect(self, target: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        there = await asyncio.open_connection("127.0.0.1", self.names[target])
        self.writers.append(there[1])
        self.passed += 1
        return there

    async def _pass_back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while self.most != 0 and (data := await reader.read(PIECE)):
                data = data[: self.most]
                if self.most is not None:
                    self.most -= len(data)
                writer.write(data)
                await writer.drain()
        if self.most == 0:
            self.most = None
            writer.transport.abort()
        writer.close()


async def _forward(
    line: str, headers: Mapping[str, str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Pass one request on, as a server wants it: with a path instead of an address, and without what was for us."""
    method, target, version = line.split(" ")
    kept = [f"{name}: {value}" for name, value in headers.items() if not name.startswith("proxy-")]
    path = "/" + "/".join(target.split("/")[3:])
    writer.write("\r\n".join([f"{method} {path} {version}", *kept, "", ""]).encode())
    left = int(headers.get("content-length", "0"))
    while left and (data := await reader.read(min(PIECE, left))):
        left -= len(data)
        writer.write(data)
        await writer.drain()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(PIECE):
        writer.write(data)
        await writer.drain()
    writer.close()


def basic(user: str) -> str:
    return f"Basic {b64encode(user.encode()).decode()}"


@asynccontextmanager
async def running(proxy: TestProxy, context: ssl.SSLContext | None = None) -> AsyncIterator[TestProxy]:
    """Run a proxy; with a context, behind TLS."""
    async with _listening(proxy.serve, context) as port:
        proxy.port, proxy.secure = port, context is not None
        try:
            yield proxy
        finally:
            await _abort(proxy.writers)


@asynccontextmanager
async def tls_front(port: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """Put TLS in front of a server on loopback and give its port."""
    writers: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            there = await asyncio.open_connection("127.0.0.1", port)
            writers.append(there[1])
            await asyncio.gather(_pass(reader, there[1]), _pass(there[0], writer))
        writer.close()

    async with _listening(serve, context) as found:
        yield found
        await _abort(writers)


@asynccontextmanager
async def _listening(serve: Serve, context: ssl.SSLContext | None) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def _abort(writers: list[asyncio.StreamWriter]) -> None:
    for writer in writers:
        writer.transport.abort()
    for _ in range(5):  # turns of the loop in which the sockets are closed
        await asyncio.sleep(0)
