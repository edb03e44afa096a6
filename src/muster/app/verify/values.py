"""What verifications hand to the edges: the values of their reports and figures, and the words for them."""

from muster.verify.declaration.verification import LeftOut
from muster.verify.findings.finding import Finding, Merged, Severity
from muster.verify.findings.journal import AgentReport, Ending
from muster.verify.reports.located import FindingPage
from muster.verify.reports.markdown import spoken
from muster.verify.reports.metrics import VerifyMetrics, VerifyMetricsView, verify_metrics_view
from muster.verify.reports.summary import Absent, VerifyReport
from muster.verify.sources.files import FileSelection

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
    "VerifyMetricsView",
    "VerifyReport",
    "spoken",
    "verify_metrics_view",
]
