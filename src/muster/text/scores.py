"""Scores: the one place that compares one with its threshold. Lists of runs need it, so it loads nothing."""

_TOLERANCE = 1e-9  # 0.1 + 0.2 reaches 0.3


def reaches(score: float, threshold: float) -> bool:
    """Return whether a score is at least a threshold, rounding aside; no number is below every threshold."""
    return score >= threshold - _TOLERANCE
