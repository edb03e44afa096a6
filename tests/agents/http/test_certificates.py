"""SSL_CERT_FILE and SSL_CERT_DIR: trusted as OpenSSL does, and an error with their name when they hold nothing."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from muster.agents.http.client import HttpClient, require_way
from muster.agents.http.tls import make_context
from muster.domain.agent import Timeouts
from muster.domain.errors import BadConfiguration, Paid, Untrusted
from muster.domain.network import Network
from tests.agents.conftest import Host

from .network import Authority

SOON = Timeouts(connect=20.0, idle=20.0, call=20.0)
URL = "https://api.model.test"
GARBAGE = "-----BEGIN CERTIFICATE-----\nthis is none\n-----END CERTIFICATE-----\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def guarded(authority: Authority) -> AsyncIterator[Host]:
    host = Host()
    server = await asyncio.start_server(host.serve, "127.0.0.1", 0, ssl=authority.server("localhost"))
    host.port = server.sockets[0].getsockname()[1]
    host.play(host.answer(b"hello"))
    yield host
    server.close()
    await host.close()


async def ask(host: Host, network: Network) -> bytes:
    client = HttpClient(network=network)
    try:
        return (await client.post(f"https://localhost:{host.port}", {}, b"", SOON)).body
    finally:
        await client.close()


def hashed(folder: Path, certificate: Path, name: str = "authority") -> str:
    """Put a certificate into a folder under the name by which OpenSSL finds it: a digest of its canonical subject."""
    value = b"\x06\x03\x55\x04\x03" + bytes([0x0C, len(name)]) + name.encode()
    sequence = bytes([0x30, len(value)]) + value
    digest = hashlib.sha1(bytes([0x31, len(sequence)]) + sequence, usedforsecurity=False).digest()
    folder.mkdir()
    (folder / f"{int.from_bytes(digest[:4], 'little'):08x}.0").write_bytes(certificate.read_bytes())
    return str(folder)


async def test_what_the_file_holds_is_trusted(guarded: Host, authority: Authority) -> None:
    assert await ask(guarded, Network(certificate_file=str(authority.file))) == b"hello"


async def test_what_the_folder_holds_is_trusted(guarded: Host, authority: Authority, tmp_path: Path) -> None:
    folder = hashed(tmp_path / "trusted", authority.file)
    assert await ask(guarded, Network(certificate_dir=folder)) == b"hello"
    several = os.pathsep.join([str(tmp_path / "missing"), folder])
    assert await ask(guarded, Network(certificate_dir=several)) == b"hello"


async def test_what_neither_holds_is_not_trusted(guarded: Host, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    for network in (Network(), Network(certificate_file=str(other.file))):
        with pytest.raises(Untrusted, match="the certificate is not valid"):
            await ask(guarded, network)
    assert guarded.seen == []


def test_the_certificates_of_the_system_are_used_when_nothing_is_named() -> None:
    assert make_context(Network()).verify_mode.name == "CERT_REQUIRED"
    assert make_context(Network()).check_hostname


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.pem", None, "which cannot be read: No such file or directory"),
        (".", None, "which cannot be read: Is a directory"),
        ("empty.pem", "", "which holds no certificate"),
        ("text.pem", "hello\n", "which holds no certificate"),
        ("key.pem", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n", "which holds no certificate"),
    ],
)
def test_a_file_without_certificates_is_an_error_that_names_the_variable(
    tmp_path: Path, name: str, text: str | None, words: str
) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(BadConfiguration) as caught:
        require_way(URL, Network(certificate_file=str(path)))
    assert caught.value.message == f"SSL_CERT_FILE is {path}, {words}"


def test_a_folder_without_certificates_is_an_error_that_names_the_variable(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "authority").mkdir()
    Authority(tmp_path / "authority")
    for name, words in [
        ("missing", "which cannot be read: No such file or directory"),
        ("empty", "which holds no certificate under the name by which OpenSSL finds it"),
        ("authority", "which holds no certificate under the name by which OpenSSL finds it"),
    ]:
        with pytest.raises(BadConfiguration, match=f"SSL_CERT_DIR is {tmp_path / name}, {words}"):
            require_way(URL, Network(certificate_dir=str(tmp_path / name)))


def test_certificates_are_asked_for_only_where_there_is_tls(tmp_path: Path) -> None:
    require_way("http://127.0.0.1:1/v1", Network(certificate_file=str(tmp_path / "missing")))
    require_way("this is no address", Network(certificate_file=str(tmp_path / "missing")))


async def test_a_file_that_only_looks_like_certificates_is_sent_nothing(guarded: Host, tmp_path: Path) -> None:
    path = tmp_path / "garbage.pem"
    path.write_text(GARBAGE)
    with pytest.raises(Untrusted, match=f"SSL_CERT_FILE is {path}, which holds no certificates") as caught:
        await ask(guarded, Network(certificate_file=str(path)))
    assert (caught.value.paid, guarded.seen) == (Paid.NO, [])
