"""Evidence of a suite run: one signed file from which the run can be read, verified and scored again."""
