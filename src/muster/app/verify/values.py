"""What verifications hand to the edges: the values of their reports and figures, and the words for them."""

from muster.verify.files import FileSelection
from muster.verify.findings.finding import Finding, Merged, Severity
from muster.verify.journal import AgentReport, Ending
from muster.verify.reports.located import FindingPage
from muster.verify.reports.markdown import spoken
from muster.verify.reports.metrics import VerifyMetrics, metrics_json
from muster.verify.reports.summary import Absent, VerifyReport
from muster.verify.verification import LeftOut

__all__ = [
    "Absent",
    "AgentReport",
    "Ending",
    "FileSelection",
    "Finding",
    "FindingPage",
    "LeftOut",
    "Merged",
    "Severity",
    "VerifyMetrics",
    "VerifyReport",
    "metrics_json",
    "spoken",
]
