"""What suites hand to the edges: the values of their reports and comparisons, and the words for them."""

from muster.suites.compare.json_report import ComparisonView, PairPageView, comparison_view
from muster.suites.compare.pairs import ComparedPair, PairFilter, PairPage
from muster.suites.compare.report import between, comparison_markdown, gate_words, limits, power, summary
from muster.suites.compare.runs import ComparisonTerms, RunComparison, SubjectComparison
from muster.suites.compare.values import Change, Comparison, ComparisonVerdict, Gate, PairChange
from muster.suites.format.suite import NOTHING
from muster.suites.order import SuiteChoice
from muster.suites.reports.figures import Figures, figures, score_of, steadiness
from muster.suites.reports.json_report import suite_report_view
from muster.suites.reports.paging import CasePage, RowFilter
from muster.suites.reports.rows import ORDER, WORDS, CaseRow, reasons
from muster.suites.reports.summary import NOT_PASSED, CaseLine, SubjectLine, SuiteReport
from muster.suites.reports.trend import SuiteTrend, TrendPoint
from muster.suites.reviews import Agreement, ReviewedRun
from muster.suites.spec import SuiteSpec, read_spec
from muster.suites.statistics import SubjectStats
from muster.suites.values.case import MAX_TOOL_TURNS

__all__ = [
    "MAX_TOOL_TURNS",
    "NOTHING",
    "NOT_PASSED",
    "ORDER",
    "WORDS",
    "Agreement",
    "CaseLine",
    "CasePage",
    "CaseRow",
    "Change",
    "ComparedPair",
    "Comparison",
    "ComparisonTerms",
    "ComparisonVerdict",
    "ComparisonView",
    "Figures",
    "Gate",
    "PairChange",
    "PairFilter",
    "PairPage",
    "PairPageView",
    "ReviewedRun",
    "RowFilter",
    "RunComparison",
    "SubjectComparison",
    "SubjectLine",
    "SubjectStats",
    "SuiteChoice",
    "SuiteReport",
    "SuiteSpec",
    "SuiteTrend",
    "TrendPoint",
    "between",
    "comparison_markdown",
    "comparison_view",
    "figures",
    "gate_words",
    "limits",
    "power",
    "read_spec",
    "reasons",
    "score_of",
    "steadiness",
    "suite_report_view",
    "summary",
]
