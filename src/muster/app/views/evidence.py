"""Evidence as JSON: exported, verified, scored again."""

from pathlib import Path
from typing import Any

from muster.suites.evidence.export import Exported
from muster.suites.evidence.keys import KeyFiles
from muster.suites.evidence.rescoring import Rescoring
from muster.suites.evidence.verification import ArchiveVerification
from muster.text import typed


def keys_view(files: KeyFiles) -> dict[str, Any]:
    """Return a pair of keys that was made as JSON."""
    return {"private_key": str(files.private), "public_key": str(files.public), "key_id": files.id}


def exported_view(done: Exported) -> dict[str, Any]:
    """Return an archive that was written as JSON."""
    return {
        "file": str(done.path),
        "bytes": done.bytes,
        "files": done.files,
        "results": done.results,
        "key_id": done.signer,
        "redacted": done.redacted,
    }


def verification_view(file: Path, found: ArchiveVerification) -> dict[str, Any]:
    """Return whether an archive is valid as JSON."""
    return {
        "file": str(file),
        "valid": found.valid,
        "signer_known": found.trusted and found.valid,
        "where": found.where or None,
        "what": found.what or None,
        "key_id": found.signer or None,
        "files": [{"name": member.name, "sha256": member.sha256} for member in found.members],
        "statement": dict(found.predicate),
    }


def rescoring_view(file: Path, found: Rescoring) -> dict[str, Any]:
    """Return an archive that was scored again as JSON."""
    return {
        "file": str(file),
        "ok": found.ok,
        "signer_known": found.verification.trusted,
        "same": found.same,
        "different": found.different,
        "redacted": found.blurred,
        "missing": found.missing,
        "differences": typed.to_builtins(found.differences),
        "statistics": typed.to_builtins(found.figures),
        "unmentioned_calls": found.unmentioned,
        "unmentioned_keys": list(found.unmentioned_keys),
        "rests_on_signature": list(found.unproven),
    }
