"""Checking an archive, offline: every byte of it must be as it was signed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]

from muster.domain.canonical import Json, canonical
from muster.domain.errors import BadFile, NotFound
from muster.suites.evidence.archive import BLOCK, ArchiveMember, Scan, is_archive, scan
from muster.suites.evidence.keys import key_id, parse_public_key, public_pem
from muster.suites.evidence.layout import MAX_KEY, MAX_STATEMENT, MEDIA, PUBLIC_KEY, STATEMENT, EvidenceFault

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:muster:suite-run-evidence:v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a signer says: these files, with these digests, are of this run."""

    subjects: tuple[tuple[str, str], ...]  # name and SHA-256, in the order of the archive
    predicate: Mapping[str, Json]


def sign(members: Sequence[ArchiveMember], predicate: Mapping[str, Json], key: Ed25519PrivateKey) -> bytes:
    """Make the signed envelope over all files of an archive."""
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": member.name, "digest": {"sha256": member.sha256}} for member in members],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(predicate),
    }
    envelope = Envelope(canonical(statement), PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key))
    return _spell(envelope)


def _spell(envelope: Envelope) -> bytes:
    """Spell an envelope with what belongs in it and nothing else: whatever is added beside it is not signed."""
    told = envelope.to_dict()
    signatures = [{"keyid": one["keyid"], "sig": one["sig"]} for one in told["signatures"]]
    return canonical({"payload": told["payload"], "payloadType": told["payloadType"], "signatures": signatures}) + b"\n"


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """A statement that was read; it counts for nothing until its signature was checked."""

    statement: Statement
    envelope: Envelope

    @property
    def signer(self) -> str:
        """The name of the key that it says it was signed with."""
        return str(next(iter(self.envelope.signatures)))

    def signed_with(self, key: Ed25519PublicKey) -> bool:
        """Return whether this key signed it."""
        try:
            self.envelope.verify([SSlibKey.from_crypto(key)], 1)
        except VerificationError:
            return False
        return self.signer == key_id(key)


def read_statement(data: bytes) -> SignedStatement:
    """Read an envelope that is spelled exactly as we spell it."""
    try:
        envelope = Envelope.from_dict(json.loads(data))
        if _spell(envelope) != data or len(envelope.signatures) != 1 or envelope.payload_type != PAYLOAD_TYPE:
            raise ValueError("spelling")
        payload = json.loads(envelope.payload)
        if canonical(payload) != envelope.payload:
            raise ValueError("spelling")
        return SignedStatement(_statement_of(payload), envelope)
    except Exception as error:  # whatever a stranger wrote there
        raise EvidenceFault(STATEMENT, "was changed") from error


def _statement_of(payload: Mapping[str, Any]) -> Statement:
    if (payload["_type"], payload["predicateType"]) != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise ValueError("a statement about something else")
    subjects = tuple((str(subject["name"]), str(subject["digest"]["sha256"])) for subject in payload["subject"])
    return Statement(subjects=subjects, predicate=dict(payload["predicate"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveVerification:
    """What came of checking an archive; `trusted`: against a key that the person named."""

    valid: bool
    trusted: bool
    where: str = ""  # the first thing that is wrong
    what: str = ""
    signer: str = ""  # the key, by its name
    members: tuple[ArchiveMember, ...] = ()
    predicate: Mapping[str, Any] = field(default_factory=dict)


def open_archive(path: Path) -> BinaryIO:
    """Open an archive for reading; raises BadFile for a file that never was one."""
    try:
        file = path.open("rb")
        if not is_archive(file.read(BLOCK)):
            file.close()
            raise BadFile(str(path), "is not an evidence archive; create one with: muster evidence export")
        file.seek(0)
    except FileNotFoundError:
        raise NotFound(f"no such file: {path}") from None
    except OSError as error:
        raise BadFile(str(path), f"cannot be read: {error.strerror}") from error
    return file


def verify(path: Path, public_key: Ed25519PublicKey | None = None) -> ArchiveVerification:
    """Check an archive with a key, or else with the one that it brings along."""
    with open_archive(path) as file:
        try:
            return verify_file(file, public_key)
        except OSError as error:
            raise BadFile(str(path), f"cannot be read: {error.strerror}") from error


def verify_file(file: BinaryIO, public_key: Ed25519PublicKey | None = None) -> ArchiveVerification:
    """Check an archive that is open."""
    trusted = public_key is not None
    try:
        found = scan(file, {PUBLIC_KEY: MAX_KEY, STATEMENT: MAX_STATEMENT})
        signed = read_statement(_kept(found, STATEMENT))
        key = _own_key(_kept(found, PUBLIC_KEY)) if public_key is None else public_key
        _check_signature(found, signed, key, trusted=trusted)
        _compare(found.members, signed.statement)
        _check_media(found.members)
    except EvidenceFault as fault:
        return ArchiveVerification(valid=False, trusted=trusted, where=fault.where, what=fault.what)
    return ArchiveVerification(
        valid=True,
        trusted=trusted,
        signer=key_id(key),
        members=found.members,
        predicate=signed.statement.predicate,
    )


def _kept(found: Scan, name: str) -> bytes:
    if name not in found.kept:
        raise EvidenceFault(name, "is missing")
    return found.kept[name]


def _own_key(data: bytes) -> Ed25519PublicKey:
    try:
        key = parse_public_key(data)
    except ValueError as error:
        raise EvidenceFault(PUBLIC_KEY, str(error)) from None
    if public_pem(key) != data:
        raise EvidenceFault(PUBLIC_KEY, "was changed")
    return key


def _check_signature(found: Scan, signed: SignedStatement, key: Ed25519PublicKey, *, trusted: bool) -> None:
    if signed.signed_with(key):
        return
    stated, held = dict(signed.statement.subjects), {member.name: member.sha256 for member in found.members}
    if not trusted and stated.get(PUBLIC_KEY) != held.get(PUBLIC_KEY):
        raise EvidenceFault(PUBLIC_KEY, "is not the file that was signed")
    if trusted and signed.signer != key_id(key):
        raise EvidenceFault("the signature", "was made with another key than the given one")
    raise EvidenceFault("the signature", "does not match the signed data")


def _check_media(members: tuple[ArchiveMember, ...]) -> None:
    """Find the first image or document whose bytes are not those of its name."""
    for member in members:
        if member.name.startswith(MEDIA) and member.sha256 not in member.name:
            raise EvidenceFault(member.name, "has other bytes than its name says")


def _compare(members: tuple[ArchiveMember, ...], statement: Statement) -> None:
    """Find the first file that is not as the statement says."""
    if members[-1].name != STATEMENT:
        raise EvidenceFault(STATEMENT, "is not the last file of the archive")
    stated = dict(statement.subjects)
    for member in members[:-1]:
        if member.name not in stated:
            raise EvidenceFault(member.name, "is not among the signed files")
        if stated[member.name] != member.sha256:
            raise EvidenceFault(member.name, "is not the file that was signed")
    held = [member.name for member in members[:-1]]
    if missing := sorted(stated.keys() - set(held)):
        raise EvidenceFault(missing[0], "is missing")
    if held != [name for name, _ in statement.subjects]:
        pairs = zip(held, statement.subjects, strict=False)
        first = next((name for name, (expected, _) in pairs if name != expected), STATEMENT)
        raise EvidenceFault(first, "is not at its place in the archive")
