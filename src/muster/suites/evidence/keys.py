"""Keys that sign evidence: Ed25519, in PEM files. A private one is its owner's alone from its first moment."""

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

from muster.domain.errors import BadArgument, BadConfiguration, BadFile, NotFound
from muster.suites.evidence.layout import MAX_KEY

PRIVATE = stat.S_IRUSR | stat.S_IWUSR
PUBLIC = PRIVATE | stat.S_IRGRP | stat.S_IROTH


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFiles:
    """A pair of keys that was made."""

    private: Path
    public: Path
    id: str


def make_keys(path: Path) -> KeyFiles:
    """Make a pair of keys: the private one at the path, the public one beside it. Nothing is ever overwritten."""
    public = path.with_name(path.name + ".pub")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_new(public, public_pem(key.public_key()), PUBLIC)
    try:
        _write_new(path, secret, PRIVATE)
    except BaseException:
        public.unlink(missing_ok=True)
        raise
    return KeyFiles(private=path, public=public, id=key_id(key.public_key()))


def _write_new(path: Path, data: bytes, mode: int) -> None:
    _make_folder(path.parent)
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    except FileExistsError:
        raise BadArgument(
            f"{path} exists, and a key is never overwritten", suggestions=("choose another file",)
        ) from None
    except OSError as error:
        raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
    except BaseException as error:
        with suppress(OSError):
            path.unlink()
        if isinstance(error, OSError):
            raise BadArgument(f"{path} cannot be written: {error.strerror}") from error
        raise


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadArgument(f"{folder} cannot be written: {error.strerror}") from error


def load_private_key(path: Path) -> Ed25519PrivateKey:
    """Read a private key that is readable only by its owner."""
    data = _read(path, private=True)
    try:
        key = load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):  # their words may quote the file
        raise BadFile(str(path), "is not an Ed25519 private key without a password, in PEM") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadFile(str(path), "is a private key, but not an Ed25519 key")
    return key


def load_public_key(path: Path) -> Ed25519PublicKey:
    """Read a public key."""
    try:
        return parse_public_key(_read(path, private=False))
    except ValueError as error:
        raise BadFile(str(path), str(error)) from None


def parse_public_key(data: bytes) -> Ed25519PublicKey:
    """Read a public key from PEM; raises ValueError."""
    try:
        key = load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("is not an Ed25519 public key in PEM") from None
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("is a public key, but not an Ed25519 key")
    return key


def public_pem(key: Ed25519PublicKey) -> bytes:
    """Spell a public key."""
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def key_id(key: Ed25519PublicKey) -> str:
    """Name a public key."""
    return str(SSlibKey.from_crypto(key).keyid)


def _read(path: Path, *, private: bool) -> bytes:
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise BadFile(str(path), "is not a file")
            if private and found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise BadConfiguration(
                    f"the key {path} is readable by other users (mode {stat.S_IMODE(found.st_mode):04o})",
                    suggestions=(f"chmod 600 {path}, and if others may have read it: muster evidence keygen -o FILE",),
                )
            data = file.read(MAX_KEY + 1)
    except FileNotFoundError:
        raise NotFound(f"no such key: {path}", suggestions=("muster evidence keygen",)) from None
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from error
    if len(data) > MAX_KEY:
        raise BadFile(str(path), "is too long for a key")
    return data
