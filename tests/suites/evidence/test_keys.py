"""Keys that sign evidence."""

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from muster.domain.errors import BadArgument, BadConfiguration, BadFile, MusterError, NotFound
from muster.suites.evidence.keys import key_id, load_private_key, load_public_key, make_keys, public_pem


def test_a_new_key_belongs_to_its_owner_and_signs(tmp_path: Path) -> None:
    files = make_keys(tmp_path / "deep" / "evidence.key")
    assert stat.S_IMODE(files.private.stat().st_mode) == 0o600
    assert files.private.read_bytes().startswith(b"-----BEGIN PRIVATE KEY-----")
    assert files.public.name == "evidence.key.pub"
    private, public = load_private_key(files.private), load_public_key(files.public)
    public.verify(private.sign(b"words"), b"words")
    assert key_id(public) == key_id(private.public_key()) == files.id


@pytest.mark.parametrize("there", ["evidence.key", "evidence.key.pub"])
def test_nothing_is_overwritten_and_no_half_of_a_pair_is_left(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(BadArgument, match="never overwritten"):
        make_keys(tmp_path / "evidence.key")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {there: "mine"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BadArgument, match="cannot be written"):
        make_keys(tmp_path / "file" / "evidence.key")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620, 0o610])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    files = make_keys(tmp_path / "evidence.key")
    files.private.chmod(mode)
    with pytest.raises(BadConfiguration, match=f"mode {mode:04o}") as caught:
        load_private_key(files.private)
    assert caught.value.exit_code == 3
    assert "chmod 600" in caught.value.suggestions[0]


def _pem(key: object, password: bytes | None = None) -> bytes:
    hidden = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a key",
        b"-----BEGIN PRIVATE KEY-----\nTOPSECRET\n-----END PRIVATE KEY-----\n",
        _pem(ec.generate_private_key(ec.SECP256R1())),
        _pem(Ed25519PrivateKey.generate(), b"password"),
        public_pem(Ed25519PrivateKey.generate().public_key()),
        b"x" * 100_000,
    ],
)
def test_what_is_no_such_key_is_refused_without_a_word_of_it(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "key"
    path.write_bytes(data)
    path.chmod(0o600)
    with pytest.raises(BadFile) as caught:
        load_private_key(path)
    assert "TOPSECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_private_key_is_no_public_key(tmp_path: Path) -> None:
    files = make_keys(tmp_path / "key")
    with pytest.raises(BadFile, match="not an Ed25519 public key"):
        load_public_key(files.private)


@pytest.mark.parametrize(("name", "kind"), [("nowhere", NotFound), (".", MusterError)])
def test_a_key_that_is_not_there_is_named(tmp_path: Path, name: str, kind: type[MusterError]) -> None:
    with pytest.raises(kind, match=str(tmp_path)):
        load_private_key(tmp_path / name)
