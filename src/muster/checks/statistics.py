"""The figures of subjects in one place, for those who report them."""

from muster.checks.interval import Interval
from muster.checks.ranking import Rank, rank
from muster.checks.subject_stats import Latency, Repeats, SubjectStats
from muster.checks.tally import Tally
from muster.checks.variance import VarianceSplit

__all__ = ["Interval", "Latency", "Rank", "Repeats", "SubjectStats", "Tally", "VarianceSplit", "rank"]
