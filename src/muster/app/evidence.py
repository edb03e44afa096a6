"""Signed evidence of suite runs: keys made, archives exported, verified and scored again. Verifying needs no store."""

from muster.reports.evidence.exporting import Exported, export_evidence
from muster.reports.evidence.figures import FigureDifference
from muster.reports.evidence.keys import load_private_key, load_public_key, make_keys
from muster.reports.evidence.rescoring import Difference, Rescoring, rescore
from muster.reports.evidence.verifying import Verification, verify

__all__ = [
    "Difference",
    "Exported",
    "FigureDifference",
    "Rescoring",
    "Verification",
    "export_evidence",
    "load_private_key",
    "load_public_key",
    "make_keys",
    "rescore",
    "verify",
]
