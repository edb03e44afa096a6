"""Any changed byte of an archive is found, and the first thing that is wrong is named."""

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from muster.domain.canonical import canonical
from muster.domain.errors import NotFound
from muster.suites.evidence.archive import BLOCK, TarWriter, scan
from muster.suites.evidence.keys import public_pem
from muster.suites.evidence.layout import CASES, PUBLIC_KEY, STATEMENT, VERDICTS
from muster.suites.evidence.verification import ArchiveVerification, sign, verify, verify_file
from tests.suites.evidence.scene import KEY

OTHER = Ed25519PrivateKey.generate()


def checked(data: bytes, key: Ed25519PrivateKey | None = None) -> ArchiveVerification:
    return verify_file(io.BytesIO(data), None if key is None else key.public_key())


def contents(archive: Path) -> dict[str, bytes]:
    data = archive.read_bytes()
    members = scan(io.BytesIO(data), {}).members
    return {member.name: data[member.start :][: member.size] for member in members}


def packed(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    writer = TarWriter(file)
    for name, data in files.items():
        writer.put(name, data)
    writer.close()
    return file.getvalue()


def signed_anew(files: dict[str, bytes], key: Ed25519PrivateKey) -> bytes:
    """Pack files with a statement that fits them, as somebody else could."""
    rest = {name: data for name, data in files.items() if name != STATEMENT}
    members = scan(io.BytesIO(packed(rest)), {}).members
    return packed({**rest, STATEMENT: sign(members, {}, key)})


def test_an_archive_as_it_was_written_is_valid(archive: Path) -> None:
    found = verify(archive)
    assert (found.valid, found.trusted, found.where) == (True, False, "")
    assert found.predicate["run"]["id"] == "run1"
    assert verify(archive, KEY.public_key()).trusted


def test_packing_the_same_files_gives_the_same_bytes(archive: Path) -> None:
    assert packed(contents(archive)) == archive.read_bytes()


EVERY = pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.chaos)])


@EVERY
def test_every_changed_byte_of_every_header_is_found(archive: Path, every: int) -> None:
    data = bytearray(archive.read_bytes())
    places = [member.start - BLOCK + n for member in scan(io.BytesIO(data), {}).members for n in range(BLOCK)]
    assert len(places) >= 12 * BLOCK
    for place in places[::every]:
        data[place] ^= 1 << place % 8
        assert not checked(bytes(data)).valid, place
        data[place] ^= 1 << place % 8


@EVERY
def test_every_changed_byte_of_the_statement_and_the_key_is_found(archive: Path, every: int) -> None:
    data = bytearray(archive.read_bytes())
    wanted = [member for member in scan(io.BytesIO(data), {}).members if member.name in (STATEMENT, PUBLIC_KEY)]
    places = [place for member in wanted for place in range(member.start, member.start + member.size)]
    for place in places[::every]:
        data[place] ^= 1 << place % 8
        assert not checked(bytes(data), KEY if place % 2 else None).valid, place
        data[place] ^= 1 << place % 8


@given(place=st.floats(0, 1, exclude_max=True), mask=st.integers(1, 255), trusted=st.booleans())
def test_any_changed_byte_is_found(archive: Path, place: float, mask: int, trusted: bool) -> None:
    data = bytearray(archive.read_bytes())
    data[int(place * len(data))] ^= mask
    assert not checked(bytes(data), KEY if trusted else None).valid


@given(place=st.floats(0, 1), more=st.binary(max_size=600))
def test_anything_cut_off_or_put_in_is_found(archive: Path, place: float, more: bytes) -> None:
    data = archive.read_bytes()
    cut = int(place * len(data))
    if cut < len(data):
        assert not checked(data[:cut]).valid
    if more:
        assert not checked(data[:cut] + more + data[cut:]).valid
        assert not checked(data + more).valid


@given(st.binary(max_size=2000))
def test_a_file_of_anything_is_not_valid(data: bytes) -> None:
    assert not checked(data).valid


def _without(files: dict[str, bytes], name: str) -> dict[str, bytes]:
    return {key: data for key, data in files.items() if key != name}


