"""What verifications hand to the edges: the values of their reports and figures, and the words for them."""

from muster.app.verify_files import Selection
from muster.domain.finding import Finding, Merged, Severity
from muster.domain.verification import LeftOut
from muster.domain.waves import AgentReport, Ending
from muster.reports.waves.markdown import spoken
from muster.reports.waves.metrics import VerifyMetrics
from muster.reports.waves.metrics_json import metrics_json
from muster.reports.waves.summary import Absent, VerifyReport

__all__ = [
    "Absent",
    "AgentReport",
    "Ending",
    "Finding",
    "LeftOut",
    "Merged",
    "Selection",
    "Severity",
    "VerifyMetrics",
    "VerifyReport",
    "metrics_json",
    "spoken",
]
