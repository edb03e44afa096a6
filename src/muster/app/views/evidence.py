"""Evidence: exported, verified, scored again."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from muster.domain.canonical import Json
from muster.suites.evidence.export import Exported
from muster.suites.evidence.keys import KeyFiles
from muster.suites.evidence.rescoring import Rescoring
from muster.suites.evidence.verification import ArchiveVerification
from muster.text import typed
from muster.text.views import View


class KeysView(View):
    """A pair of keys that was made."""

    private_key: str
    public_key: str
    key_id: str


class ExportedView(View):
    """An archive that was written."""

    file: str
    bytes: int
    files: int
    results: int
    key_id: str
    redacted: Json


class ArchiveMemberView(View):
    """A file of an archive."""

    name: str
    sha256: str


class VerificationView(View):
    """Whether an archive is valid."""

    file: str
    valid: bool
    signer_known: bool
    where: str | None
    what: str | None
    key_id: str | None
    files: Sequence[ArchiveMemberView]
    statement: Mapping[str, Json]


class RescoringView(View):
    """An archive that was scored again."""

    file: str
    ok: bool
    signer_known: bool
    same: int
    different: int
    redacted: int
    missing: int
    differences: Sequence[Json]
    statistics: Sequence[Json]
    unmentioned_calls: int
    unmentioned_keys: Sequence[str]
    rests_on_signature: Sequence[str]


def keys_view(files: KeyFiles) -> KeysView:
    """Return a pair of keys that was made."""
    return KeysView(private_key=str(files.private), public_key=str(files.public), key_id=files.id)


def exported_view(done: Exported) -> ExportedView:
    """Return an archive that was written."""
    return ExportedView(
        file=str(done.path),
        bytes=done.bytes,
        files=done.files,
        results=done.results,
        key_id=done.signer,
        redacted=done.redacted,
    )


def verification_view(file: Path, verification: ArchiveVerification) -> VerificationView:
    """Return whether an archive is valid."""
    return VerificationView(
        file=str(file),
        valid=verification.valid,
        signer_known=verification.trusted and verification.valid,
        where=verification.where or None,
        what=verification.what or None,
        key_id=verification.signer or None,
        files=[ArchiveMemberView(name=member.name, sha256=member.sha256) for member in verification.members],
        statement=verification.predicate,
    )


def rescoring_view(file: Path, rescoring: Rescoring) -> RescoringView:
    """Return an archive that was scored again."""
    return RescoringView(
        file=str(file),
        ok=rescoring.ok,
        signer_known=rescoring.verification.trusted,
        same=rescoring.same,
        different=rescoring.different,
        redacted=rescoring.blurred,
        missing=rescoring.missing,
        differences=typed.to_builtins(rescoring.differences),
        statistics=typed.to_builtins(rescoring.figures),
        unmentioned_calls=rescoring.unmentioned,
        unmentioned_keys=rescoring.unmentioned_keys,
        rests_on_signature=rescoring.unproven,
    )
