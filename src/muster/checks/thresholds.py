"""The one place that says whether a score is high enough."""

_TOLERANCE = 1e-9  # 0.1 + 0.2 reaches 0.3


def reaches(score: float, threshold: float) -> bool:
    """Whether a score is at least a threshold, rounding aside; no number is below every threshold."""
    return score >= threshold - _TOLERANCE
