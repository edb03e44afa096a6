"""What is signed: an in-toto statement over the digests of all other files, in a DSSE envelope."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.domain.canonical import Json, canonical
from muster.reports.evidence.fault import Fault
from muster.reports.evidence.keys import key_id
from muster.reports.evidence.layout import STATEMENT
from muster.reports.evidence.tar import Member

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
    from securesystemslib.dsse import Envelope

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:muster:suite-run-evidence:v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What a signer says: these files, with these digests, are of this run."""

    subjects: tuple[tuple[str, str], ...]  # name and SHA-256, in the order of the archive
    predicate: Mapping[str, Json]


def sign(members: Sequence[Member], predicate: Mapping[str, Json], key: "Ed25519PrivateKey") -> bytes:
    """Make the signed envelope over all files of an archive."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import CryptoSigner  # type: ignore[attr-defined]

    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": member.name, "digest": {"sha256": member.sha256}} for member in members],
        "predicateType": PREDICATE_TYPE,
        "predicate": dict(predicate),
    }
    envelope = Envelope(canonical(statement), PAYLOAD_TYPE, {})
    envelope.sign(CryptoSigner(key))
    return _spell(envelope)


def _spell(envelope: "Envelope") -> bytes:
    """Spell an envelope with what belongs in it and nothing else: whatever is added beside it is not signed."""
    told = envelope.to_dict()
    signatures = [{"keyid": one["keyid"], "sig": one["sig"]} for one in told["signatures"]]
    return canonical({"payload": told["payload"], "payloadType": told["payloadType"], "signatures": signatures}) + b"\n"


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """A statement that was read; it counts for nothing until its signature was checked."""

    statement: Statement
    envelope: "Envelope"

    @property
    def signer(self) -> str:
        """The name of the key that it says it was signed with."""
        return str(next(iter(self.envelope.signatures)))

    def signed_with(self, key: "Ed25519PublicKey") -> bool:
        """Whether this key signed it."""
        from securesystemslib.exceptions import VerificationError
        from securesystemslib.signer import SSlibKey  # type: ignore[attr-defined]

        try:
            self.envelope.verify([SSlibKey.from_crypto(key)], 1)
        except VerificationError:
            return False
        return self.signer == key_id(key)


def read_statement(data: bytes) -> SignedStatement:
    """Read an envelope that is spelled exactly as we spell it."""
    from securesystemslib.dsse import Envelope

    try:
        envelope = Envelope.from_dict(json.loads(data))
        if _spell(envelope) != data or len(envelope.signatures) != 1 or envelope.payload_type != PAYLOAD_TYPE:
            raise ValueError("spelling")
        payload = json.loads(envelope.payload)
        if canonical(payload) != envelope.payload:
            raise ValueError("spelling")
        return SignedStatement(_statement_of(payload), envelope)
    except Exception as error:  # whatever a stranger wrote there
        raise Fault(STATEMENT, "it is not as it was written") from error


def _statement_of(payload: dict[str, Any]) -> Statement:
    if (payload["_type"], payload["predicateType"]) != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise ValueError("a statement about something else")
    subjects = tuple((str(subject["name"]), str(subject["digest"]["sha256"])) for subject in payload["subject"])
    return Statement(subjects=subjects, predicate=dict(payload["predicate"]))
