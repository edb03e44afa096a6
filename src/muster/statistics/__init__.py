"""Statistics: intervals, paired tests, sample sizes, repeats. Pure; knows no feature."""
