"""Use cases of verification: plan, run, report."""
