"""Checking an archive, offline: every byte of it must be as it was signed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from muster.domain.canonical import Json
from muster.domain.errors import BadFile, NotFound
from muster.reports.evidence.fault import Fault
from muster.reports.evidence.keys import key_id, parse_public_key, public_pem
from muster.reports.evidence.layout import MOST_KEY, MOST_STATEMENT, PUBLIC_KEY, STATEMENT
from muster.reports.evidence.statement import SignedStatement, Statement, read_statement
from muster.reports.evidence.tar import Member, Scan, scan

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What came of checking an archive; `trusted`: against a key that the person named."""

    valid: bool
    trusted: bool
    where: str = ""  # the first thing that is wrong
    what: str = ""
    signer: str = ""  # the key, by its name
    members: tuple[Member, ...] = ()
    predicate: Mapping[str, Json] = field(default_factory=dict)


def open_archive(path: Path) -> BinaryIO:
    """Open an archive for reading."""
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}") from None
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from error


def verify(path: Path, public_key: "Ed25519PublicKey | None" = None) -> Verification:
    """Check an archive with a key, or else with the one that it brings along."""
    with open_archive(path) as file:
        try:
            return verify_file(file, public_key)
        except OSError as error:
            raise BadFile(str(path), f"cannot be read: {error.strerror}") from error


def verify_file(file: BinaryIO, public_key: "Ed25519PublicKey | None" = None) -> Verification:
    """Check an archive that is open."""
    trusted = public_key is not None
    try:
        found = scan(file, {PUBLIC_KEY: MOST_KEY, STATEMENT: MOST_STATEMENT})
        signed = read_statement(_kept(found, STATEMENT))
        key = _own_key(_kept(found, PUBLIC_KEY)) if public_key is None else public_key
        _check_signature(found, signed, key, trusted=trusted)
        _compare(found.members, signed.statement)
    except Fault as fault:
        return Verification(valid=False, trusted=trusted, where=fault.where, what=fault.what)
    return Verification(
        valid=True,
        trusted=trusted,
        signer=key_id(key),
        members=found.members,
        predicate=signed.statement.predicate,
    )


def _kept(found: Scan, name: str) -> bytes:
    if name not in found.kept:
        raise Fault(name, "it is missing")
    return found.kept[name]


def _own_key(data: bytes) -> "Ed25519PublicKey":
    try:
        key = parse_public_key(data)
    except ValueError as error:
        raise Fault(PUBLIC_KEY, f"it {error}") from None
    if public_pem(key) != data:
        raise Fault(PUBLIC_KEY, "it is not as it was written")
    return key


def _check_signature(found: Scan, signed: SignedStatement, key: "Ed25519PublicKey", *, trusted: bool) -> None:
    if signed.signed_with(key):
        return
    stated, held = dict(signed.statement.subjects), {member.name: member.sha256 for member in found.members}
    if not trusted and stated.get(PUBLIC_KEY) != held.get(PUBLIC_KEY):
        raise Fault(PUBLIC_KEY, "it is not the file that was signed")
    if trusted and signed.signer != key_id(key):
        raise Fault("the signature", "it was made with another key than the one that was named")
    raise Fault("the signature", "it does not fit what it is to sign")


def _compare(members: tuple[Member, ...], statement: Statement) -> None:
    """Find the first file that is not as the statement says."""
    if members[-1].name != STATEMENT:
        raise Fault(STATEMENT, "it is not the last file of the archive")
    stated = dict(statement.subjects)
    for member in members[:-1]:
        if member.name not in stated:
            raise Fault(member.name, "nobody signed a file of this name")
        if stated[member.name] != member.sha256:
            raise Fault(member.name, "it is not the file that was signed")
    held = [member.name for member in members[:-1]]
    if missing := sorted(stated.keys() - set(held)):
        raise Fault(missing[0], "it is missing")
    if held != [name for name, _ in statement.subjects]:
        pairs = zip(held, statement.subjects, strict=False)
        first = next((name for name, (expected, _) in pairs if name != expected), STATEMENT)
        raise Fault(first, "it does not stand where it was written")
