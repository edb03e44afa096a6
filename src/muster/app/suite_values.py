"""What suites hand to the edges: the values of their reports and comparisons, and the words for them."""

from muster.checks.comparison import Change, Comparison, Verdict
from muster.domain.case import MOST_TOOL_TURNS
from muster.domain.verdict import Status
from muster.formats.leniency import NOTHING
from muster.formats.suite_spec import SuiteSpec, read_spec
from muster.reports.agreement import Agreement, ReviewedRun
from muster.reports.comparing import RunComparison, SubjectComparison, Terms
from muster.reports.comparing_markdown import between, comparison_markdown, limits, summary
from muster.reports.comparing_values import comparison_json
from muster.reports.suite.figures import Figures, figures, score_of
from muster.reports.suite.json_values import report_json
from muster.reports.suite.steadiness import steadiness
from muster.reports.suite.summary import NOT_PASSED, CaseLine, SubjectLine, SuiteReport
from muster.reports.suite.words import ORDER, WORDS

__all__ = [
    "MOST_TOOL_TURNS",
    "NOTHING",
    "NOT_PASSED",
    "ORDER",
    "WORDS",
    "Agreement",
    "CaseLine",
    "Change",
    "Comparison",
    "Figures",
    "ReviewedRun",
    "RunComparison",
    "Status",
    "SubjectComparison",
    "SubjectLine",
    "SuiteReport",
    "SuiteSpec",
    "Terms",
    "Verdict",
    "between",
    "comparison_json",
    "comparison_markdown",
    "figures",
    "limits",
    "read_spec",
    "report_json",
    "score_of",
    "steadiness",
    "summary",
]
