"""Use cases of suites: plan, run, compare, review, prove, generate."""
