"""Evidence of a suite run: one signed file from which anybody can see, check and score again what happened."""