def _reordered(files: dict[str, bytes]) -> dict[str, bytes]:
    names = list(files)
    names[1], names[2] = names[2], names[1]
    return {name: files[name] for name in names}


@pytest.mark.parametrize(
    ("change", "where", "what"),
    [
        (lambda files: files | {CASES: files[CASES] + b"{}\n"}, CASES, "not the file that was signed"),
        (lambda files: files | {VERDICTS: files[VERDICTS].replace(b"failed", b"passed")}, VERDICTS, "not the file"),
        (lambda files: _without(files, VERDICTS), VERDICTS, "missing"),
        (lambda files: _without(files, STATEMENT), STATEMENT, "missing"),
        (lambda files: _without(files, PUBLIC_KEY), PUBLIC_KEY, "missing"),
        (lambda files: {"extra.txt": b"hi", **files}, "extra.txt", "not among the signed files"),
        (lambda files: {**files, "extra.txt": b"hi"}, STATEMENT, "not the last"),
        (_reordered, "prompts/0001.txt", "is not at its place"),
        (lambda files: files | {PUBLIC_KEY: public_pem(OTHER.public_key())}, PUBLIC_KEY, "not the file"),
        (lambda files: files | {PUBLIC_KEY: b"no key"}, PUBLIC_KEY, "not an Ed25519 public key"),
        (lambda files: files | {PUBLIC_KEY: files[PUBLIC_KEY] + b"\n"}, PUBLIC_KEY, "was changed"),
    ],
)
def test_the_first_thing_that_is_wrong_is_named(
    archive: Path, change: Callable[[dict[str, bytes]], dict[str, bytes]], where: str, what: str
) -> None:
    found = checked(packed(change(contents(archive))))
    assert (found.valid, found.where) == (False, where)
    assert what in found.what


def _envelope(archive: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(contents(archive)[STATEMENT])
    return found


def test_another_spelling_of_the_same_statement_is_found(archive: Path) -> None:
    files, envelope = contents(archive), _envelope(archive)
    payload = base64.b64decode(str(envelope["payload"]))
    (signature,) = envelope["signatures"]
    spellings = [
        json.dumps(envelope).encode(),
        canonical(envelope),
        canonical(envelope | {"more": 1}) + b"\n",
        canonical(envelope | {"signatures": []}) + b"\n",
        canonical(envelope | {"signatures": [{**signature, "more": 1}]}) + b"\n",
        canonical(envelope | {"signatures": [signature, signature]}) + b"\n",
        canonical(envelope | {"signatures": [signature, {**signature, "keyid": "another"}]}) + b"\n",
        canonical(envelope | {"payload": base64.urlsafe_b64encode(payload + b" ").decode()}) + b"\n",
        canonical(envelope | {"payloadType": "text/plain"}) + b"\n",
        b"[]\n",
        b"[" * 100_000,
        b'{"payload":' + b"1" * 10_000 + b"}",
    ]
    for spelling in spellings:
        found = checked(packed(files | {STATEMENT: spelling}))
        assert (found.valid, found.where) == (False, STATEMENT)


def test_what_somebody_else_signed_is_valid_but_not_with_the_key_that_was_named(archive: Path) -> None:
    forged = signed_anew(contents(archive) | {CASES: b"", PUBLIC_KEY: public_pem(OTHER.public_key())}, OTHER)
    assert checked(forged).valid  # it proves that nothing was changed since, not who signed
    found = checked(forged, KEY)
    assert (found.valid, found.where) == (False, "the signature")
    assert "another key" in found.what


def test_a_key_inside_that_did_not_sign_is_found(archive: Path) -> None:
    found = checked(signed_anew(contents(archive), OTHER))
    assert (found.valid, found.where) == (False, "the signature")


def test_a_statement_that_names_a_file_twice_is_found(archive: Path) -> None:
    rest = _without(contents(archive), STATEMENT)
    members = scan(io.BytesIO(packed(rest)), {}).members
    twice = packed({**rest, STATEMENT: sign((*members, members[0]), {}, KEY)})
    assert not checked(twice).valid


def test_a_file_that_is_not_there_is_no_invalid_one(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        verify(tmp_path / "nowhere.tar")
