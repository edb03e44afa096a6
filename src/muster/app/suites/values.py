"""What suites hand to the edges: the values of their reports and comparisons, and the words for them."""

from muster.suites.case import MOST_TOOL_TURNS
from muster.suites.compare.pairs import ComparedPair, PairFilter, PairPage
from muster.suites.compare.report import (
    between,
    comparison_json,
    comparison_markdown,
    gate_words,
    limits,
    power,
    summary,
)
from muster.suites.compare.runs import ComparisonTerms, RunComparison, SubjectComparison
from muster.suites.compare.values import Change, Comparison, ComparisonVerdict, Gate, PairChange
from muster.suites.format.suite import NOTHING
from muster.suites.reports.figures import Figures, figures, score_of, steadiness
from muster.suites.reports.json_report import report_json
from muster.suites.reports.paging import CasePage, RowFilter
from muster.suites.reports.rows import ORDER, WORDS, CaseRow, reasons
from muster.suites.reports.summary import NOT_PASSED, CaseLine, SubjectLine, SuiteReport
from muster.suites.reviews import Agreement, ReviewedRun
from muster.suites.spec import SuiteSpec, read_spec
from muster.suites.statistics import SubjectStats
from muster.suites.trend import SuiteTrend, TrendPoint
from muster.suites.verdict import Status

__all__ = [
    "MOST_TOOL_TURNS",
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
    "Figures",
    "Gate",
    "PairChange",
    "PairFilter",
    "PairPage",
    "ReviewedRun",
    "RowFilter",
    "RunComparison",
    "Status",
    "SubjectComparison",
    "SubjectLine",
    "SubjectStats",
    "SuiteReport",
    "SuiteSpec",
    "SuiteTrend",
    "TrendPoint",
    "between",
    "comparison_json",
    "comparison_markdown",
    "figures",
    "gate_words",
    "limits",
    "power",
    "read_spec",
    "reasons",
    "report_json",
    "score_of",
    "steadiness",
    "summary",
]
