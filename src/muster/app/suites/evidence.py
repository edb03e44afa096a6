"""Signed evidence of suite runs: keys made, archives exported, verified and scored again. Verifying needs no store."""

from muster.suites.evidence.export import Exported, FigureDifference, export_evidence
from muster.suites.evidence.keys import load_private_key, load_public_key, make_keys
from muster.suites.evidence.rescoring import Difference, Rescoring, rescore
from muster.suites.evidence.verification import ArchiveVerification, verify

__all__ = [
    "ArchiveVerification",
    "Difference",
    "Exported",
    "FigureDifference",
    "Rescoring",
    "export_evidence",
    "load_private_key",
    "load_public_key",
    "make_keys",
    "rescore",
    "verify",
]
