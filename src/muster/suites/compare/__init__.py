"""Comparison of two suite runs: whether one is better or worse than the other."""
