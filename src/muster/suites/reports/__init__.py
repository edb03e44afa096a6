"""Reports of suite runs: one summary, and one file for each format."""
