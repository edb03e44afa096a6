"""The TLS context: which certificates are trusted, and what is wrong with those that the environment names.

The variables mean what they mean to OpenSSL: SSL_CERT_FILE stands for the file of the system, SSL_CERT_DIR for its
folder, and one that is not set leaves the other as it is. OpenSSL ignores a path where nothing is, and then every
handshake fails; here it is an error that names the variable.
"""

import os
import re
import ssl
from dataclasses import dataclass
from pathlib import Path

from muster.domain.errors import BadConfiguration
from muster.domain.network import CERTIFICATE_DIR, CERTIFICATE_FILE, Network

_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")  # how OpenSSL finds a certificate in a folder
_BEGINNINGS = (b"-----BEGIN CERTIFICATE-----", b"-----BEGIN TRUSTED CERTIFICATE-----", b"-----BEGIN X509 CERTIFICATE")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustStore:
    """Where the trusted certificates are; None where there is nothing."""

    file: str | None
    folders: str | None  # separated by colons


def trust_store(network: Network) -> TrustStore:
    """Return where the trusted certificates are, or raise BadConfiguration when a variable names a place without any.

    Files are only glanced at: this is done before anybody is asked, and reading them takes a while.
    """
    system = ssl.get_default_verify_paths()
    if network.certificate_file:
        _require_file(network.certificate_file)
    if network.certificate_dir:
        _require_folders(network.certificate_dir)
    found = TrustStore(
        file=network.certificate_file or _if_there(system.openssl_cafile),
        folders=network.certificate_dir or _if_there(system.openssl_capath),
    )
    if found.file is None and found.folders is None:
        raise _bad("this machine has no trusted certificates where OpenSSL looks for them")
    return found


def make_context(network: Network) -> ssl.SSLContext:
    """Return a context that verifies every certificate, or raise BadConfiguration."""
    store = trust_store(network)
    try:
        context = ssl.create_default_context(cafile=store.file, capath=store.folders)
    except (OSError, ValueError) as error:
        shown = CERTIFICATE_FILE if network.certificate_file else "the file of the system"
        raise _bad(f"{shown} is {store.file}, which holds no certificates that can be read") from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def _require_file(path: str) -> None:
    try:
        with Path(path).open("rb") as file:
            found = any(line.startswith(_BEGINNINGS) for line in file)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise _bad(f"{CERTIFICATE_FILE} is {path}, which cannot be read: {why}") from error
    if not found:
        raise _bad(f"{CERTIFICATE_FILE} is {path}, which holds no certificate")


def _require_folders(paths: str) -> None:
    """Require that one of several folders holds a certificate; distributions name folders that may be missing."""
    trouble = "which names no folder"
    for path in filter(None, paths.split(os.pathsep)):
        try:
            names = [entry.name for entry in Path(path).iterdir()]
        except (OSError, ValueError) as error:
            trouble = f"which cannot be read: {getattr(error, 'strerror', None) or error}"
            continue
        if any(_HASHED.fullmatch(name) for name in names):
            return
        trouble = "which holds no certificate under the name by which OpenSSL finds it (run: openssl rehash DIR)"
    raise _bad(f"{CERTIFICATE_DIR} is {paths}, {trouble}")


def _if_there(path: str) -> str | None:
    return path if path and Path(path).exists() else None


def _bad(message: str) -> BadConfiguration:
    remedy = f"name a file with certificates: {CERTIFICATE_FILE}=/path/to/ca.pem"
    return BadConfiguration(message, suggestions=(remedy,))
