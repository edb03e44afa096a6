"""What repeated epochs and samples say, for people."""

from muster.suites.reports.figures import steadiness
from muster.suites.statistics import Repeats, SubjectStats, VarianceComponents


def test_a_case_that_was_asked_and_judged_once_tells_nothing_of_that() -> None:
    assert steadiness(SubjectStats(epochs=1, repeats=(Repeats(k=1, one=0.5, every=0.5),))) == ""


def test_epochs_and_the_two_parts_of_the_variance_are_told_apart() -> None:
    repeats = (Repeats(k=1, one=0.6, every=0.6), Repeats(k=2, one=0.8, every=0.4))
    stats = SubjectStats(epochs=2, repeats=repeats, variance=VarianceComponents(agent=0.02, judge=0.003), agreement=0.9)
    words = steadiness(stats)
    assert "80.0% of the cases (pass@2)" in words
    assert "40.0% (pass^2)" in words
    assert "0.0200 by the agent, 0.0030 by the judge" in words
    assert "agree in 90.0%" in words
