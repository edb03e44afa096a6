"""Use cases of runs: start, ask, resume, fork, cancel, look at, move."""
