"""What needs no model: checks of answers and tool calls, scores, statistics, comparisons. Pure functions."""
